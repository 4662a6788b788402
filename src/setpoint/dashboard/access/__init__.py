"""Who may see the dashboard: checks of requests, sessions, one-time tokens, and the rights of users of a cluster.

Imports nothing of the dashboard but the types of the API; imported by the handlers and the server.
"""
