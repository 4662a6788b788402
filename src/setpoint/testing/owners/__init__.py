"""The contract of owners: what holds for every type of resource that generates others, whatever happened before.

Imports the parts of `setpoint.testing` that kinds and owners share; imported from `setpoint.testing`.
"""
