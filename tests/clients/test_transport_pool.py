"""Connections that are reused: one request at a time on each, never after a response that is not whole."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import DEFAULT_LIMITS, HttpClient, HttpRequest
from setpoint.clients.http_transport import HttpLimits
from setpoint.errors import RemoteUnavailable, SetpointError
from tests.clients.exchange_server import BEHAVIOURS, ExchangeServer, exchange_server

T = TypeVar("T")
LARGE = b"x" * 2_000_000
OUTCOMES: dict[str, object] = {
    "cut": "the connection ended before the answer did",
    "broken": "that is not HTTP",
    "gone": "the connection ended before the answer did",
    "large-error": 500,
    "early": 413,
}


async def outcome(client: HttpClient, server: ExchangeServer, path: str, method: str = "GET") -> object:
    """The body of a response, its status if that is an error, or why there is none."""
    body = LARGE if path.startswith("/early/") else None
    try:
        response = await client.send(HttpRequest(method, server.url + path, body=body))
    except SetpointError as error:
        return str(error).partition(": ")[2]
    return response.body if response.status == 200 else response.status


def played(
    scenario: Callable[[HttpClient, ExchangeServer], Awaitable[T]], limits: HttpLimits = DEFAULT_LIMITS
) -> tuple[T, ExchangeServer]:
    """What came of a scenario, and what the server saw of it."""

    async def main() -> tuple[T, ExchangeServer]:
        client = HttpClient(limits=limits)
        async with exchange_server() as server:
            try:
                return await scenario(client, server), server
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.mark.laws
@given(
    rounds=st.lists(st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=5), min_size=1, max_size=4),
    most=st.integers(0, 3),
)
def test_every_response_belongs_to_its_request_and_no_connection_is_misused(rounds: list[list[str]], most: int) -> None:
    paths = [[f"/{name}/{first}-{second}" for second, name in enumerate(one)] for first, one in enumerate(rounds)]

    async def scenario(client: HttpClient, server: ExchangeServer) -> list[object]:
        found: list[object] = []
        for one in paths:
            found += await asyncio.gather(*(outcome(client, server, path) for path in one))
        return found

    found, server = played(scenario, HttpLimits(connections=most))

    flat = [path for one in paths for path in one]
    assert found == [OUTCOMES.get(path.split("/")[1], path.encode()) for path in flat]
    assert server.violations == []
    assert server.most_unanswered <= most or not most
    # A connection is new or was left in order; what a server closes on a reused one is asked for once more.
    assert all(count == 1 or (path.startswith("/gone/") and count == 2) for path, count in server.requests.items())


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_an_idempotent_request_is_repeated_once_on_a_new_connection(method: str) -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> object:
        await outcome(client, server, "/once/1")
        return await outcome(client, server, "/once/2", method)

    found, server = played(scenario)

    assert found == (b"" if method == "HEAD" else b"/once/2")
    assert (server.requests["/once/2"], server.connections) == (2, 2)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_write_that_is_not_idempotent_is_not_repeated(method: str) -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> object:
        await outcome(client, server, "/once/1")
        return await outcome(client, server, "/once/2", method)

    found, server = played(scenario)

    assert found == "the connection ended before the answer did"
    assert server.requests["/once/2"] == 1


def test_a_request_is_not_repeated_on_a_connection_that_was_new() -> None:
    found, server = played(lambda client, server: outcome(client, server, "/gone/1"))

    assert found == "the connection ended before the answer did"
    assert server.requests["/gone/1"] == 1


def test_a_request_is_repeated_only_once() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> list[object]:
        return [await outcome(client, server, path) for path in ("/ok/1", "/gone/2", "/ok/3")]

    found, server = played(scenario)

    assert found == [b"/ok/1", "the connection ended before the answer did", b"/ok/3"]
    assert server.requests["/gone/2"] == 2


def test_requests_that_wait_for_a_connection_go_in_their_order() -> None:
    paths = [f"/held/{number}" for number in range(8)]

    async def scenario(client: HttpClient, server: ExchangeServer) -> list[object]:
        asking = [asyncio.ensure_future(outcome(client, server, path)) for path in paths]
        while not server.order:
            await asyncio.sleep(0)
        # One that gives up does not hold up the others.
        asking[3].cancel()
        server.may_answer.set()
        await asyncio.wait(asking)
        return [one.cancelled() or one.result() for one in asking]

    found, server = played(scenario, HttpLimits(connections=1))

    expected = [path for path in paths if path != "/held/3"]
    assert server.order == expected
    assert found == [True if path == "/held/3" else path.encode() for path in paths]
    assert server.connections == 1


def test_a_connection_that_the_server_closes_while_idle_is_not_used_again() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> object:
        await outcome(client, server, "/until-close/1")
        while server.open_now:
            await asyncio.sleep(0)
        return await outcome(client, server, "/ok/2", "POST")

    found, server = played(scenario)

    assert found == b"/ok/2"
    assert server.connections == 2


def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.clients.transport.pool.IDLE_SECONDS", 0.01)

    async def scenario(client: HttpClient, server: ExchangeServer) -> int:
        await asyncio.gather(*(outcome(client, server, f"/ok/{number}") for number in range(3)))
        while server.open_now:
            await asyncio.sleep(0)
        await outcome(client, server, "/ok/4")
        return server.connections

    assert played(scenario)[0] == 4


def test_requests_in_flight_and_those_that_wait_end_when_the_client_is_closed() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> list[object]:
        asking = [asyncio.ensure_future(outcome(client, server, f"/held/{number}")) for number in range(3)]
        while not server.order:
            await asyncio.sleep(0)
        await client.close()
        return await asyncio.gather(*asking)

    found, server = played(scenario, HttpLimits(connections=1))

    assert found == ["the connection ended before the answer did"] * 3
    assert server.requests == {"/held/0": 1}


def test_a_large_body_arrives_whole_while_other_requests_go_on() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> list[object]:
        request = HttpRequest("PUT", f"{server.url}/ok/large", body=LARGE * 4)
        response, other = await asyncio.gather(client.send(request), outcome(client, server, "/ok/other"))
        return [response.body, other]

    assert played(scenario)[0] == [b"/ok/large", b"/ok/other"]


def test_a_method_or_a_header_with_a_line_break_is_not_sent() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> list[str]:
        found = []
        for request in (
            HttpRequest("GET", f"{server.url}/ok/1", {"X": "a\r\nAuthorization: b"}),
            HttpRequest("GET", f"{server.url}/ok/1", {"X\r\nY": "a"}),
            HttpRequest("GET /ok/2 HTTP/1.1\r\n\r\nGET", f"{server.url}/ok/1"),
            HttpRequest("GET", f"{server.url}/ok/1 HTTP/1.1\r\nX: y\r\n\r\n"),
        ):
            with pytest.raises(SetpointError) as caught:
                await client.send(request)
            found.append(str(caught.value).rpartition(": ")[2])
        return found

    found, server = played(scenario)

    refused = "its method or a header holds characters that HTTP does not allow"
    assert found == [refused, refused, refused, "that is not an address"]
    assert server.connections == 0


def test_the_port_belongs_to_the_server_of_a_url_without_a_path() -> None:
    """Two servers whose addresses differ in their last character."""

    async def main() -> list[object]:
        client = HttpClient()
        async with exchange_server() as one, exchange_server() as other:
            try:
                for server in (one, other, one):
                    await client.send(HttpRequest("GET", server.url))
            finally:
                await client.close()
            return [one.requests["/"], other.requests["/"]]

    assert asyncio.run(main()) == [2, 1]


def test_a_stream_that_is_left_unread_ends_its_connection() -> None:
    async def scenario(client: HttpClient, server: ExchangeServer) -> tuple[int, object]:
        stream = await client.open(HttpRequest("GET", f"{server.url}/large-error/1"), 10)
        status = stream.status
        stream.close()
        with pytest.raises(RemoteUnavailable):
            await stream.read()
        return status, await outcome(client, server, "/ok/2")

    found, server = played(scenario, HttpLimits(connections=1))

    assert found == (500, b"/ok/2")
    assert server.violations == []
