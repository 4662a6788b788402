"""A shelf: objects that a service lists together, such as all buckets of a project. One call shows many of them."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, NewType, Protocol, runtime_checkable

from setpoint.engine.kind import Location, Present

Shelf = NewType("Shelf", str)


@runtime_checkable
class Listable(Protocol):
    """What the author of a kind writes besides, when its objects can be listed with all that a look shows.

    A listing only ever says that an object has not moved. What it leaves out, shows otherwise or shows too late costs a
    look, and nothing else.
    """

    def shelf_of(self, location: Location) -> Shelf | None:
        """The shelf that the object is on; None for a place that is no object's of this kind."""
        ...

    def pages(self, shelf: Shelf) -> AsyncGenerator[Sequence[bytes], None]:
        """Everything on the shelf, a page at a time; each item as the bytes that came. Any failure raises."""
        ...

    def location_of(self, item: bytes, shelf: Shelf) -> Location:
        """Where the object is that an item shows."""
        ...

    def read_item(self, item: bytes, location: Location) -> Present[Any] | None:
        """The object as a look would have found it; None when the item may not show all of it."""
        ...
