"""Methods that only one service has and that no row can say. `services` knows the paths of all of them."""
