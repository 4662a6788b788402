"""Kinds for PostgreSQL: databases, roles, schemas, extensions, grants and default privileges.

Imported by setpoint through the entry points of this package; imports `setpoint.kind` and nothing else of it.
"""
