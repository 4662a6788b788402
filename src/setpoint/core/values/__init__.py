"""JSON values: types, canonical bytes and digests, equality, field paths, durations and YAML documents.

The lowest part of the core: imports only `setpoint.errors`.
"""
