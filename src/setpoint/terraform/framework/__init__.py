"""What a provider is written with: schemas, resources, data sources, functions, call contexts and diagnostics.

The counterpart of terraform-plugin-framework. Imports `cty`, `core` and `errors`; imported by `rpc` and `resources`.
"""
