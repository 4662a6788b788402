"""What the provider keeps with a resource, besides its attributes: bytes that only it reads."""

from typing import Any

import msgspec


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known from before."""

    # What the engine remembers.
    engine: dict[str, Any] = {}
    # Whether the object is there, and what is waited for is not.
    is_pending: bool = False
    # In a plan: the id under which the object was made that is to be kept.
    adopts: str = ""
    # Another id under which the object may be kept: of who kept it before an import, or of a new one in the making.
    takes: str = ""
    # Of a wait: what it was satisfied for.
    satisfied_for: str = ""

    def to_bytes(self) -> bytes:
        """For Terraform to keep."""
        return msgspec.json.encode(self)


def read_memory(private: bytes) -> Memory:
    """What `to_bytes` wrote; what cannot be read is forgotten, never trusted."""
    try:
        return msgspec.json.decode(private, type=Memory) if private else Memory()
    except msgspec.DecodeError:
        return Memory()
