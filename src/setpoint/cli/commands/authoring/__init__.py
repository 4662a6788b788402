"""Commands for authors of manifests and of kinds: nothing is reconciled.

Imported by `definitions`, each when its command runs.
"""
