"""Google Cloud kinds, with the API groups and manifests of Config Connector.

Each kind is a package (or one module) that imports nothing of its siblings but `shared`.
"""
