"""Cloud Storage JSON API v1: buckets and objects.

Pure request handlers over plain state: no network, no clock. Imported by `api_methods`, `control` and `cloud`.
"""
