"""Waiting for what another process does: it cannot tell us, so it is looked at again and again."""

import time
from collections.abc import Callable
from typing import Final

# Long enough for a busy machine: not reached when all is well.
_PATIENCE: Final = 300.0
_GLANCE: Final = 0.05


def until(condition: Callable[[], bool]) -> None:
    """Returns as soon as `condition` holds; TimeoutError when it does not in good time."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{_PATIENCE:.0f} s were not enough")
        time.sleep(_GLANCE)
