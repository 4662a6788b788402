"""Contests: the work queue of a controller, beside what one would write by hand from the standard library.

`python -m benchmarks.queue` runs them alone, and tells the memory that a key costs.
"""

import asyncio
import tracemalloc
import types
import weakref
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Final

import click

from benchmarks.measuring import QUICK, THOROUGH, Contest, Contestant, Figure, check_agreement, measure
from benchmarks.opponents import NOBODY, Opponents
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
CYCLE_LIMIT: Final = 4_000.0  # nanoseconds, in the largest size

_PRIORITY: Final = Priority.RESYNC
_TRIGGER: Final = "resync"


def contests(_opponents: Opponents, most: int = MOST) -> Iterator[Contest]:
    """Each with few keys and with many, at most `most`; a queue of a million takes seconds to fill."""
    for count in sorted({min(count, most) for count in (FEW, MOST)}):
        keys = _keys(count + 1)
        yield Contest(CYCLE, _size(count), (_ours(keys), _by_hand(keys)))
    for count in sorted({min(count, most) for count in (FEW, MANY)}):
        keys = _keys(count)
        yield Contest(DEDUPE, _size(count), (_adding(keys), _noticing(keys)))
        yield Contest(DELAY, _size(count), (_scheduling(keys), _timing(keys)))


def is_held_to_the_bar(figure: Figure) -> bool:
    """Whether it is this figure that may not be above `CYCLE_LIMIT`."""
    return (figure.subject, figure.size, figure.contestant) == (CYCLE, SIZES[-1], OURS)


def bytes_per_key(count: int = MANY) -> dict[str, float]:
    """What each of `count` waiting keys costs, apart from the key itself."""
    keys = _keys(count)
    return {
        "ours, queued": _memory(lambda: _filled(keys)) / count,
        "ours, a look to come": _memory(lambda: _scheduled(keys)) / count,
        BY_HAND: _memory(lambda: _filled_by_hand(keys)) / count,
    }


@click.command()
@click.option("--quick", is_flag=True, help="One call each, of few keys: shows that everything runs.")
def main(*, quick: bool) -> None:
    """Measure the work queue alone."""
    pace, most = (QUICK, FEW) if quick else (THOROUGH, MOST)
    figures: tuple[Figure, ...] = ()
    for contest in contests(NOBODY, most):
        check_agreement(contest)
        figures += measure(contest, pace)
    for figure in figures:
        row = f"{figure.subject:46}{figure.size:>10}  {figure.contestant:38}"
        click.echo(f"{row}{figure.nanoseconds / 1000:8.2f} µs {figure.ratio:6.2f} ×")
    for name, size in bytes_per_key(FEW if quick else MANY).items():
        click.echo(f"{'memory of a key, without the key':46}{'':10}  {name:38}{size:8.0f} bytes")
    met = [figure.nanoseconds <= CYCLE_LIMIT for figure in figures if is_held_to_the_bar(figure)]
    click.echo(f"bars met: {sum(met)} of {len(met)}")


def _keys(count: int) -> list[ResourceRef]:
    group, kind = "sql.cnrm.cloud.google.com", "SQLInstance"
    return [ResourceRef(group, kind, f"team-{number % 100}", f"orders-{number}") for number in range(count)]


def _size(count: int) -> str:
    return f"{count // MOST} M keys" if count >= MOST else f"{count // FEW} k keys"


# --- A cycle: one key more comes in, the one that has waited longest goes out -----------------------------------------


def _ours(keys: list[ResourceRef]) -> Contestant:
    async def cycle() -> None:
        queue = _filled(keys[:-1])
        key = keys[-1]
        while True:
            queue.add(key, _PRIORITY, _TRIGGER)
            item = await queue.get()
            assert not isinstance(item, ShutDown)
            key = item.key
            queue.done(key)
            await _shown(key)

    return _turning(OURS, cycle().send, keys)


