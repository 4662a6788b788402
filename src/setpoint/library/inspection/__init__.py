"""What a session reads and plans without changing anything: descriptions, explanations, events, the graph, all plans.

Imports `preview` and below; imported by the session, and by the command line.
"""
