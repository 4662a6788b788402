"""The versions of objects in collections that are watched: whether what was last answered about one still holds.

As in the caches of client-go, a version counts as current when it is the newest that a list, an event or an answer to a
request of this process has shown. It may be outdated by as much as the watch lags: a write names it as a precondition.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

# The most bytes of answers that are kept; without one, an object is read when it is needed.
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024
# A longer uid or resource version is none of an API server.
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A version of an object: its uid, and the number of its resource version. Of one object, and in one collection,
    numbers grow."""

    uid: str
    number: int

    @property
    def mark(self) -> str:
        """Identifies the object in this version."""
        return f"{self.uid}/{self.number}"


def version_of(uid: str, resource_version: str) -> ObjectVersion | None:
    """The version with this resource version; None for one that cannot be compared with others."""
    is_number = resource_version.isascii() and resource_version.isdecimal()
    if not uid or not is_number or max(len(uid), len(resource_version)) > _LONGEST:
        return None
    return ObjectVersion(uid, int(resource_version))


@dataclass(frozen=True, slots=True)
class CurrentObject:
    """An object in its current version, and its body, where it is kept; without a version, there is no object."""

    version: ObjectVersion | None
    body: bytes | None = None


@dataclass(slots=True)
class WatchedCollection:
    """The objects of a collection by name, from a list on. `source` is the connection that it is watched by.

    `is_whole`: the list was read to its end, so that an object without a version does not exist.
    """

    source: object
    versions: dict[str, ObjectVersion]
    is_whole: bool
    # The number of the last deletion: an answer from before it may be about an object that is gone.
    last_deletion: int = 0
    # Objects about which a refused write showed that what is known is wrong: they are read.
    doubted: set[str] = field(default_factory=set)

    def is_newer(self, name: str, version: ObjectVersion) -> bool:
        """Whether nothing as new is known of the object."""
        known = self.versions.get(name)
        return version.number > (self.last_deletion if known is None else known.number)


class WatchedObjects:
    """The collections that are watched, by their topic, and what was last answered about their objects."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._collections: dict[str, WatchedCollection] = {}
        # The least recently used first.
        self._bodies: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._left = max_kept_bytes

    def begin(self, topic: str, collection: WatchedCollection) -> None:
        """The collection is watched from here on."""
        self._forget_bodies(topic)
        self._collections[topic] = collection

    def end(self, topic: str, collection: WatchedCollection) -> None:
        """It is not watched any more: nothing is known of its objects."""
        if self._collections.get(topic) is collection:
            del self._collections[topic]
            self._forget_bodies(topic)

    def show(self, topic: str, name: str, version: ObjectVersion | None, *, is_deleted: bool = False) -> bool:
        """An event shows this version of an object; whether that is new. An event of an own write is not."""
        collection = self._collections.get(topic)
        if collection is None:
            return True
        if version is None:
            collection.doubted.add(name)
            return True
        if is_deleted:
            collection.last_deletion = max(collection.last_deletion, version.number)
        known = collection.versions.get(name)
        if known is not None and version.number <= known.number:
            return False
        self._drop_body(topic, name)
        collection.doubted.discard(name)
        if is_deleted:
            collection.versions.pop(name, None)
        else:
            collection.versions[name] = version
        return True

    def keep(self, topic: str, name: str, version: ObjectVersion | None, body: bytes) -> None:
        """Keeps an answer to a request, unless something newer is known; with an empty body, its version alone."""
        collection = self._collections.get(topic)
        if collection is None:
            return
        collection.doubted.discard(name)
        if version is None:
            collection.doubted.add(name)
        elif collection.is_newer(name, version) or collection.versions.get(name) == version:
            collection.versions[name] = version
            self._drop_body(topic, name)
            self._keep_body((topic, name), body)

    def doubt(self, topic: str, name: str) -> None:
        """What is known of the object was wrong: it is read next time."""
        if topic in self._collections:
            self._collections[topic].doubted.add(name)

    def find(self, topic: str, name: str, source: object) -> CurrentObject | None:
        """The object as it is now; None where that is not known, or what is known is from another `source`."""
        collection = self._collections.get(topic)
        if collection is None or collection.source is not source or name in collection.doubted:
            return None
        version = collection.versions.get(name)
        if version is None:
            return CurrentObject(None) if collection.is_whole else None
        body = self._bodies.get((topic, name))
        if body is not None:
            self._bodies.move_to_end((topic, name))
        return CurrentObject(version, body)

    def _keep_body(self, key: tuple[str, str], body: bytes) -> None:
        if not body:
            return
        self._bodies[key] = body
        self._left -= len(body)
        while self._left < 0:
            _, dropped = self._bodies.popitem(last=False)
            self._left += len(dropped)

    def _drop_body(self, topic: str, name: str) -> None:
        self._left += len(self._bodies.pop((topic, name), b""))

    def _forget_bodies(self, topic: str) -> None:
        for key in [one for one in self._bodies if one[0] == topic]:
            self._drop_body(*key)
