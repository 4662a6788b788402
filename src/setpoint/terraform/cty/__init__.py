"""Terraform's type system (cty): types, values with unknowns, and their MessagePack and JSON encodings.

Pure: imports only `core` and `errors`. Every other package of `terraform` imports it.
"""
