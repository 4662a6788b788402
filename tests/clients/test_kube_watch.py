"""Watches: what is told, what is taken up again, and what ends one."""

import asyncio
from contextlib import aclosing, nullcontext
from itertools import pairwise

import pytest
from aiohttp import web

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, Representation
from setpoint.clients.kubernetes.watch import WatchEvent, WatchTimeouts, watch
from setpoint.errors import KindNotServed, RemoteError, RemoteExpired, RemoteRefused, RemoteUnavailable
from tests.clients.fake_api_server import (
    FakeCluster,
    FakeCredentials,
    Reaction,
    breaks_at_once,
    error_event,
    event,
    refuses,
    sends_events,
    sends_then_breaks,
    sends_then_idles,
    serving,
    started_stream,
)
from tests.clients.manual_time import run

PODS = Endpoint("", "v1", "pods", "shop")
# The longest delays.
NO_JITTER = WatchTimeouts(jitter=lambda: 1.0)


async def hear(client: KubernetesClient, count: int, timeouts: WatchTimeouts = NO_JITTER) -> list[str]:
    """The first events, as change and resource version."""
    heard: list[str] = []
    async with aclosing(watch(client, PODS, "5", timeouts=timeouts)) as events:
        async for one in events:
            heard.append(told(one))
            if len(heard) == count:
                break
    return heard


def told(one: WatchEvent) -> str:
    version = bytes(one.object).partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()
    return f"{one.type.value} {version}"


def heard(count: int, *scenes: Reaction) -> tuple[list[str], FakeCluster]:
    """What is heard of a cluster with these scenes, in no time at all."""

    async def main() -> tuple[list[str], FakeCluster]:
        async with serving(*scenes) as (cluster, client):
            return await hear(client, count), cluster

    return run(main())


def error_of(*scenes: Reaction) -> tuple[RemoteError, FakeCluster]:
    async def main() -> tuple[RemoteError, FakeCluster]:
        async with serving(*scenes) as (cluster, client):
            with pytest.raises(RemoteError) as caught:
                await hear(client, 1_000)
            return caught.value, cluster

    return run(main())


# --- What is asked and told -------------------------------------------------------------------------------------------


def test_asks_for_bookmarks_and_an_end_in_five_to_ten_minutes() -> None:
    async def main() -> list[dict[str, str]]:
        queries = []
        for dice in (0.0, 1.0):
            async with serving(sends_events(event("ADDED", 6))) as (cluster, client):
                await hear(client, 1, WatchTimeouts(jitter=lambda dice=dice: dice))  # type: ignore[misc]  # bound at once
                queries.append(dict(cluster.requests[0].rel_url.query))
        return queries

    shortest, longest = asyncio.run(main())

    assert shortest == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "300",
    }
    assert longest["timeoutSeconds"] == "600"


def test_a_watch_sends_selectors_and_representation() -> None:
    async def main() -> FakeCluster:
        selection = ObjectSelector("app=web", "metadata.name=web", Representation.METADATA)
        async with serving(sends_events(event("ADDED", 6))) as (cluster, client):
            async with aclosing(watch(client, PODS, "5", selection)) as events:
                await anext(events)
            return cluster

    request = asyncio.run(main()).requests[0]

    assert request.path == "/api/v1/namespaces/shop/pods"
    assert request.rel_url.query["labelSelector"] == "app=web"
    assert request.rel_url.query["fieldSelector"] == "metadata.name=web"
    assert request.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


def test_yields_every_event_and_bookmark() -> None:
    context = sends_events(event("ADDED", 6), event("MODIFIED", 7), event("BOOKMARK", 9), event("DELETED", 10))

    events, _ = heard(4, context)

    assert events == ["ADDED 6", "MODIFIED 7", "BOOKMARK 9", "DELETED 10"]


# --- What is taken up again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        sends_events(event("ADDED", 6), event("MODIFIED", 7)),
        sends_then_breaks(event("ADDED", 6), event("MODIFIED", 7)),
        sends_then_breaks(event("ADDED", 6), event("MODIFIED", 7), half=b'{"type":"DELETED","object":{"metada'),
        sends_then_idles(event("ADDED", 6), event("MODIFIED", 7)),
        sends_events(event("ADDED", 6), event("MODIFIED", 7), error_event(500, "InternalError")),
        sends_events(event("ADDED", 6), event("MODIFIED", 7), {"type": "NEW", "object": {}}),
    ],
    ids=["ended", "cut", "cut in the middle of an event", "silent", "an error on its side", "an unknown event"],
)
def test_resumes_from_the_last_event(first: Reaction) -> None:
    events, cluster = heard(3, first, sends_events(event("DELETED", 8)))

    assert events == ["ADDED 6", "MODIFIED 7", "DELETED 8"]
    assert cluster.versions == ["5", "7"]


def test_resumes_from_a_bookmark() -> None:
    _, cluster = heard(2, sends_events(event("BOOKMARK", 99)), sends_events(event("ADDED", 100)))

    assert cluster.versions == ["5", "99"]


def test_resumes_from_the_start_when_there_was_no_event() -> None:
    _, cluster = heard(1, sends_events(), sends_events(), sends_events(event("ADDED", 6)))

    assert cluster.versions == ["5", "5", "5"]


def test_an_idle_stream_is_closed_after_ninety_seconds() -> None:
    _, cluster = heard(2, sends_then_idles(event("ADDED", 6)), sends_events(event("ADDED", 7)))

    # A moment after it was cut, with jitter.
    assert cluster.times[1] - cluster.times[0] == pytest.approx(90.25, abs=0.1)


