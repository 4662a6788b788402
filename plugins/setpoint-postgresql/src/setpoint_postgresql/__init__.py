"""Kinds for PostgreSQL: databases, roles, schemas, extensions, grants, default privileges, functions and replication.

Imported by setpoint through the entry points of this package; imports `setpoint.kind` and nothing else of it.
"""
