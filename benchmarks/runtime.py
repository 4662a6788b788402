"""The group `runtime`: the process that goes on for ever, from its queue to the service and back."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import queue
from benchmarks.buckets import SMALL, USUAL, Size, name_of, ref_of
from benchmarks.loopback import UNLISTED, serving
from benchmarks.measuring import Contest, Contestant, Pace
from benchmarks.opponents import Opponents
from benchmarks.running import Ahead, Running, running
from benchmarks.runtime_latency import Arrivals, cold_start, edits
from benchmarks.runtime_memory import memory
from benchmarks.runtime_passes import no_network, plan, resync, with_get
from benchmarks.settled import service_of, settle
from benchmarks.surveys import Survey, Trial
from setpoint.clients.google.calls import GoogleCall, GoogleService, quota_key
from setpoint.clients.google.client import (
    AUTH_VARIABLE,
    STORAGE_ENDPOINT_VARIABLE,
    GoogleAuth,
    GoogleClient,
    settings_from,
)
from setpoint.clients.http import HttpClient
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.ratelimit.token_bucket import AimdSettings as CallRate

RESOURCES: Final = 10_000
MANY: Final = 100_000
EVENTS: Final = 500
EDITS: Final = 300
LISTED: Final = 2_000
# Of a service that takes everything at once: what is measured is the calls, not the wait for one's turn.
_UNLIMITED: Final = CallRate(start=1e6, burst=1e6, ceiling=1e6, growth=0.0)


def trials(opponents: Opponents, pace: Pace) -> Generator[Trial, None, None]:
    """Everything, each with what it needs set up when its turn comes, and taken down after it."""
    yield from queue.contests(opponents, pace.number(queue.MOST))
    with TemporaryDirectory() as name:
        folder = Path(name)
        yield from _at_rest(folder, opponents, pace)
        yield from _over_the_network(folder, pace)
        yield from _by_lists(folder, pace)
        yield Survey(lambda: memory(folder, pace.number(MANY)))


def _at_rest(folder: Path, opponents: Opponents, pace: Pace) -> Iterator[Trial]:
    count = pace.number(RESOURCES)
    refs = [ref_of(number) for number in range(count)]
    for size in (SMALL, USUAL):
        settle(_path(folder, size), count, size)
        with plan(_path(folder, size), refs, size) as contest:
            yield contest
        yield Survey(partial(cold_start, _path(folder, size), count, size))
    arrivals = Arrivals()
    with running(_path(folder, USUAL), service_of(count, USUAL, arrivals.note)) as process:
        process.until_at_rest()
        with _rivals(process, opponents, pace) as others:
            yield no_network(process, refs, others)
        edited = range(0, count, max(1, count // pace.number(EDITS)))
        yield Survey(lambda: edits(process, edited, USUAL, arrivals))


def _path(folder: Path, size: Size) -> Path:
    return folder / f"{size.label}.db"


@contextmanager
def _rivals(process: Running, opponents: Opponents, pace: Pace) -> Iterator[tuple[Contestant, ...]]:
    """Others, with some of the same resources."""
    listing = process.loop.run_until_complete(process.store.list())
    documents = [resource.document for resource in listing.resources[: pace.number(EVENTS)]]
    with ExitStack() as stack:
        yield tuple(
            contestant for one in opponents.operators for contestant in stack.enter_context(one.no_op(documents))
        )


def _over_the_network(folder: Path, pace: Pace) -> Iterator[Contest]:
    count, path = pace.number(EVENTS), folder / "network.db"
    settle(path, count, USUAL)
    refs = [ref_of(number) for number in range(count)]
    with serving() as address, running(path, _client(address + UNLISTED)) as process:
        process.until_at_rest()
        http = HttpClient()
        urls = [address + _get(name_of(number)).path for number in range(count)]
        try:
            yield with_get(process, refs, urls, http)
        finally:
            process.loop.run_until_complete(http.close())


def _by_lists(folder: Path, pace: Pace) -> Iterator[Contest]:
    count, paths = pace.number(LISTED), (folder / "listed.db", folder / "unlisted.db")
    for path in paths:
        settle(path, count, USUAL)
    refs, clock = [ref_of(number) for number in range(count)], Ahead()
    with (
        serving(count) as address,
        running(paths[0], _client(address), clock) as listed,
        running(paths[1], _client(address + UNLISTED)) as unlisted,
    ):
        listed.until_at_rest()
        unlisted.until_at_rest()
        yield resync(listed, clock, unlisted, refs)


def _client(address: str) -> GoogleClient:
    budgets = QuotaBudgets()
    budgets.make(quota_key("GET", _get(name_of(0))), _UNLIMITED, address)
    settings = settings_from({STORAGE_ENDPOINT_VARIABLE: address, AUTH_VARIABLE: GoogleAuth.ANONYMOUS.value})
    return GoogleClient(HttpClient(), settings, budgets=budgets)


def _get(name: str) -> GoogleCall:
    return GoogleCall(GoogleService.STORAGE, ("b", name))
