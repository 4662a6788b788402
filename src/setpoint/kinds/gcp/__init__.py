"""Kinds of Google Cloud, with Config Connector's manifests."""
