"""The lock of a retention policy: nobody can undo it."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.overlay import Declared, overlay
from setpoint.core.paths import Path, get_at
from setpoint.core.values import Json
from setpoint.errors import ImmutableFieldChanged

LOCKED: Final = Path(("spec", "retentionPolicy", "isLocked"))


def require_lock(declared: Declared, live: Mapping[str, Json]) -> None:
    """ImmutableFieldChanged when the policy is locked, and the author would have it otherwise."""
    if get_at(live, LOCKED) is True and get_at(overlay(declared, live), LOCKED) is not True:
        raise ImmutableFieldChanged(
            f"{LOCKED} cannot change from true to false: a locked retention policy stays locked. Put true back",
            (str(LOCKED),),
        )
