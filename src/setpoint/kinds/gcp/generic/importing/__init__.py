"""Live objects of a row as manifests: the lists that have them, and what says where an object is.

Sits above the placement of rows; imported by the generic kind.
"""
