"""What a kind's msgspec types say of each field: shape, marks, defaults, field policy, OpenAPI schema.

Imports only `core.values`.
"""
