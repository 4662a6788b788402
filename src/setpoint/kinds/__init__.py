"""Resource kinds: a module or package per kind, and the typed specs that they are decoded into.

Imported by `app` and `objects` only. Imports `engine`, `clients` and `core`; no kind imports another kind.
Start reading at `gcp/sql_database.py`: a complete kind in one module.
"""
