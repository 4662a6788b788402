"""Pure functions from values to values: no I/O, clock, logging, randomness or async.

Every layer may import the core; the core imports only `setpoint.errors`. Inside it, imports run downwards:
merge and wait, then the modules here, then schema, then values.
"""
