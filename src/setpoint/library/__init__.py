"""The engine as a library: sessions that plan, apply, reconcile, delete, watch and run, and what they return.

The command line is a client of it. Imports `app` and below; imported by the command line, and by programs.
"""
