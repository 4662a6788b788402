"""Tenancy of a shared store: the tenants of its namespaces, and the references that are granted between them.

Imports ports, kinds and resources of the engine; imported by the engine's context, by kinds, stores and app.
"""
