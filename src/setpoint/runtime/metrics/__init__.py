"""Metrics of a running process: catalogue, counting, and the page that Prometheus scrapes.

`catalogue` and `convergence` are imported by the queue and the controller; the rest reads the runtime.
"""
