"""Several processes in one virtual loop, each of which can be stopped where it is, and go on later: SIGSTOP, SIGCONT.

A process is a context: whatever a task of it starts belongs to it as well. While it is stopped, none of its callbacks
runs: its timers ring, answers come in, and it notices none of that before it goes on. One that never does was killed.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.runtime.virtual_time import VirtualLoop

T = TypeVar("T")

_process: contextvars.ContextVar[str] = contextvars.ContextVar("process", default="")


class PausingLoop(VirtualLoop):
    """A virtual loop that holds back what belongs to a process that was stopped."""

    def __init__(self) -> None:
        self._stopped: dict[str, list[_Turn]] = {}
        super().__init__()

    def call_soon(  # type: ignore[override] # typeshed spells the arguments of `callback` in its own way
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        context = contextvars.copy_context() if context is None else context
        turn = _Turn(self, callback, args, context)
        turn.handle = super().call_soon(turn.run, context=context)
        return turn.handle

    def call_at(  # type: ignore[override] # the same
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        context = contextvars.copy_context() if context is None else context
        turn = _Turn(self, callback, args, context)
        handle = super().call_at(when, turn.run, context=context)
        turn.handle = handle
        return handle

    def pause(self, process: str) -> None:
        """`process` does nothing any more."""
        self._stopped.setdefault(process, [])

    def resume(self, process: str) -> None:
        """`process` goes on: everything that it has not noticed yet comes now, in the order in which it happened."""
        for turn in self._stopped.pop(process, ()):
            super().call_soon(turn.run, context=turn.context)

    def is_paused(self, process: str) -> bool:
        """Whether `process` does nothing."""
        return process in self._stopped

    def hold(self, turn: "_Turn") -> bool:
        """Whether the turn has to wait."""
        held = self._stopped.get(_process.get())
        if held is not None:
            held.append(turn)
        return held is not None


class _Turn:
    """One callback of a process."""

    def __init__(
        self, loop: PausingLoop, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context
    ) -> None:
        self.context = context
        self.handle: asyncio.Handle | None = None
        self._loop = loop
        self._callback = callback
        self._args = args

    def run(self) -> None:
        is_wanted = self.handle is None or not self.handle.cancelled()
        if is_wanted and not self._loop.hold(self):
            self._callback(*self._args)


def run_pausing(main: Coroutine[Any, Any, T]) -> T:
    """What `main` gives, in virtual time from zero seconds on."""
    with asyncio.Runner(loop_factory=PausingLoop) as runner:
        return runner.run(main)


def start_process(name: str, main: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """`main` as the process `name`."""
    context = contextvars.copy_context()
    context.run(_process.set, name)
    return asyncio.get_running_loop().create_task(main, name=name, context=context)


def pausing_loop() -> PausingLoop:
    """The loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PausingLoop)
    return loop
