"""What the pure core costs, beside what else one could use: `make bench`."""
