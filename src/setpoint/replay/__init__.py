"""Recording and replay: every read of a preview in one file, and the same preview again without any service.

Used by `preview`, `migration` and the command line; imports engine, clients and core.
Secret values are masked before anything is written to a file.
"""
