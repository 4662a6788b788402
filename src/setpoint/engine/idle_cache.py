"""In-process cache of idle resources: enough to see that nothing changed, without reading or decoding anything.

A cookie says the same across restarts, at the price of reading and decoding. Here each input of the last step is
kept by its version; the same inputs again mean that there is nothing to do. Lists add what they showed of live
objects.
"""

from dataclasses import dataclass
from hashlib import sha256
from math import inf
from typing import NamedTuple, Protocol

from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef, Revision


def state_digest(live: str, outputs: JsonObject) -> bytes:
    """What stands for an object as far as anybody goes by it: the digest of what is compared, and what is shown."""
    # No text: one is kept for each of very many resources.
    return sha256(canonical([live, outputs])).digest()


@dataclass(frozen=True, slots=True)
class IdleEntry:
    """A resource that was settled: its revision, those of what it refers to, and the bytes of the live object."""

    revision: Revision
    dependencies: tuple[tuple[ResourceRef, Revision], ...]
    location: Location
    # The digest of the bytes that the service answered with.
    body: str
    # What they mean; the same object may come in other bytes when it comes in a list.
    state: bytes
    # When there is something to forget, by the clock that never runs backwards.
    until: float = inf


class RevisionIndex(Protocol):
    """What a process has heard of resources without reading them."""

    def revision(self, ref: ResourceRef) -> Revision | None:
        """The newest revision heard of; None for what is not there."""
        ...


class IdleCache:
    """The resources at rest. One that moved since is not among them any more."""

    def __init__(self, heads: RevisionIndex) -> None:
        self._heads = heads
        self._rests: dict[ResourceRef, IdleEntry] = {}

    def of(self, ref: ResourceRef) -> IdleEntry | None:
        """What was found when `ref` came to rest, if neither it nor anything that it refers to has changed since."""
        rest = self._rests.get(ref)
        if rest is None:
            return None
        newest = self._heads.revision
        if newest(ref) == rest.revision and all(newest(dependency) == seen for dependency, seen in rest.dependencies):
            return rest
        del self._rests[ref]
        return None

    def keep(self, ref: ResourceRef, rest: IdleEntry) -> None:
        """`ref` is at rest."""
        self._rests[ref] = rest

    def drop(self, ref: ResourceRef) -> None:
        """`ref` is to be looked at closely next time."""
        self._rests.pop(ref, None)


class ListedObject(NamedTuple):
    """An object in a listing: where it is, and what stands for its state."""

    location: Location
    state: bytes


class ListedObjects:
    """The sightings that no step has taken up yet."""

    def __init__(self) -> None:
        self._shown: dict[ResourceRef, ListedObject] = {}

    def __contains__(self, ref: ResourceRef) -> bool:
        return ref in self._shown

    def show(self, ref: ResourceRef, sighting: ListedObject) -> None:
        """For the next step of `ref`."""
        self._shown[ref] = sighting

    def take(self, ref: ResourceRef) -> ListedObject | None:
        """What was shown to this step, once."""
        return self._shown.pop(ref, None)

    def drop(self, ref: ResourceRef) -> None:
        """Something has happened since: `ref` is to be looked at by itself."""
        # Mostly there is none, and to see that is cheaper than to hash a key.
        if self._shown:
            self._shown.pop(ref, None)
