"""Several processes in one virtual loop, each of which can be paused and resumed, as by SIGSTOP and SIGCONT.

A process is a context: the tasks that a task of it starts belong to it as well. While it is paused, none of its
callbacks runs: timers expire and answers arrive, and it handles them when it is resumed. A process that is never
resumed was killed.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from simulation.virtual_time import VirtualLoop

T = TypeVar("T")

_process: contextvars.ContextVar[str] = contextvars.ContextVar("process", default="")


class PausableLoop(VirtualLoop):
    """A virtual loop that holds back the callbacks of paused processes."""

    def __init__(self) -> None:
        self._paused: dict[str, list[_Turn]] = {}
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
        self._paused.setdefault(process, [])

    def resume(self, process: str) -> None:
        """Resumes `process`: the callbacks that it missed run now, in the order in which they were due."""
        for turn in self._paused.pop(process, ()):
            super().call_soon(turn.run, context=turn.context)

    def is_paused(self, process: str) -> bool:
        """Whether `process` does nothing."""
        return process in self._paused

    def hold(self, turn: "_Turn") -> bool:
        """Whether the turn has to wait."""
        held = self._paused.get(_process.get())
        if held is not None:
            held.append(turn)
        return held is not None


class _Turn:
    """One callback of a process."""

    def __init__(
        self, loop: PausableLoop, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context
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


def run_pausable(main: Coroutine[Any, Any, T]) -> T:
    """What `main` gives, in virtual time from zero seconds on."""
    with asyncio.Runner(loop_factory=PausableLoop) as runner:
        return runner.run(main)


def start_process(name: str, main: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """`main` as the process `name`."""
    context = contextvars.copy_context()
    context.run(_process.set, name)
    return asyncio.get_running_loop().create_task(main, name=name, context=context)


def pausable_loop() -> PausableLoop:
    """The loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PausableLoop)
    return loop
