"""Several replicas over one store: leases, membership, shard assignment and fencing of writes.

Talks to the Store port and the permits of the clients; imported by the manager and the controller.
"""
