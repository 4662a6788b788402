"""Waiting for a condition that another process fulfils, by polling."""

import time
from collections.abc import Callable
from typing import Final

# Long enough for a busy machine: a deadline, not an assertion.
_TIMEOUT_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.05


def until(condition: Callable[[], bool]) -> None:
    """Returns as soon as `condition` holds; TimeoutError after five minutes."""
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{_TIMEOUT_SECONDS:.0f} s were not enough")
        time.sleep(_POLL_SECONDS)
