"""Kinds of data outside of the server (SQL/MED): foreign servers, and who logs in there by which user mapping.

`options` has what both share: options in plain text and from Secrets, how they are read, compared and sent.
"""
