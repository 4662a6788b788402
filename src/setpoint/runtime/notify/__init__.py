"""Notifications: the problem of a resource, the messages about it, their receivers, and their delivery behind the work.

Imports the engine and the HTTP client. The index keeps the problem of each resource; `setpoint run` starts the
delivery.
"""
