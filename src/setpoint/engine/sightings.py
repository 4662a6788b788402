"""What listings showed of live objects, each for one step alone.

A step that finds its object here, as it was when the cookie was made, need not ask for it. For anything else it asks:
nothing is ever written, made or taken for absent because of a listing.
"""

from typing import NamedTuple

from setpoint.engine.kind import Location
from setpoint.engine.resource import ResourceRef


class Sighting(NamedTuple):
    """An object in a listing: where it is, and what stands for its state."""

    location: Location
    state: bytes


class Sightings:
    """The sightings that no step has taken up yet."""

    def __init__(self) -> None:
        self._shown: dict[ResourceRef, Sighting] = {}

    def __contains__(self, ref: ResourceRef) -> bool:
        return ref in self._shown

    def show(self, ref: ResourceRef, sighting: Sighting) -> None:
        """For the next step of `ref`."""
        self._shown[ref] = sighting

    def take(self, ref: ResourceRef) -> Sighting | None:
        """What was shown to this step, once."""
        return self._shown.pop(ref, None)

    def drop(self, ref: ResourceRef) -> None:
        """Something has happened since: `ref` is to be looked at by itself."""
        # Mostly there is none, and to see that is cheaper than to hash a key.
        if self._shown:
            self._shown.pop(ref, None)
