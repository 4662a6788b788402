"""The objects that make a cluster run setpoint: the one source of what `deploy/` holds."""
