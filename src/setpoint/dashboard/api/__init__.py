"""What the API v1 says: the types of its answers, its routes, and the OpenAPI document that is made from both.

Imports nothing of the dashboard but itself; imported by the handlers.
"""
