"""Implementations of the Store port, and the rules that they share: manifests, mutations, journal.

Imports the engine's ports and the clients; imported by app, migration and objects only.
"""
