"""The catalogue of Google's kinds: what each is called, where its objects are, and what each field of its spec is.

Data, one file for each service, read when a kind of that service is first asked for. Imported by the generic kind and
by the local cloud; imports nothing but the core.
"""
