"""Progress and cancellation of a task that takes minutes."""

import threading
import time
from collections.abc import Callable
from typing import Final

# How often progress is reported.
_INTERVAL_SECONDS: Final = 15.0
# How soon a cancellation is noticed.
_POLL_SECONDS: Final = 0.2


class Cancelled(Exception):
    """The task was cancelled."""


class Progress:
    """Reports a line of progress every `interval` seconds until the task is done or cancelled."""

    def __init__(self, report: Callable[[str], None], interval: float = _INTERVAL_SECONDS) -> None:
        self.report = report
        self._interval = interval
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """`wait` raises `Cancelled`."""
        self._cancelled.set()

    def wait(self, is_over: Callable[[], bool], describe: Callable[[], str]) -> None:
        """Returns as soon as `is_over` holds; meanwhile `describe` is reported with the elapsed time."""
        begun = last = time.monotonic()
        while not is_over():
            if self._cancelled.wait(_POLL_SECONDS):
                raise Cancelled
            now = time.monotonic()
            if now - last >= self._interval:
                last = now
                self.report(f"{describe()} ({now - begun:.0f} s so far)")
