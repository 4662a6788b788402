"""Virtual time: it passes only when no callback of the event loop is ready.

`run` is `asyncio.run` on a loop with a number for its `time()`. When no callback is ready, the loop does not wait for
its next timer: it sets the number to the time of that timer. So `asyncio.sleep`, `asyncio.timeout`, `call_later` and a
`VirtualClock` are exact, take no real time, and come in the same order on every run. Nothing ready and no timer is a
`Deadlock`, with the tasks that wait and where, instead of a run that hangs.

Threads run in real time, so virtual time must not pass while one of them works. The loop cannot know that by itself:

* What runs by `asyncio.to_thread` or `run_in_executor` is known, until its future is done.
* Anything else that answers from a thread, such as a SQLite store with its writer, is wrapped by `threaded(store)`:
  while a call of its coroutine methods is under way, no time passes. A call that is cancelled is under way until the
  thread has answered it. Methods that return at once (`watch`) are passed on as they are.
* Where no timer is left to jump to, the loop waits for threads that were started since, before it reports a deadlock.

A thread that does not answer within `THREAD_TIMEOUT_SECONDS` of real time is a `Deadlock` as well. Sockets and
subprocesses are not supported.
"""

import asyncio
import datetime
import inspect
import math
import selectors
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")

THREAD_TIMEOUT_SECONDS = 10.0
_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

_Events = list[tuple[selectors.SelectorKey, int]]


class Deadlock(Exception):
    """Nothing will ever happen again: no callback is ready, no timer is set, and no thread answers."""


def run(main: Coroutine[Any, Any, T], loop_factory: "Callable[[], VirtualLoop] | None" = None) -> T:
    """What `main` gives, in virtual time from zero seconds on."""
    with asyncio.Runner(loop_factory=loop_factory or VirtualLoop) as runner:
        return runner.run(main)


@dataclass(frozen=True, slots=True)
class VirtualClock:
    """The Clock of the virtual loop that runs: it starts with the year 2026."""

    def now(self) -> str:
        return (_START + datetime.timedelta(seconds=math.floor(self.monotonic()))).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        return _running().time()

    async def sleep(self, seconds: float) -> None:
        _running()
        await asyncio.sleep(seconds)


def threaded(thing: T) -> T:
    """`thing`, with coroutine methods that are answered by a thread: no time passes while one is under way."""
    return cast(T, _Threaded(thing))


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to its next timer instead of waiting for it."""

    # The timers, the first at the head: the one part of asyncio that is not public and cannot be had otherwise.
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        self._now = 0.0
        self._under_way = 0
        # Threads that were there before do not answer this loop.
        self._foreign_threads = set(threading.enumerate())
        super().__init__(_Jumping(self))
        self.jump_to(0.0)

    def time(self) -> float:
        return self._now

    def run_in_executor(  # type: ignore[override] # typeshed spells the arguments of `func` in its own way
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.begin_threaded()
        future.add_done_callback(lambda _: self.end_threaded())
        return future

    def begin_threaded(self) -> None:
        """A thread works: no time passes."""
        self._under_way += 1

    def end_threaded(self) -> None:
        """A thread has answered."""
        self._under_way -= 1

    def next_events(self, timeout: float | None, wait: Callable[[float], _Events]) -> _Events:
        """What `wait`, with the real seconds that it may take, finds to be ready; nothing after a jump in time."""
        found = wait(0.0)
        if found or timeout == 0:
            return found
        if self._under_way or (timeout is None and set(threading.enumerate()) - self._foreign_threads):
            found = wait(THREAD_TIMEOUT_SECONDS)
            if not found:
                raise Deadlock(
                    f"no thread answered within {THREAD_TIMEOUT_SECONDS:g} real seconds{self._waiting_tasks()}"
                )
        elif timeout is None:
            raise Deadlock(f"nothing is ready and no timer is set{self._waiting_tasks()}")
        else:
            self.jump_to(self._scheduled[0].when())
        return found

    def jump_to(self, when: float) -> None:
        """The time is `when` now."""
        self._now = when
        # A timer fires when its time is less than so much ahead: with one step of a float, not before its time.
        self._clock_resolution = math.ulp(when)

    def _waiting_tasks(self) -> str:
        """The tasks that wait, one on each line."""
        lines = [f"\n  {task.get_name()} waits at {_place(task)}" for task in asyncio.all_tasks(self)]
        return f", at {self._now:g} virtual seconds:{''.join(sorted(lines)) or ' no task is left'}"


class _Jumping(selectors.SelectSelector):
    """A selector that lets its loop decide what it waits for."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> _Events:
        return self._loop.next_events(timeout, super().select)


class _Threaded:
    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> object:
        found = getattr(self._thing, name)
        return _counted(found) if inspect.iscoroutinefunction(found) else found


def _counted(call: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Awaitable[T]]:
    async def counted(*args: Any, **named: Any) -> T:
        loop = _running()
        loop.begin_threaded()
        # A task of its own: when the caller is cancelled, the thread is still at work, and no time may pass.
        task = loop.create_task(call(*args, **named))
        task.add_done_callback(lambda _: loop.end_threaded())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_discard_result)
            raise

    return counted


def _discard_result(task: "asyncio.Task[Any]") -> None:
    """Retrieves the outcome of a task that was given up, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _running() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("virtual time needs a loop of its own: start it with simulation.virtual_time.run")
    return loop


def _place(task: "asyncio.Task[Any]") -> str:
    """Where `task` waits: its coroutines from the outermost to the innermost, each with its line."""
    return " > ".join(_frames(task.get_coro())) or "its beginning"


def _frames(coroutine: Any) -> Iterator[str]:
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None:
            yield f"{frame.f_code.co_qualname}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)
