"""What a long-running process remembers of resources at rest: enough to see that nothing moved, decoding nothing.

A cookie says the same across restarts, at the price of reading and decoding. This is a memory of one process: the
step's inputs, each by its version. The same inputs again come to the same: nothing to do.
"""

from dataclasses import dataclass
from hashlib import sha256
from math import inf
from typing import Protocol

from setpoint.core.canonical import canonical
from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef, Revision, Tree


def state_of(live: str, outputs: Tree) -> bytes:
    """What stands for an object as far as anybody goes by it: the digest of what is compared, and what is shown."""
    # No text: one is kept for each of very many resources.
    return sha256(canonical([live, outputs])).digest()


@dataclass(frozen=True, slots=True)
class Rest:
    """A resource that was settled: its revision, those of what it refers to, and the bytes of the live object."""

    revision: Revision
    needs: tuple[tuple[ResourceRef, Revision], ...]
    location: Location
    # The digest of the bytes that the service answered with.
    body: str
    # What they mean; the same object may come in other bytes when it comes in a list.
    state: bytes
    # When there is something to forget, by the clock that never runs backwards.
    until: float = inf


class Heads(Protocol):
    """What a process has heard of resources without reading them."""

    def revision(self, ref: ResourceRef) -> Revision | None:
        """The newest revision heard of; None for what is not there."""
        ...


class Rests:
    """The resources at rest. One that moved since is not among them any more."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._rests: dict[ResourceRef, Rest] = {}

    def of(self, ref: ResourceRef) -> Rest | None:
        """What was found when `ref` came to rest, if neither it nor anything that it refers to has changed since."""
        rest = self._rests.get(ref)
        if rest is None:
            return None
        newest = self._heads.revision
        if newest(ref) == rest.revision and all(newest(need) == seen for need, seen in rest.needs):
            return rest
        del self._rests[ref]
        return None

    def keep(self, ref: ResourceRef, rest: Rest) -> None:
        """`ref` is at rest."""
        self._rests[ref] = rest

    def drop(self, ref: ResourceRef) -> None:
        """`ref` is to be looked at closely next time."""
        self._rests.pop(ref, None)
