"""The long-running controller: manager, controllers, informer, index, remote watches and the HTTP server.

Imports the engine and the clients, never stores or kinds; imported by the command line.
"""
