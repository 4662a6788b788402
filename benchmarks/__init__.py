"""Benchmarks of the core, the process and the command, compared with peer packages: `make bench`."""
