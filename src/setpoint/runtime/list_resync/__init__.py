"""Resync by LIST instead of one GET for each object, for kinds that can list their objects.

Sits between a controller's queue and its steps; imported by the controller and the metrics.
"""
