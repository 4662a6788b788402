"""The requests that create an object: what is sent, by which method, and where its id goes.

Sits above the requests of rows; imported by the generic kind.
"""
