"""Contests: one more look at resources at rest, without a network and with one; and the plan of such resources."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final

from benchmarks.buckets import Size
from benchmarks.measuring import Contest, Contestant
from benchmarks.running import Ahead, Running
from benchmarks.settled import open_store, service_of, world_of
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reconcile import preview
from setpoint.stores.sqlite.store import OpenMode

NO_NETWORK: Final = "pass in which nothing moved: queue, engine, store, telemetry"
OURS: Final = "ours: buckets at rest, looked at as bytes of 6 KB"
PLAN: Final = "plan of an unchanged bucket, live state at hand"
PREVIEW: Final = "ours: preview"
UNCHANGED: Final = "pass with a GET of 6 KB that did not change, loopback"
WITH_GET: Final = "ours: queue, engine, Google client, HTTP"
BARE: Final = "the bare GET: HttpClient.send"
RESYNC: Final = "a look at each of many buckets of 6 KB that did not change, loopback"
BY_LISTS: Final = "ours: lists of 1,000"
BY_GETS: Final = "ours: a GET for each"
_AT_ONCE: Final = 1_000


def no_network(process: Running, refs: Sequence[ResourceRef], others: tuple[Contestant, ...]) -> Contest:
    """All of `refs` in each call, beside what others do with an event that brings nothing new."""
    return Contest(NO_NETWORK, "", (_passing(OURS, process, refs), *others))


def with_get(process: Running, refs: Sequence[ResourceRef], urls: Sequence[str], http: HttpClient) -> Contest:
    """A look over the network, beside the same requests alone, as many of them at once."""
    return Contest(UNCHANGED, "", (_passing(WITH_GET, process, refs), _fetching(process, urls, http)))


def resync(by_lists: Running, clock: Ahead, by_gets: Running, refs: Sequence[ResourceRef]) -> Contest:
    """The regular looks of two processes that keep the same buckets: the one with the clock may list them."""
    return Contest(RESYNC, "", (_listing(by_lists, clock, refs), _passing(BY_GETS, by_gets, refs)))


def _listing(process: Running, clock: Ahead, refs: Sequence[ResourceRef]) -> Contestant:
    """Right when every look found the bucket in sync without a step, and nothing was written."""
    seconds = process.seconds_until_looks() + 1
    # The first list is compared with what is at rest; from then on it is enough that nothing of it has changed.
    process.resync(clock, seconds)
    taken, steps, before = Counter(process.decisions()), process.steps(), process.revision()

    def is_right(_answer: object) -> bool:
        taken[Decision.IN_SYNC.value] += len(refs)
        return (taken, steps, before) == (process.decisions(), process.steps(), process.revision())

    return Contestant(BY_LISTS, lambda: process.resync(clock, seconds), is_right, len(refs))


def _passing(name: str, process: Running, refs: Sequence[ResourceRef]) -> Contestant:
    """Right when every step found the bucket in sync, and none of them wrote anything."""
    taken, before = Counter(process.decisions()), process.revision()

    def is_right(_answer: object) -> bool:
        taken[Decision.IN_SYNC.value] += len(refs)
        return taken == process.decisions() and before == process.revision()

    return Contestant(name, lambda: process.pass_over(refs), is_right, len(refs))


def _fetching(process: Running, urls: Sequence[str], http: HttpClient) -> Contestant:
    async def fetch_all() -> Counter[int]:
        left, statuses = iter(urls), Counter[int]()

        async def work() -> None:
            for url in left:
                statuses[(await http.send(HttpRequest("GET", url))).status] += 1

        await asyncio.gather(*(work() for _ in range(process.controller.workers)))
        return statuses

    expected = Counter({200: len(urls)})
    return Contestant(
        BARE, lambda: process.loop.run_until_complete(fetch_all()), lambda answer: answer == expected, len(urls)
    )


@contextmanager
def plan(path: Path, refs: Sequence[ResourceRef], size: Size) -> Iterator[Contest]:
    """A part of `refs` in each call, the next one each time."""
    loop = asyncio.new_event_loop()
    try:
        store = loop.run_until_complete(open_store(path, OpenMode.READ))
        try:
            engine = world_of(store, service_of(len(refs), size))
            yield Contest(PLAN, size.label, (_planning(loop, engine, refs),))
        finally:
            loop.run_until_complete(store.close())
    finally:
        loop.close()


def _planning(loop: asyncio.AbstractEventLoop, engine: EngineContext, refs: Sequence[ResourceRef]) -> Contestant:
    count = min(len(refs), _AT_ONCE)
    parts = cycle([refs[start : start + count] for start in range(0, len(refs) - count + 1, count)])

    async def plan_all(part: Sequence[ResourceRef]) -> list[Plan]:
        return [await preview(ref, engine) for ref in part]

    def is_right(answer: object) -> bool:
        return answer == [Plan(Decision.IN_SYNC)] * count

    return Contestant(PREVIEW, lambda: loop.run_until_complete(plan_all(next(parts))), is_right, count)
