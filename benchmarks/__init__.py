"""What the core, the process and the command cost, beside what else one could use: `make bench`."""
