"""Why a key is to be looked at, and how long it may wait for that."""

from enum import IntEnum
from typing import Final


class Priority(IntEnum):
    """The reason for a look, the most urgent first."""

    EDIT = 0
    """The author changed something, or asked."""
    DEPENDENCY = 1
    """Something that it waits for is ready."""
    DRIFT = 2
    """The live object changed."""
    RESYNC = 3
    """It is time to look again."""
    START_UP = 4
    """The process has just begun."""


# Whoever was added first, plus this, comes first: everything has its turn, however busy the better classes are.
# The order is that of `Priority`, and no class may wait less long than a better one.
SECONDS_ALLOWED: Final = (0.0, 1.0, 5.0, 30.0, 60.0)
