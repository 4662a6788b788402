"""How something that takes minutes is watched, and called off."""

import threading
import time
from collections.abc import Callable
from typing import Final

# How often it says what it is at.
_BEAT: Final = 15.0
# How soon it notices that it is called off.
_GLANCE: Final = 0.2


class CalledOff(Exception):
    """The caller does not wait for the outcome any more."""


class Progress:
    """Progress lines for the caller, one every quarter of a minute, until it is called off."""

    def __init__(self, tell: Callable[[str], None], beat: float = _BEAT) -> None:
        self.tell = tell
        self._beat = beat
        self._off = threading.Event()

    def call_off(self) -> None:
        """A waiting caller is woken by `CalledOff`."""
        self._off.set()

    def wait(self, is_over: Callable[[], bool], describe: Callable[[], str]) -> None:
        """Returns as soon as it `is_over`; `describe` is told with the time it took so far."""
        begun = told = time.monotonic()
        while not is_over():
            if self._off.wait(_GLANCE):
                raise CalledOff
            now = time.monotonic()
            if now - told >= self._beat:
                told = now
                self.tell(f"{describe()} ({now - begun:.0f} s so far)")