def test_after_a_regular_end_the_watch_is_reopened_at_once() -> None:
    _, cluster = heard(2, sends_events(event("ADDED", 6), lasting=60.0), sends_events(event("ADDED", 7)))

    assert cluster.times[1] - cluster.times[0] == pytest.approx(60.0, abs=0.1)


def test_watches_that_end_at_once_are_reopened_with_backoff() -> None:
    _, cluster = heard(1, *[sends_events()] * 9, sends_events(event("ADDED", 6)))

    assert delays(cluster) == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]


def test_every_event_resets_the_backoff() -> None:
    scenes = [sends_then_breaks(event("ADDED", number)) for number in range(6, 12)]

    events, cluster = heard(6, *scenes)

    assert events == [f"ADDED {number}" for number in range(6, 12)]
    assert delays(cluster) == [0.25] * 5


@pytest.mark.parametrize(
    "trouble",
    [refuses(503, "ServiceUnavailable"), refuses(500, "InternalError"), refuses(504, "Timeout")],
    ids=["503", "500", "504"],
)
def test_server_errors_at_the_start_are_retried_with_backoff(trouble: Reaction) -> None:
    events, cluster = heard(1, trouble, trouble, sends_events(event("ADDED", 6)))

    assert events == ["ADDED 6"]
    assert cluster.versions == ["5"] * 3
    assert delays(cluster) == [0.25, 0.5]


def test_a_broken_connection_at_the_start_is_retried_with_backoff() -> None:
    # The HTTP library itself asks once more, at once.
    _, cluster = heard(1, *[breaks_at_once] * 4, sends_events(event("ADDED", 6)))

    assert delays(cluster) == [0.0, 0.25, 0.0, 0.5]


@pytest.mark.parametrize(
    "busy",
    [
        refuses(429, "TooManyRequests", {"Retry-After": "3"}),
        refuses(429, "TooManyRequests", {"Retry-After": "3"}, "storage is (re)initializing"),
    ],
    ids=["all of it", "this kind"],
)
def test_retry_after_is_honoured(busy: Reaction) -> None:
    events, cluster = heard(1, busy, sends_events(event("ADDED", 6)))

    assert events == ["ADDED 6"]
    assert delays(cluster) == [3.0]


def delays(cluster: FakeCluster) -> list[float]:
    """How long after one request the next came; what happens by itself takes no time."""
    return [round(later - earlier, 1 if later - earlier > 1 else 2) for earlier, later in pairwise(cluster.times)]


@pytest.mark.parametrize("left", [0, 1])
def test_a_refused_token_is_replaced_once(left: int) -> None:
    async def main() -> list[str]:
        scenes = (refuses(401, "Unauthorized"), sends_events(event("ADDED", 6)))
        async with serving(*scenes, credentials=FakeCredentials(left)) as (cluster, client):
            with nullcontext() if left else pytest.raises(RemoteRefused):
                await hear(client, 1)
            return [one.headers["Authorization"] for one in cluster.requests]

    assert asyncio.run(main()) == ["Bearer t0", "Bearer t1"][: left + 1]


# --- What ends it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenes", "kind"),
    [
        ([refuses(410, "Expired")], RemoteExpired),
        ([sends_events(event("ADDED", 6), error_event(410, "Expired"))], RemoteExpired),
        ([sends_then_breaks(event("ADDED", 6)), refuses(410, "Gone")], RemoteExpired),
        ([refuses(403, "Forbidden")], RemoteRefused),
        ([sends_events(error_event(403, "Forbidden"))], RemoteRefused),
        ([sends_then_breaks(event("ADDED", 6)), refuses(404, "NotFound")], KindNotServed),
    ],
    ids=["410", "410 as an event", "410 later", "403", "403 as an event", "the kind is gone"],
)
def test_a_client_error_ends_the_watch(scenes: list[Reaction], kind: type[RemoteError]) -> None:
    error, _ = error_of(*scenes)

    assert type(error) is kind
    assert "/api/v1/namespaces/shop/pods: 4" in str(error)


def test_an_outage_of_a_minute_ends_the_watch() -> None:
    error, cluster = error_of(sends_then_breaks(event("ADDED", 6)), breaks_at_once)

    assert type(error) is RemoteUnavailable
    assert 60.0 <= cluster.times[-1] - cluster.times[1] < 80.0


def test_the_retry_time_starts_again_after_an_opened_watch() -> None:
    away = [breaks_at_once] * 6

    events, _ = heard(2, *away, sends_events(event("ADDED", 6), lasting=20.0), *away, sends_events(event("ADDED", 7)))

    assert events == ["ADDED 6", "ADDED 7"]


def until_left(left: asyncio.Event) -> Reaction:
    """One event; then empty lines until the client disconnects."""

    async def context(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, event("ADDED", 6))
        try:
            while True:
                await response.write(b"\n")
                await asyncio.sleep(0.01)
        except ConnectionResetError:
            left.set()
        return response

    return context


def test_a_watch_that_is_left_closes_the_connection() -> None:
    async def main() -> bool:
        left = asyncio.Event()
        async with serving(until_left(left)) as (_, client):
            await hear(client, 1)
            async with asyncio.timeout(10):
                return await left.wait()

    assert asyncio.run(main())


def test_a_watch_that_is_cancelled_closes_the_connection() -> None:
    async def main() -> bool:
        left = asyncio.Event()
        async with serving(until_left(left)) as (cluster, client):
            task = asyncio.create_task(hear(client, 2))
            while not cluster.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with asyncio.timeout(10):
                return await left.wait()

    assert asyncio.run(main())
