"""SQL that an author writes: expressions, such as row filters and defaults of arguments, and the kind of functions.

Imported through the entry points of the package and by publications; imports its connection, client and statements.
"""
