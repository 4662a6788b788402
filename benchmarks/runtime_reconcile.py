"""Comparisons: another step for settled resources, without a network and with one; and the plan of such resources."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from benchmarks.buckets import Size, body_of
from benchmarks.comparison import Candidate, Comparison
from benchmarks.setpoint_process import OffsetClock, SetpointProcess
from benchmarks.settled_store import engine_context_for, in_sync_service, open_store
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
DECODING: Final = "orjson.loads of the bytes of each"
UNCHANGED: Final = "pass with a GET of 6 KB that did not change, loopback"
WITH_GET: Final = "ours: queue, engine, Google client, HTTP"
BARE: Final = "the bare GET of our own transport, HttpClient.send: without a bar"
BY_AIOHTTP: Final = "the bare GET of aiohttp"
BY_CLIENT: Final = "the same GET by the Google client, without the engine"
RESYNC: Final = "a look at each of many buckets of 6 KB that did not change, loopback"
BY_LISTS: Final = "ours: lists of 1,000"
BY_GETS: Final = "ours: a GET for each"
_PLANS_PER_CALL: Final = 1_000

# Fetches the bucket of this name; nothing when that fails.
Get: TypeAlias = Callable[[str], Awaitable[bytes | None]]


def no_network(
    process: SetpointProcess, refs: Sequence[ResourceRef], peer_candidates: tuple[Candidate, ...]
) -> Comparison:
    """A step for each of `refs` per call; and operator frameworks that process an event without a change."""
    return Comparison(NO_NETWORK, "", (_reconcile_candidate(OURS, process, refs), *peer_candidates))


def with_get(process: SetpointProcess, refs: Sequence[ResourceRef], alone: Mapping[str, Get]) -> Comparison:
    """A step with a GET over the network; and the same requests `alone`, by name, with the same concurrency."""
    names = [ref.name for ref in refs]
    candidates = [_get_candidate(name, process, names, get) for name, get in alone.items()]
    return Comparison(UNCHANGED, "", (_reconcile_candidate(WITH_GET, process, refs), *candidates))


def resync(
    by_lists: SetpointProcess, clock: OffsetClock, by_gets: SetpointProcess, refs: Sequence[ResourceRef]
) -> Comparison:
    """The resync of two processes with the same buckets: the one with `clock` resyncs by lists, the other by GETs."""
    return Comparison(
        RESYNC, "", (_resync_candidate(by_lists, clock, refs), _reconcile_candidate(BY_GETS, by_gets, refs))
    )


def _resync_candidate(process: SetpointProcess, clock: OffsetClock, refs: Sequence[ResourceRef]) -> Candidate:
    """The result is correct if every bucket was found in sync without a step, and nothing was written."""
    seconds = process.seconds_until_first_resync() + 1
    # The items of the first list are compared with the settled resources; later lists only with the list before.
    process.resync(clock, seconds)
    decisions, steps, revision = Counter(process.decisions()), process.steps(), process.revision()

    def is_correct(_result: object) -> bool:
        decisions[Decision.IN_SYNC.value] += len(refs)
        return (decisions, steps, revision) == (process.decisions(), process.steps(), process.revision())

    return Candidate(BY_LISTS, lambda: process.resync(clock, seconds), is_correct, len(refs))


def _reconcile_candidate(name: str, process: SetpointProcess, refs: Sequence[ResourceRef]) -> Candidate:
    """The result is correct if every step found the bucket in sync, and nothing was written."""
    decisions, revision = Counter(process.decisions()), process.revision()

    def is_correct(_result: object) -> bool:
        decisions[Decision.IN_SYNC.value] += len(refs)
        return decisions == process.decisions() and revision == process.revision()

    return Candidate(name, lambda: process.reconcile_all(refs), is_correct, len(refs))


def _get_candidate(name: str, process: SetpointProcess, buckets: Sequence[str], get: Get) -> Candidate:
    async def fetch_all() -> int:
        remaining, bodies = iter(buckets), 0

        async def work() -> None:
            nonlocal bodies
            for bucket in remaining:
                body = await get(bucket)
                bodies += body is not None

        await asyncio.gather(*(work() for _ in range(process.controller.workers)))
        return bodies

    count = len(buckets)
    return Candidate(name, lambda: process.loop.run_until_complete(fetch_all()), lambda got: got == count, count)


@contextmanager
def plan(path: Path, refs: Sequence[ResourceRef], size: Size) -> Iterator[Comparison]:
    """Plans for some of `refs` per call, for the next ones each time."""
    loop = asyncio.new_event_loop()
    try:
        store = loop.run_until_complete(open_store(path, OpenMode.READ))
        try:
            engine = engine_context_for(store, in_sync_service(len(refs), size))
            candidates = (_plan_candidate(loop, engine, refs), _decoding_candidate(refs, size))
            yield Comparison(PLAN, size.label, candidates)
        finally:
            loop.run_until_complete(store.close())
    finally:
        loop.close()


def _plan_candidate(loop: asyncio.AbstractEventLoop, engine: EngineContext, refs: Sequence[ResourceRef]) -> Candidate:
    count = min(len(refs), _PLANS_PER_CALL)
    parts = cycle([refs[start : start + count] for start in range(0, len(refs) - count + 1, count)])

    async def plan_all(part: Sequence[ResourceRef]) -> list[Plan]:
        return [await preview(ref, engine) for ref in part]

    def is_correct(result: object) -> bool:
        return result == [Plan(Decision.IN_SYNC)] * count

    return Candidate(PREVIEW, lambda: loop.run_until_complete(plan_all(next(parts))), is_correct, count)


def _decoding_candidate(refs: Sequence[ResourceRef], size: Size) -> Candidate:
    """The yardstick: the live state of as many buckets is decoded, and dropped at once."""
    bodies = [body_of(ref.name, size) for ref in refs[:_PLANS_PER_CALL]]

    def decode_all() -> int:
        return sum(orjson.loads(body)["name"] == ref.name for body, ref in zip(bodies, refs, strict=False))

    return Candidate(DECODING, decode_all, lambda result: result == len(bodies), len(bodies))
