"""JSON values: types, canonical bytes and digests, equality, field paths, durations, YAML documents and messages.

The lowest part of the core: imports only `setpoint.errors`.
"""
