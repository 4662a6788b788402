"""Metrics of a running process: `telemetry` counts steps and listings, `readings` reads the rest when it is scraped.

`catalogue` lists every metric. `convergence` is imported by the controller; the other modules read the runtime.
"""
