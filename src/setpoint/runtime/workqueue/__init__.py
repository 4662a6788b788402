"""The work queue of a controller: priorities, delayed adds, retries with backoff.

Knows nothing of resources or steps; imported by the controller, the predicates and the list resync.
"""
