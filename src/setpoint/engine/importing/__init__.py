"""Live objects as manifests: what is there, how little a manifest has to say, and the proof that nothing changes.

Sits above steps and kinds; imported by the library. Lists of live objects are for kinds, too.
"""
