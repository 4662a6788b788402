"""Who may see the dashboard: checks of requests, sessions, one-time tokens, and the rights of users of a cluster.

Imports the types of the API, and what actions do; imported by the handlers and the server.
"""
