"""A long, rough run of the real `setpoint run` against a local cloud: `make soak`."""
