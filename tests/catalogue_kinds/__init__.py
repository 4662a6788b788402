"""The lifecycle of kinds of the catalogue: fixtures made from their rows."""
