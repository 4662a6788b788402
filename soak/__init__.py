"""A long run of the real `setpoint run` under faults, edits, drift and kills, against a local cloud: `make soak`."""
