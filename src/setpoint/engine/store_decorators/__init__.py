"""Stores over another store: reads pass through, and every write passes one guard that sends, refuses or records it.

Imports the ports of the engine. The overlay store is used by previews and transfers; `runtime` and `replay` have
decorators of their own.
"""
