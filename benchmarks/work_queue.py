"""Comparisons: the work queue of a controller, and an equivalent from the standard library.

`python -m benchmarks.work_queue` runs them alone, and prints the memory per key.
"""

import asyncio
import tracemalloc
import types
import weakref
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Final

import click

from benchmarks.comparison import QUICK, THOROUGH, Candidate, Comparison, Timing, measure
from benchmarks.peer_packages import NO_PEERS, Peers
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.workqueue.queue import ShutDown, WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority

CYCLE: Final = "work queue: add, get, done"
DEDUPE: Final = "work queue: add of a key that waits already"
DELAY: Final = "work queue: another time for the next look"
OURS: Final = "ours"
BY_HAND: Final = "asyncio.PriorityQueue + set"
TIMERS: Final = "asyncio's timers: cancel, call_later"
FEW: Final = 1_000
MANY: Final = 100_000
MOST: Final = 1_000_000
SIZES: Final = ("1 k keys", "100 k keys", "1 M keys")
CYCLE_RATIO: Final = 0.7  # of the standard library's, in the largest size

_PRIORITY: Final = Priority.RESYNC
_TRIGGER: Final = "resync"


def comparisons(_peers: Peers, most: int = MOST) -> Iterator[Comparison]:
    """Each with few keys and with many, at most `most`: a queue of a million takes seconds to fill."""
    for count in sorted({min(count, most) for count in (FEW, MOST)}):
        keys = _keys(count + 1)
        yield Comparison(CYCLE, _size(count), (_work_queue_cycle(keys), _priority_queue_cycle(keys)))
    for count in sorted({min(count, most) for count in (FEW, MANY)}):
        keys = _keys(count)
        yield Comparison(DEDUPE, _size(count), (_work_queue_add(keys), _priority_queue_add(keys)))
        yield Comparison(DELAY, _size(count), (_work_queue_schedule(keys), _timer_schedule(keys)))


def has_target(timing: Timing) -> bool:
    """Whether ours has to take at most `CYCLE_RATIO` of this timing."""
    return (timing.subject, timing.size, timing.candidate) == (CYCLE, SIZES[-1], BY_HAND)


def bytes_per_key(count: int = MANY) -> dict[str, float]:
    """The memory of each of `count` waiting keys, without the key itself."""
    keys = _keys(count)
    return {
        "ours, queued": _traced_bytes(lambda: _filled_work_queue(keys)) / count,
        "ours, a look to come": _traced_bytes(lambda: _scheduled_work_queue(keys)) / count,
        BY_HAND: _traced_bytes(lambda: _filled_priority_queue(keys)) / count,
    }


@click.command()
@click.option("--quick", is_flag=True, help="One call each, of few keys: shows that everything runs.")
def main(*, quick: bool) -> None:
    """Measure the work queue alone."""
    settings, most = (QUICK, FEW) if quick else (THOROUGH, MOST)
    timings: tuple[Timing, ...] = ()
    for comparison in comparisons(NO_PEERS, most):
        timings += measure(comparison, settings)
    for timing in timings:
        row = f"{timing.subject:46}{timing.size:>10}  {timing.candidate:38}"
        click.echo(f"{row}{timing.nanoseconds / 1000:8.2f} µs {timing.ratio:6.2f} ×")
    for name, size in bytes_per_key(FEW if quick else MANY).items():
        click.echo(f"{'memory of a key, without the key':46}{'':10}  {name:38}{size:8.0f} bytes")
    met = [1 / timing.ratio <= CYCLE_RATIO for timing in timings if has_target(timing)]
    click.echo(f"bars met: {sum(met)} of {len(met)}")


def _keys(count: int) -> list[ResourceRef]:
    group, kind = "sql.cnrm.cloud.google.com", "SQLInstance"
    return [ResourceRef(group, kind, f"team-{number % 100}", f"orders-{number}") for number in range(count)]


def _size(count: int) -> str:
    return f"{count // MOST} M keys" if count >= MOST else f"{count // FEW} k keys"


# --- A cycle: add a key, get the key that has waited longest, mark it done --------------------------------------------


def _work_queue_cycle(keys: list[ResourceRef]) -> Candidate:
    async def cycle() -> None:
        queue = _filled_work_queue(keys[:-1])
        key = keys[-1]
        while True:
            queue.add(key, _PRIORITY, _TRIGGER)
            # As a controller does.
            item = queue.take() or await queue.get()
            assert not isinstance(item, ShutDown)
            key = item.key
            queue.done(key)
            await _yield_key(key)

    return _cycle_candidate(OURS, cycle().send, keys)


