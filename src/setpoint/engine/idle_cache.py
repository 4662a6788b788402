"""In-process cache of idle resources: enough to see that nothing changed, without reading or decoding anything.

A cookie says the same across restarts, at the price of reading and decoding. Here each input of the last step is
kept by its version; the same inputs again mean that there is nothing to do. Lists add what they showed of live
objects.
"""

from hashlib import sha256
from math import inf
from typing import NamedTuple, Protocol

from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import LiveObservation, Location
from setpoint.engine.resource import ResourceRef, Revision


def state_digest(live: str, outputs: JsonObject) -> bytes:
    """The digest of everything a step goes by in a live object: what is compared, and what the status shows."""
    # Bytes, not text: one is kept for each of very many resources.
    return sha256(canonical([live, outputs])).digest()


@dataclass(frozen=True, slots=True)
class IdleEntry:
    """The inputs of a step that settled: the revisions of the resource and its dependencies, and the live object."""

    revision: Revision
    dependencies: tuple[tuple[ResourceRef, Revision], ...]
    location: Location
    # The digest of the bytes that the service answered with.
    body: str
    # The `state_digest` of the live object: in a list, the same object may come in other bytes.
    state: bytes
    # Monotonic time at which the entry expires, because an oscillation does.
    until: float = inf


class RevisionIndex(Protocol):
    """The informer index: the newest revision of each resource, without reading it."""

    def revision(self, ref: ResourceRef) -> Revision | None:
        """The newest revision in the index; None for a resource that does not exist."""
        ...


class IdleCache:
    """The idle resources of this process. One whose inputs changed is dropped."""

    def __init__(self, index: RevisionIndex) -> None:
        self._index = index
        self._entries: dict[ResourceRef, IdleEntry] = {}

    def of(self, ref: ResourceRef) -> IdleEntry | None:
        """The entry of `ref`, if neither it nor any of its dependencies has changed since it was made."""
        entry = self._entries.get(ref)
        if entry is None:
            return None
        newest, dependencies = self._index.revision, entry.dependencies
        is_same = newest(ref) == entry.revision
        # Most have no dependencies, and that check is cheaper than an empty loop.
        if is_same and (not dependencies or all(newest(dependency) == seen for dependency, seen in dependencies)):
            return entry
        del self._entries[ref]
        return None

    def keep(self, ref: ResourceRef, entry: IdleEntry) -> None:
        """Keeps the entry of `ref`, which is idle."""
        self._entries[ref] = entry

    def drop(self, ref: ResourceRef) -> None:
        """Drops the entry: the next step of `ref` is a full one."""
        self._entries.pop(ref, None)


class FoundObject(NamedTuple):
    """A live object that was observed together with others, and its location."""

    location: Location
    observation: LiveObservation


class ListedObject(NamedTuple):
    """A live object in a list of the service: its location and its `state_digest`."""

    location: Location
    state: bytes


class ListedObjects:
    """What lists showed of live objects, each for one step alone.

    A step that finds its object here as it was when the cookie was made need not observe it. Anything else it observes:
    nothing is written, created or taken for absent because of a list.
    """

    def __init__(self) -> None:
        self._listed: dict[ResourceRef, ListedObject] = {}

    def __contains__(self, ref: ResourceRef) -> bool:
        return ref in self._listed

    def show(self, ref: ResourceRef, listed: ListedObject) -> None:
        """Keeps it for the next step of `ref`."""
        self._listed[ref] = listed

    def take(self, ref: ResourceRef) -> ListedObject | None:
        """What a list showed to this step; only once."""
        return self._listed.pop(ref, None)

    def drop(self, ref: ResourceRef) -> None:
        """Drops it after a change: the next step observes the object."""
        # Mostly there is none, and that check is cheaper than to hash a key.
        if self._listed:
            self._listed.pop(ref, None)
