"""Which shard a resource belongs to, and which member has a shard: the same in every process, and in every version.

Two processes that saw different answers here would both take steps for one resource, or neither would. So nothing of
this may ever change without a new LAYOUT.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from setpoint.engine.resource import ResourceRef

# Stands for how keys are mapped; processes with different layouts never hold shards at the same time.
LAYOUT: Final = "v1"
# No name holds a character like that, so that no two resources come to the same text.
_BETWEEN: Final = "\0"
_BYTES: Final = 8


def shard_of(ref: ResourceRef, number: int) -> int:
    """The shard of `ref`, of so many."""
    return _hash(ref.group, ref.kind, ref.namespace, ref.name) % number


def winner(shard: int, members: Iterable[str]) -> str | None:
    """The member that has `shard`; None when there is no member.

    Rendezvous hashing: each member draws a number for each shard, and the highest wins. A member that goes takes only
    its own shards along; one that comes takes its share from everybody, and nothing else moves.
    """
    return max(members, key=lambda member: (_hash(member, str(shard)), member), default=None)


def _hash(*parts: str) -> int:
    text = _BETWEEN.join(parts).encode()
    return int.from_bytes(blake2b(text, digest_size=_BYTES).digest(), "big")
