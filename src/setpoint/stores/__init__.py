"""Implementations of the Store port, and the rules that they share: manifests, mutations, journal, leases.

Imports the engine's ports and the clients; imported by app, migration and objects only.
"""
