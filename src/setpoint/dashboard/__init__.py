"""The dashboard: a page that shows resources, their fields, graph, timeline and plan, and the API v1 that it reads.

START HERE: `server.py` (what is served), `views/fleet.py` (the rows of all resources, kept up to date by a watch).
Imports `library` and below, never stores or kinds; imported by the commands that serve it.
"""
