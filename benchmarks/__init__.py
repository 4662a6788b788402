"""What the pure core and the command cost, beside what else one could use: `make bench`."""
