"""HTTP/1.1 over asyncio: messages, connections, how they are opened, and a pool that reuses them.

Imports clients.foreign_errors, clients.sockets and httptools. Start with `pool.ConnectionPool`.
"""
