"""The store in a Kubernetes cluster: custom resources, server-side apply, list and watch, cache, leases, events.

Imports the shared rules of stores and the Kubernetes client; imported by app and migration.
"""
