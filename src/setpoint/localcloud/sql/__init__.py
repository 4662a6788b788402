"""Cloud SQL Admin API v1beta4: instances, databases, users, long-running operations.

Pure request handlers over plain state: no network, no clock. Imported by `api_methods`, `control` and `cloud`.
"""
