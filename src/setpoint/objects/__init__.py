"""One object of a cluster at a time, kept by the engine, for whoever remembers things in a way of their own."""
