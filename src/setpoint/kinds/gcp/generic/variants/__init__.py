"""Kinds whose objects are not simply named in a collection: ids that the service makes, parts of other objects."""
