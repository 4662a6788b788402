"""Time that does not pass by itself: a loop that jumps to its next timer, and a clock that is moved by hand."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Waiting takes no time: it moves the time on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            # What is under way between two sockets of this very process takes no time.
            return ready
        assert timeout is not None, "all tasks wait, and no timer is set"
        self.now += max(timeout, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumps = _JumpingSelector()
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """What `main` comes to, in no time at all. It starts at 0.0."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


@dataclass(eq=False)
class _Timer:
    at: float
    ring: Callable[[], None]
    is_off: bool = False

    def cancel(self) -> None:
        self.is_off = True


@dataclass
class ManualClock:
    """Stands still until it is moved; then every alarm on the way rings at its time."""

    now: float = 0.0
    _alarms: list[_Timer] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, ring: Callable[[], None]) -> _Timer:
        alarm = _Timer(self.now + seconds, ring)
        self._alarms.append(alarm)
        return alarm

    @property
    def alarms(self) -> int:
        """How many will ring."""
        return sum(not one.is_off for one in self._alarms)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [one for one in self._alarms if one.at <= until and not one.is_off]:
            first = min(due, key=lambda one: one.at)
            self._alarms.remove(first)
            self.now = max(self.now, first.at)
            first.ring()
        self.now = until
