"""The functions of the provider `setpoint`, for expressions of a configuration: manifests split, decoded and encoded.

Imports `framework`, `cty` and `core`; reads files, and never reaches a cluster.
"""
