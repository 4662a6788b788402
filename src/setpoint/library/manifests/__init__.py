"""Manifests: where they come from, how they are read, and what is wrong with them, each with its place.

Imports the engine and `app`; imported by the rest of `library` and by the command line.
"""
