"""Sets of manifests: where they come from (a folder, a repository), declaring them, and pruning what left them.

Imports the engine and the rest of `library`; imported by sessions and by the command line.
"""
