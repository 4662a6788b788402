"""The world around a controller, simulated: `virtual_time` for tests and benchmarks that take hours of it."""
