"""The group `runtime`: the long-running process, from the work queue to the service and back."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp

from benchmarks import work_queue
from benchmarks.bucket_server import UNLISTED, running_buckets
from benchmarks.buckets import SMALL, USUAL, Size, name_of, ref_of
from benchmarks.comparison import BenchmarkSettings, Candidate, Comparison
from benchmarks.peer_packages import Peers
from benchmarks.runtime_latency import WriteTimes, cold_start, edit_latency
from benchmarks.runtime_memory import memory
from benchmarks.runtime_reconcile import BARE, BY_AIOHTTP, BY_CLIENT, no_network, plan, resync, with_get
from benchmarks.scenarios import Benchmark, Scenario
from benchmarks.setpoint_process import OffsetClock, SetpointProcess, running_process
from benchmarks.settled_store import in_sync_service, write_settled_store
from setpoint.clients.google.calls import GoogleCall, GoogleService, quota_key
from setpoint.clients.google.client import (
    AUTH_VARIABLE,
    STORAGE_ENDPOINT_VARIABLE,
    GoogleAuth,
    GoogleClient,
    settings_from,
)
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.ratelimit.token_bucket import AimdSettings as CallRate

RESOURCES: Final = 10_000
MANY: Final = 100_000
EVENTS: Final = 500
EDITS: Final = 300
LISTED: Final = 2_000
# Without a limit in effect: the calls are measured, not the wait for the rate limiter.
_UNLIMITED: Final = CallRate(start=1e6, burst=1e6, ceiling=1e6, growth=0.0)


def benchmarks(peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """All benchmarks of the group. The set-up of each is made right before it, and removed after it."""
    yield from work_queue.comparisons(peers, settings.scaled(work_queue.MOST))
    with TemporaryDirectory() as name:
        folder = Path(name)
        yield from _without_network(folder, peers, settings)
        yield from _with_network(folder, settings)
        yield from _resync_by_lists(folder, settings)
        yield Scenario(lambda: memory(folder, settings.scaled(MANY)))


def _without_network(folder: Path, peers: Peers, settings: BenchmarkSettings) -> Iterator[Benchmark]:
    count = settings.scaled(RESOURCES)
    refs = [ref_of(number) for number in range(count)]
    for size in (SMALL, USUAL):
        write_settled_store(_path(folder, size), count, size)
        with plan(_path(folder, size), refs, size) as comparison:
            yield comparison
        yield Scenario(partial(cold_start, _path(folder, size), count, size))
    write_times = WriteTimes()
    service = in_sync_service(count, USUAL, write_times.record)
    with running_process(_path(folder, USUAL), service) as process:
        process.wait_until_idle()
        with _peer_candidates(process, peers, settings) as peer_candidates:
            yield no_network(process, refs, peer_candidates)
        edited = range(0, count, max(1, count // settings.scaled(EDITS)))
        yield Scenario(lambda: edit_latency(process, service, edited, size=USUAL, write_times=write_times))


def _path(folder: Path, size: Size) -> Path:
    return folder / f"{size.label}.db"


@contextmanager
def _peer_candidates(
    process: SetpointProcess, peers: Peers, settings: BenchmarkSettings
) -> Iterator[tuple[Candidate, ...]]:
    """The candidates of the operator frameworks, with some of the same resources."""
    listing = process.loop.run_until_complete(process.store.list())
    documents = [resource.document for resource in listing.resources[: settings.scaled(EVENTS)]]
    with ExitStack() as stack:
        yield tuple(
            candidate
            for framework in peers.operator_frameworks
            for candidate in stack.enter_context(framework.noop_candidates(documents))
        )


def _with_network(folder: Path, settings: BenchmarkSettings) -> Iterator[Comparison]:
    count, path = settings.scaled(EVENTS), folder / "network.db"
    write_settled_store(path, count, USUAL)
    refs = [ref_of(number) for number in range(count)]
    with running_buckets() as address, running_process(path, _client(address + UNLISTED)) as process:
        process.wait_until_idle()
        http, google = HttpClient(), _client(address)
        urls = {ref.name: address + _get(ref.name).path for ref in refs}

        async def bare(name: str) -> bytes | None:
            response = await http.send(HttpRequest("GET", urls[name]))
            return response.body if response.status == 200 else None

        session = process.loop.run_until_complete(_aiohttp_session())

        async def by_aiohttp(name: str) -> bytes | None:
            async with session.get(urls[name]) as response:
                return await response.read() if response.status == 200 else None

        alone = {BARE: bare, BY_AIOHTTP: by_aiohttp, BY_CLIENT: lambda name: google.get(_get(name))}
        try:
            yield with_get(process, refs, alone)
        finally:
            for client in (http, session, google):
                process.loop.run_until_complete(client.close())


async def _aiohttp_session() -> aiohttp.ClientSession:
    # Made in the event loop that it is for.
    return aiohttp.ClientSession()


def _resync_by_lists(folder: Path, settings: BenchmarkSettings) -> Iterator[Comparison]:
    count, paths = settings.scaled(LISTED), (folder / "listed.db", folder / "unlisted.db")
    for path in paths:
        write_settled_store(path, count, USUAL)
    refs, clock = [ref_of(number) for number in range(count)], OffsetClock()
    with (
        running_buckets(count) as address,
        running_process(paths[0], _client(address), clock) as listed,
        running_process(paths[1], _client(address + UNLISTED)) as unlisted,
    ):
        listed.wait_until_idle()
        unlisted.wait_until_idle()
        yield resync(listed, clock, unlisted, refs)


def _client(address: str) -> GoogleClient:
    budgets = QuotaBudgets()
    budgets.make(quota_key("GET", _get(name_of(0))), _UNLIMITED, address)
    settings = settings_from({STORAGE_ENDPOINT_VARIABLE: address, AUTH_VARIABLE: GoogleAuth.ANONYMOUS.value})
    return GoogleClient(HttpClient(), settings, budgets=budgets)


def _get(name: str) -> GoogleCall:
    return GoogleCall(GoogleService.STORAGE, ("b", name))
