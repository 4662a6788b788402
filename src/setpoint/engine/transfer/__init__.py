"""Moving resources from one store to another: export, import, and the translation of stored state between the two.

Digests and secret versions are carried over only where the target store proves them equal. Imported by the front
ends, `migration` and `replay`.
"""
