"""The services of the catalogue, one server for all: each row says what its collection accepts and returns.

Start reading at `service`; `collections` finds the collection of a path, `members` knows what an object may hold.
"""
