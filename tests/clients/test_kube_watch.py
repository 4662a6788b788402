"""Watches: the events, how a broken watch is resumed, and what ends one."""

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
    FakeApiServer,
    FakeCredentials,
    Reaction,
    breaks_at_once,
    error_event,
    event,
    fake_api_server,
    refuses,
    sends_events,
    sends_then_breaks,
    sends_then_idles,
    started_stream,
)
from tests.clients.manual_time import run

PODS = Endpoint("", "v1", "pods", "shop")
# The longest delays.
NO_JITTER = WatchTimeouts(jitter=lambda: 1.0)


async def first_events(client: KubernetesClient, count: int, timeouts: WatchTimeouts = NO_JITTER) -> list[str]:
    """The first events, as type and resource version."""
    found: list[str] = []
    async with aclosing(watch(client, PODS, "5", timeouts=timeouts)) as events:
        async for one in events:
            found.append(summary(one))
            if len(found) == count:
                break
    return found


def summary(one: WatchEvent) -> str:
    version = bytes(one.object).partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()
    return f"{one.type.value} {version}"


def events_of(count: int, *reactions: Reaction) -> tuple[list[str], FakeApiServer]:
    """The first events from a fake API server with these reactions, without waiting; and the server."""

    async def main() -> tuple[list[str], FakeApiServer]:
        async with fake_api_server(*reactions) as (server, client):
            return await first_events(client, count), server

    return run(main())


def error_of(*reactions: Reaction) -> tuple[RemoteError, FakeApiServer]:
    async def main() -> tuple[RemoteError, FakeApiServer]:
        async with fake_api_server(*reactions) as (server, client):
            with pytest.raises(RemoteError) as caught:
                await first_events(client, 1_000)
            return caught.value, server

    return run(main())


# --- The request and its events ---------------------------------------------------------------------------------------


def test_asks_for_bookmarks_and_an_end_in_five_to_ten_minutes() -> None:
    async def main() -> list[dict[str, str]]:
        queries = []
        for drawn in (0.0, 1.0):
            async with fake_api_server(sends_events(event("ADDED", 6))) as (server, client):
                await first_events(client, 1, WatchTimeouts(jitter=lambda drawn=drawn: drawn))  # type: ignore[misc]  # bound at once
                queries.append(dict(server.requests[0].rel_url.query))
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
    async def main() -> FakeApiServer:
        selection = ObjectSelector("app=web", "metadata.name=web", Representation.METADATA)
        async with fake_api_server(sends_events(event("ADDED", 6))) as (server, client):
            async with aclosing(watch(client, PODS, "5", selection)) as events:
                await anext(events)
            return server

    request = asyncio.run(main()).requests[0]

    assert request.path == "/api/v1/namespaces/shop/pods"
    assert request.rel_url.query["labelSelector"] == "app=web"
    assert request.rel_url.query["fieldSelector"] == "metadata.name=web"
    assert request.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


def test_yields_every_event_and_bookmark() -> None:
    reaction = sends_events(event("ADDED", 6), event("MODIFIED", 7), event("BOOKMARK", 9), event("DELETED", 10))

    events, _ = events_of(4, reaction)

    assert events == ["ADDED 6", "MODIFIED 7", "BOOKMARK 9", "DELETED 10"]


# --- Resuming ---------------------------------------------------------------------------------------------------------


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
    ids=["ended", "broken", "broken in the middle of an event", "idle", "server error", "an unknown event"],
)
def test_resumes_from_the_last_event(first: Reaction) -> None:
    events, server = events_of(3, first, sends_events(event("DELETED", 8)))

    assert events == ["ADDED 6", "MODIFIED 7", "DELETED 8"]
    assert server.versions == ["5", "7"]


def test_resumes_from_a_bookmark() -> None:
    _, server = events_of(2, sends_events(event("BOOKMARK", 99)), sends_events(event("ADDED", 100)))

    assert server.versions == ["5", "99"]


def test_resumes_from_the_start_when_there_was_no_event() -> None:
    _, server = events_of(1, sends_events(), sends_events(), sends_events(event("ADDED", 6)))

    assert server.versions == ["5", "5", "5"]


def test_an_idle_stream_is_closed_after_ninety_seconds() -> None:
    _, server = events_of(2, sends_then_idles(event("ADDED", 6)), sends_events(event("ADDED", 7)))

    # The first delay follows the timeout.
    assert server.times[1] - server.times[0] == pytest.approx(90.25, abs=0.1)


def test_after_a_regular_end_the_watch_is_reopened_at_once() -> None:
    _, server = events_of(2, sends_events(event("ADDED", 6), lasting=60.0), sends_events(event("ADDED", 7)))

    assert server.times[1] - server.times[0] == pytest.approx(60.0, abs=0.1)


