"""Sets of resources: which manifests belong together, what a new version of them declares, and what it prunes.

Imports the engine's resources and ports; imported by stores, the runtime and `library`.
"""
