"""Controlled time: an event loop that jumps to its next timer, and a clock that is advanced by hand."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Advances the time instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            # Data between two sockets of this process takes no time.
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
    """The result of `main`, without waiting. The time starts at 0.0."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


@dataclass(eq=False)
class _Timer:
    at: float
    callback: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class ManualClock:
    """Stands still until it is advanced; then every timer on the way fires at its time."""

    now: float = 0.0
    _timers: list[_Timer] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self.now + seconds, callback)
        self._timers.append(timer)
        return timer

    @property
    def timers(self) -> int:
        """How many timers are set."""
        return sum(not one.is_cancelled for one in self._timers)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [one for one in self._timers if one.at <= until and not one.is_cancelled]:
            first = min(due, key=lambda one: one.at)
            self._timers.remove(first)
            self.now = max(self.now, first.at)
            first.callback()
        self.now = until