def test_watches_that_end_at_once_are_reopened_with_backoff() -> None:
    _, server = events_of(1, *[sends_events()] * 9, sends_events(event("ADDED", 6)))

    assert delays(server) == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]


def test_every_event_resets_the_backoff() -> None:
    reactions = [sends_then_breaks(event("ADDED", number)) for number in range(6, 12)]

    events, server = events_of(6, *reactions)

    assert events == [f"ADDED {number}" for number in range(6, 12)]
    assert delays(server) == [0.25] * 5


@pytest.mark.parametrize(
    "error",
    [refuses(503, "ServiceUnavailable"), refuses(500, "InternalError"), refuses(504, "Timeout")],
    ids=["503", "500", "504"],
)
def test_server_errors_at_the_start_are_retried_with_backoff(error: Reaction) -> None:
    events, server = events_of(1, error, error, sends_events(event("ADDED", 6)))

    assert events == ["ADDED 6"]
    assert server.versions == ["5"] * 3
    assert delays(server) == [0.25, 0.5]


def test_a_broken_connection_at_the_start_is_retried_with_backoff() -> None:
    _, server = events_of(1, *[breaks_at_once] * 4, sends_events(event("ADDED", 6)))

    assert delays(server) == [0.25, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "throttled",
    [
        refuses(429, "TooManyRequests", {"Retry-After": "3"}),
        refuses(429, "TooManyRequests", {"Retry-After": "3"}, "storage is (re)initializing"),
    ],
    ids=["API server", "one kind"],
)
def test_retry_after_is_honoured(throttled: Reaction) -> None:
    events, server = events_of(1, throttled, sends_events(event("ADDED", 6)))

    assert events == ["ADDED 6"]
    assert delays(server) == [3.0]


def delays(server: FakeApiServer) -> list[float]:
    """The seconds between requests."""
    return [round(later - earlier, 1 if later - earlier > 1 else 2) for earlier, later in pairwise(server.times)]


@pytest.mark.parametrize("tokens_left", [0, 1])
def test_a_refused_token_is_replaced_once(tokens_left: int) -> None:
    async def main() -> list[str]:
        reactions = (refuses(401, "Unauthorized"), sends_events(event("ADDED", 6)))
        async with fake_api_server(*reactions, credentials=FakeCredentials(tokens_left)) as (server, client):
            with nullcontext() if tokens_left else pytest.raises(RemoteRefused):
                await first_events(client, 1)
            return [one.headers["Authorization"] for one in server.requests]

    assert asyncio.run(main()) == ["Bearer t0", "Bearer t1"][: tokens_left + 1]


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reactions", "kind"),
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
def test_a_client_error_ends_the_watch(reactions: list[Reaction], kind: type[RemoteError]) -> None:
    error, _ = error_of(*reactions)

    assert type(error) is kind
    assert "/api/v1/namespaces/shop/pods: 4" in str(error)


def test_an_outage_of_a_minute_ends_the_watch() -> None:
    error, server = error_of(sends_then_breaks(event("ADDED", 6)), breaks_at_once)

    assert type(error) is RemoteUnavailable
    assert 60.0 <= server.times[-1] - server.times[1] < 80.0


def test_the_retry_time_starts_again_after_an_opened_watch() -> None:
    outage = [breaks_at_once] * 6

    events, _ = events_of(
        2, *outage, sends_events(event("ADDED", 6), lasting=20.0), *outage, sends_events(event("ADDED", 7))
    )

    assert events == ["ADDED 6", "ADDED 7"]


def until_disconnected(disconnected: asyncio.Event) -> Reaction:
    """One event; then empty lines until the client disconnects."""

    async def reaction(request: web.BaseRequest) -> web.StreamResponse:
        response = await started_stream(request, event("ADDED", 6))
        try:
            while True:
                await response.write(b"\n")
                await asyncio.sleep(0.01)
        except ConnectionResetError:
            disconnected.set()
        return response

    return reaction


def test_a_watch_that_is_left_closes_the_connection() -> None:
    async def main() -> bool:
        disconnected = asyncio.Event()
        async with fake_api_server(until_disconnected(disconnected)) as (_, client):
            await first_events(client, 1)
            async with asyncio.timeout(10):
                return await disconnected.wait()

    assert asyncio.run(main())


def test_a_watch_that_is_cancelled_closes_the_connection() -> None:
    async def main() -> bool:
        disconnected = asyncio.Event()
        async with fake_api_server(until_disconnected(disconnected)) as (server, client):
            task = asyncio.create_task(first_events(client, 2))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with asyncio.timeout(10):
                return await disconnected.wait()

    assert asyncio.run(main())
