"""Kinds of logical and physical replication: publications, subscriptions and replication slots.

Imported through the entry points of the package; imports its connection, client and statements.
"""
