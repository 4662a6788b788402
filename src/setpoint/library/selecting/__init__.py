"""Which resources a command is about, and what of them it prints: selectors of labels and fields, JSONPath, columns.

Imported by the library and by commands; knows resources, and no store.
"""
