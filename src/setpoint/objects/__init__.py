"""One Kubernetes object at a time, reconciled by the engine: what the Terraform provider uses.

The caller keeps the stored state and hands it in with each call. Imports engine, kinds, stores and clients;
imported by `terraform` alone.
"""
