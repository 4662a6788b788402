"""The embedded store in one SQLite file: schema, tables, group commit, encryption of secret values.

Imports the shared rules of stores; imported by app.
"""
