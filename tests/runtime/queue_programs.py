"""Programs: what may happen to a work queue, in any order, as values."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import strategies as st

from setpoint.errors import OperationRunning, RemoteUnavailable, SetpointError, WriteConflict
from setpoint.runtime.workqueue.queue import QueueItem, ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.runtime.workqueue.statistics import QueueSnapshot
from simulation.virtual_time import VirtualClock
from tests.runtime.queue_model import ModelQueue

KEYS = "abc"


@dataclass(frozen=True)
class Add:
    key: str
    priority: Priority
    trigger: str


@dataclass(frozen=True)
class Schedule:
    key: str
    seconds: float
    priority: Priority
    trigger: str


@dataclass(frozen=True)
class Retry:
    key: str
    error: SetpointError
    priority: Priority
    trigger: str


@dataclass(frozen=True)
class Reset:
    key: str


@dataclass(frozen=True)
class Forget:
    key: str


@dataclass(frozen=True)
class Discard:
    key: str


@dataclass(frozen=True)
class Get:
    """One more waits for a key."""


@dataclass(frozen=True)
class GiveUp:
    """One of the waiting workers is cancelled: the first, the second and so on, as far as there are any."""

    index: int


@dataclass(frozen=True)
class Done:
    """The work on one of the keys in work is over."""

    which: int


@dataclass(frozen=True)
class Settle:
    """Every ready task runs; without it, the next operation comes before woken workers have acted."""


@dataclass(frozen=True)
class Pass:
    seconds: float


Operation: TypeAlias = Add | Schedule | Retry | Reset | Forget | Discard | Get | GiveUp | Done | Settle | Pass

_keys = st.sampled_from(KEYS)
_priorities = st.sampled_from(Priority)
_triggers = st.sampled_from(("x", "y", "z"))
# Sums of these are exact in any order, and often equal: among themselves, and to deadlines.
_seconds = st.sampled_from((0.0, 0.25, 1.0, 4.0, 5.0, 25.0, 29.0, 30.0, 55.0, 60.0))
_places = st.integers(0, 3)
_errors: st.SearchStrategy[SetpointError] = (
    st.builds(RemoteUnavailable, st.just("down"), st.none() | _seconds)
    | st.builds(OperationRunning, st.just("at work"), st.none() | _seconds)
    | st.builds(WriteConflict, st.just("another write came first"))
)

operations: st.SearchStrategy[Operation] = (
    st.builds(Add, _keys, _priorities, _triggers)
    | st.builds(Schedule, _keys, _seconds, _priorities, _triggers)
    | st.builds(Retry, _keys, _errors, _priorities, _triggers)
    | st.builds(Reset, _keys)
    | st.builds(Forget, _keys)
    | st.builds(Discard, _keys)
    | st.just(Get())
    | st.just(Get())
    | st.builds(Add, _keys, _priorities, _triggers)
    | st.builds(Done, _places)
    | st.builds(GiveUp, _places)
    | st.builds(Done, _places)
    | st.just(Settle())
    | st.builds(Pass, _seconds)
)
# As often long as short: left alone, hypothesis makes lists of five.
programs = st.integers(0, 30).flatmap(lambda size: st.lists(operations, min_size=size, max_size=size))


@dataclass
class Run:
    """A program at work on a queue and on the model of one."""

    queue: WorkQueue[str] = field(default_factory=lambda: WorkQueue(VirtualClock(), jitter=lambda: 0.0))
    model: ModelQueue = field(default_factory=ModelQueue)
    handed_out: list[QueueItem[str]] = field(default_factory=list)
    ended: int = 0
    _getters: list["asyncio.Task[None]"] = field(default_factory=list)

    async def perform(self, operation: Operation) -> None:
        match operation:
            case Get():
                self.model.getters += 1
                self._getters.append(asyncio.create_task(self._get()))
            case GiveUp(index):
                await self._give_up(index)
            case Settle():
                await self.settle()
            case Pass(seconds):
                await self.settle()
                self.model.pass_time(seconds)
                await asyncio.sleep(seconds)
                await self.settle()
            case Reset(key):
                self.queue.reset(key)
                self.model.reset(key)
                assert self.queue.failures(key) == 0
            case _:
                self._change(operation)

    async def settle(self) -> None:
        self.model.hand_out()
        for _ in range(6):
            await asyncio.sleep(0)
        self._getters = [getter for getter in self._getters if not getter.done()]

    async def drain(self) -> None:
        """Continues until no key is queued, delayed or in processing."""
        while self.model.waiting or self.model.processing or self.model.delayed:
            for operation in (Get(), Pass(3600.0), Done(0)):
                await self.perform(operation)
        await self.settle()

    async def end(self) -> None:
        """Cancels every waiting worker."""
        for getter in self._getters:
            getter.cancel()
        await asyncio.gather(*self._getters, return_exceptions=True)

    def _change(self, operation: Add | Schedule | Retry | Forget | Discard | Done) -> None:
        match operation:
            case Add(key, priority, trigger):
                self.queue.add(key, priority, trigger)
                self.model.add(key, priority, trigger)
            case Schedule(key, seconds, priority, trigger):
                self.queue.schedule(key, seconds, priority, trigger)
                self.model.schedule(key, seconds, priority, trigger)
            case Retry(key, error, priority, trigger):
                seconds = self.queue.retry(key, error, priority, trigger)
                assert seconds == self.model.retry(key, error, priority, trigger)
                assert self.queue.failures(key) == self.model.failures[key]
            case Forget(key):
                self.queue.forget(key)
                self.model.forget(key)
            case Discard(key):
                self.queue.discard(key)
                self.model.discard(key)
            case Done(which):
                for key in sorted(self.model.processing)[which : which + 1]:
                    self.queue.done(key)
                    self.model.done(key)

    async def _get(self) -> None:
        found = await self.queue.get()
        if isinstance(found, ShutDown):
            self.ended += 1
        else:
            self.handed_out.append(found)

    async def _give_up(self, index: int) -> None:
        """A worker that was woken, and has not acted yet, can still be cancelled."""
        for getter in [getter for getter in self._getters if not getter.done()][index : index + 1]:
            getter.cancel()
            self._getters.remove(getter)
            self.model.getters -= 1


def figures(snapshot: QueueSnapshot) -> tuple[list[int], int, int]:
    """How many wait by priority, are to come, and are in work."""
    return [snapshot.depth[priority] for priority in Priority], snapshot.delayed, snapshot.processing


def model_figures(model: ModelQueue) -> tuple[list[int], int, int]:
    """The same of the model."""
    waiting = [pending.priority for _, pending in model.waiting.values()]
    return [waiting.count(priority) for priority in Priority], len(model.delayed), len(model.processing)
