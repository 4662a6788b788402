"""How resources at rest are listed: whether an item of a list shows that an object has not moved."""

from enum import Enum
from hashlib import sha256
from typing import Final

import msgspec

from setpoint.core.canonical import digest
from setpoint.engine.cadence import spread
from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef
from setpoint.engine.rest import Rest, state_of
from setpoint.engine.shelf import Listable

# A list may leave out what a look shows, and nobody would know: so each object is looked at by itself about this often.
OWN_LOOK: Final = 6 * 3600.0


class Word(Enum):
    """What an item says of its object."""

    UNMOVED = "it is as it was"
    MOVED = "it was listed in another state before"
    NOTHING = "nothing to go by"


class _Known(msgspec.Struct, gc=False, eq=False):
    """The digest of the item that shows the state at rest, when it was last seen, and until when it is good enough."""

    item: bytes
    seen: float
    until: float


class ListedItems:
    """The items of resources at rest, as long as no step is at work on them."""

    def __init__(self, kind: Listable) -> None:
        self._kind = kind
        self._known: dict[ResourceRef, _Known] = {}

    def forget(self, ref: ResourceRef) -> None:
        """What comes next is compared closely."""
        if self._known:
            self._known.pop(ref, None)

    def was_seen(self, ref: ResourceRef, since: float) -> bool:
        """Whether an item has shown it at rest since then."""
        known = self._known.get(ref)
        return known is not None and known.seen >= since

    def may_tell(self, ref: ResourceRef, now: float) -> bool:
        """Whether an item is good enough, and no look of its own is due."""
        known = self._known.get(ref)
        return known is None or now < known.until

    def compare(self, ref: ResourceRef, rest: Rest, item: bytes, now: float) -> Word:
        """What `item` says of a resource at rest. The very bytes of the last time need no decoding."""
        mark, known = sha256(item).digest(), self._known.get(ref)
        if known is None:
            if self.state_in(item, rest.location) != rest.state:
                return Word.NOTHING
            self._known[ref] = _Known(mark, now, now + spread(ref, OWN_LOOK))
            return Word.UNMOVED
        if known.item != mark:
            if self.state_in(item, rest.location) != rest.state:
                return Word.MOVED
            known.item = mark
        known.seen = now
        return Word.UNMOVED

    def state_in(self, item: bytes, location: Location) -> bytes | None:
        """What stands for the state of the object; None when the item may not show all of it."""
        found = self._kind.read_item(item, location)
        return None if found is None else state_of(digest(found.live), found.outputs)
