"""The generic kind: a kind of Google's that is made from a row of the catalogue.

Imported by the composition root; imports the catalogue, the engine, the Google client and what Google's kinds share.
"""
