"""What several Google Cloud kinds share: Config Connector's conventions, Cloud SQL instances and operations.

Imported by the kinds in `kinds.gcp` only; imports none of them.
"""
