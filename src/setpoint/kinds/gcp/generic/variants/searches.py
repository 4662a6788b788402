"""Searches: what stands in the place of an id that the service has not made yet.

`COLLECTION/~UID` is the object with the label of that resource. In a collection without labels it is
`COLLECTION/~UID~KEY~PARENT~`, and once it is on record `COLLECTION/~UID~KEY~PARENT~KNOWN~`: the object whose key
members have this digest and that is none of those known from before the creation; PARENT is what the list is asked for.
"""

from dataclasses import replace
from typing import Final

from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import Location

_MARK: Final = "~"
_DIGEST_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class ObjectSearch:
    """A search for the object of a resource, in a collection."""

    collection: str
    uid: str
    # Of a collection without labels: the digest of the key members, and the parent that the list is asked for.
    key: str = ""
    parent: str = ""
    # The ids that were there before the creation, of objects with the same key; None before they are known.
    known: tuple[str, ...] | None = None

    @staticmethod
    def parse(location: Location) -> "ObjectSearch | None":
        """The search that a location names; None for the location of an object."""
        collection, found, text = location.rpartition(f"/{_MARK}") if location.count(f"/{_MARK}") else ("", "", "")
        if not found:
            return None
        uid, *more = text.split(_MARK)
        if not more:
            return ObjectSearch(collection, uid)
        key, parent, *known = (*more, "")[:-2] if len(more) > 1 else (*more, "")
        ids = tuple(one for one in known[0].split(",") if one) if known else None
        return ObjectSearch(collection, uid, key, parent, ids)

    @property
    def location(self) -> Location:
        """The location that names this search."""
        known = () if self.known is None else (",".join(self.known),)
        parts = (self.uid, self.key, self.parent, *known, "") if self.key else (self.uid,)
        return Location(f"{self.collection}/{_MARK}{_MARK.join(parts)}")

    def is_for(self, values: Json) -> bool:
        """Whether these values of the key members are those of the object."""
        return self.key == key_digest(self.uid, values)

    def among(self, known: tuple[str, ...]) -> "ObjectSearch":
        """The search once it is known which objects with the same key are there already."""
        return replace(self, known=known)

    def found(self, own_id: str) -> Location:
        """The location of the object with this id."""
        return Location(f"{self.collection}/{own_id}")

    def is_same(self, other: "ObjectSearch") -> bool:
        """Whether both are for the object of the same resource; an author may have changed what it is found by."""
        return (self.collection, self.uid) == (other.collection, other.uid)


def key_digest(uid: str, values: Json) -> str:
    """A digest of the values of key members: of one resource, so that it says nothing of a secret among them."""
    return digest([uid, values])[:_DIGEST_LENGTH]
