"""How results are shown: tables, plans, outcomes, progress, and the live screen of `setpoint run`.

A view turns values into rich renderables or text; it opens no store. Imported by commands and executors.
"""
