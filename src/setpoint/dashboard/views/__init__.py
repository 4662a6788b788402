"""What the page shows: rows of all resources, their summary and graph; details, fields and timeline of one; search.

Imports the types of the API and `access`; imported by the handlers, the stream and plans. START HERE: `fleet.py`.
"""