def _by_hand(keys: list[ResourceRef]) -> Contestant:
    async def cycle() -> None:
        queue, known, number = _filled_by_hand(keys[:-1])
        key = keys[-1]
        while True:
            if key not in known:
                known.add(key)
                number += 1
                queue.put_nowait((_PRIORITY, number, key))
            _, _, key = await queue.get()
            known.discard(key)
            await _shown(key)

    return _turning(BY_HAND, cycle().send, keys)


def _turning(name: str, send: Callable[[None], object], keys: list[ResourceRef]) -> Contestant:
    """A contestant whose calls give the keys in turn, from the first on."""
    turns = iter(keys)
    return Contestant(name, partial(send, None), lambda found: found is next(turns))


@types.coroutine
def _shown(key: ResourceRef) -> Generator[ResourceRef, None, None]:
    """Ends a cycle: without an event loop, so that the queue is all that is measured."""
    yield key


def _filled(keys: list[ResourceRef]) -> WorkQueue[ResourceRef]:
    queue: WorkQueue[ResourceRef] = WorkQueue(SystemClock())
    for key in keys:
        queue.add(key, _PRIORITY, _TRIGGER)
    return queue


def _filled_by_hand(
    keys: list[ResourceRef],
) -> tuple["asyncio.PriorityQueue[tuple[Priority, int, ResourceRef]]", set[ResourceRef], int]:
    queue: asyncio.PriorityQueue[tuple[Priority, int, ResourceRef]] = asyncio.PriorityQueue()
    for number, key in enumerate(keys):
        queue.put_nowait((_PRIORITY, number, key))
    return queue, set(keys), len(keys)


# --- A key that waits already -----------------------------------------------------------------------------------------


def _adding(keys: list[ResourceRef]) -> Contestant:
    queue, turns = _filled(keys), _Turns(keys)

    def add() -> int:
        queue.add(turns.next(), _PRIORITY, _TRIGGER)
        return 0

    return Contestant(OURS, add, lambda _: queue.snapshot().adds == len(keys))


def _noticing(keys: list[ResourceRef]) -> Contestant:
    (queue, known, _), turns = _filled_by_hand(keys), _Turns(keys)

    def add() -> int:
        key = turns.next()
        if key not in known:
            queue.put_nowait((_PRIORITY, 0, key))
        return 0

    return Contestant(BY_HAND, add, lambda _: queue.qsize() == len(keys))


# --- Another time for the next look -----------------------------------------------------------------------------------


def _scheduling(keys: list[ResourceRef]) -> Contestant:
    queue, turns = _scheduled(keys), _Turns(keys)

    def schedule() -> None:
        queue.schedule(turns.next(), 600.0, _PRIORITY, _TRIGGER)

    return Contestant(OURS, schedule, lambda _: queue.snapshot().delayed == len(keys))


def _scheduled(keys: list[ResourceRef]) -> WorkQueue[ResourceRef]:
    queue: WorkQueue[ResourceRef] = WorkQueue(SystemClock())
    for key in keys:
        queue.schedule(key, 600.0, _PRIORITY, _TRIGGER)
    return queue


def _timing(keys: list[ResourceRef]) -> Contestant:
    loop, turns = asyncio.new_event_loop(), _Turns(keys)
    timers = {key: loop.call_later(600.0, int) for key in keys}

    def schedule() -> None:
        key = turns.next()
        timers[key].cancel()
        timers[key] = loop.call_later(600.0, int)
        if turns.number % len(keys) == 0:
            # A turn of the loop, in which it clears away the timers that were cancelled.
            loop.call_soon(loop.stop)
            loop.run_forever()

    weakref.finalize(schedule, loop.close)
    return Contestant(TIMERS, schedule, lambda _: len(timers) == len(keys))


class _Turns:
    """Keys in turn, for ever."""

    __slots__ = ("_keys", "number")

    def __init__(self, keys: list[ResourceRef]) -> None:
        self._keys = keys
        self.number = 0

    def next(self) -> ResourceRef:
        self.number += 1
        return self._keys[self.number % len(self._keys)]


def _memory(build: Callable[[], object]) -> int:
    """The bytes that what `build` gives takes up."""
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
