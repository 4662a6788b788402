"""The embedded store in one SQLite file: schema, tables, group commit, encryption of Secrets.

Imports the shared rules of stores; imported by app.
"""
