"""Claims of live objects: one object has one resource. `object_claims` knows all claims, `claim` is that of a step.

Imported by the engine's context and by the steps; imports no other package than `engine` and `core`.
"""