def _priority_queue_cycle(keys: list[ResourceRef]) -> Candidate:
    async def cycle() -> None:
        queue, queued, number = _filled_priority_queue(keys[:-1])
        key = keys[-1]
        while True:
            if key not in queued:
                queued.add(key)
                number += 1
                queue.put_nowait((_PRIORITY, number, key))
            _, _, key = await queue.get()
            queued.discard(key)
            await _yield_key(key)

    return _cycle_candidate(BY_HAND, cycle().send, keys)


def _cycle_candidate(name: str, send: Callable[[None], object], keys: list[ResourceRef]) -> Candidate:
    """A candidate whose calls have to return the keys in turn, from the first on."""
    keys_in_turn = iter(keys)
    return Candidate(name, partial(send, None), lambda result: result is next(keys_in_turn))


@types.coroutine
def _yield_key(key: ResourceRef) -> Generator[ResourceRef, None, None]:
    """Ends a cycle by a yield: there is no event loop, so that only the queue is measured."""
    yield key


def _filled_work_queue(keys: list[ResourceRef]) -> WorkQueue[ResourceRef]:
    queue: WorkQueue[ResourceRef] = WorkQueue(SystemClock())
    for key in keys:
        queue.add(key, _PRIORITY, _TRIGGER)
    return queue


def _filled_priority_queue(
    keys: list[ResourceRef],
) -> tuple["asyncio.PriorityQueue[tuple[Priority, int, ResourceRef]]", set[ResourceRef], int]:
    queue: asyncio.PriorityQueue[tuple[Priority, int, ResourceRef]] = asyncio.PriorityQueue()
    for number, key in enumerate(keys):
        queue.put_nowait((_PRIORITY, number, key))
    return queue, set(keys), len(keys)


# --- Add of a key that is queued already ------------------------------------------------------------------------------


def _work_queue_add(keys: list[ResourceRef]) -> Candidate:
    queue, keys_in_turn = _filled_work_queue(keys), _KeysInTurn(keys)

    def add() -> int:
        queue.add(keys_in_turn.next(), _PRIORITY, _TRIGGER)
        return 0

    return Candidate(OURS, add, lambda _: queue.snapshot().adds == len(keys))


def _priority_queue_add(keys: list[ResourceRef]) -> Candidate:
    (queue, queued, _), keys_in_turn = _filled_priority_queue(keys), _KeysInTurn(keys)

    def add() -> int:
        key = keys_in_turn.next()
        if key not in queued:
            queue.put_nowait((_PRIORITY, 0, key))
        return 0

    return Candidate(BY_HAND, add, lambda _: queue.qsize() == len(keys))


# --- Schedule of a key that is scheduled already ----------------------------------------------------------------------


def _work_queue_schedule(keys: list[ResourceRef]) -> Candidate:
    queue, keys_in_turn = _scheduled_work_queue(keys), _KeysInTurn(keys)

    def schedule() -> None:
        queue.schedule(keys_in_turn.next(), 600.0, _PRIORITY, _TRIGGER)

    return Candidate(OURS, schedule, lambda _: queue.snapshot().delayed == len(keys))


def _scheduled_work_queue(keys: list[ResourceRef]) -> WorkQueue[ResourceRef]:
    queue: WorkQueue[ResourceRef] = WorkQueue(SystemClock())
    for key in keys:
        queue.schedule(key, 600.0, _PRIORITY, _TRIGGER)
    return queue


def _timer_schedule(keys: list[ResourceRef]) -> Candidate:
    loop, keys_in_turn = asyncio.new_event_loop(), _KeysInTurn(keys)
    timers = {key: loop.call_later(600.0, int) for key in keys}

    def schedule() -> None:
        key = keys_in_turn.next()
        timers[key].cancel()
        timers[key] = loop.call_later(600.0, int)
        if keys_in_turn.number % len(keys) == 0:
            # One iteration of the loop, in which it removes the cancelled timers.
            loop.call_soon(loop.stop)
            loop.run_forever()

    weakref.finalize(schedule, loop.close)
    return Candidate(TIMERS, schedule, lambda _: len(timers) == len(keys))


class _KeysInTurn:
    """Repeats the keys in turn."""

    __slots__ = ("_keys", "number")

    def __init__(self, keys: list[ResourceRef]) -> None:
        self._keys = keys
        self.number = 0

    def next(self) -> ResourceRef:
        self.number += 1
        return self._keys[self.number % len(self._keys)]


def _traced_bytes(build: Callable[[], object]) -> int:
    """The traced memory of the object that `build` returns."""
    tracemalloc.start()
    try:
        built = build()
        size, _ = tracemalloc.get_traced_memory()
        del built
    finally:
        tracemalloc.stop()
    return size


if __name__ == "__main__":
    main()
