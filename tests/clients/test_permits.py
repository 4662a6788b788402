"""Whether a write may be made: asked by whatever sends it, right before it goes out."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

import pytest
from aiohttp import web

from setpoint.clients.breaker import State
from setpoint.clients.budgets import GateFigures
from setpoint.clients.google import Auth, Call, GoogleClient, GoogleSettings, Service
from setpoint.clients.http import HttpClient, Request, permitted
from setpoint.clients.permits import Attempt, permitted_by, seconds_for, unrestricted
from setpoint.errors import LeaseLost, RemoteUnavailable
from tests.clients.loopback import http_server

WRITE = Attempt("POST", "/b")


@dataclass(slots=True)
class Allowing:
    """Allows everything, for so long."""

    seconds: float = inf
    asked: list[str] = field(default_factory=list)

    def check(self, attempt: Attempt) -> float:
        self.asked.append(str(attempt))
        return self.seconds


@dataclass(slots=True)
class Refusing:
    """Refuses everything, and remembers what."""

    refused: list[str] = field(default_factory=list)

    def check(self, attempt: Attempt) -> float:
        self.refused.append(str(attempt))
        raise LeaseLost(f"{attempt}: not now")


def test_without_a_permit_everything_may_be_written() -> None:
    assert seconds_for(WRITE) == inf


def test_every_permit_has_to_agree_and_the_shortest_time_counts() -> None:
    with permitted_by(Allowing(5.0)), permitted_by(Allowing(3.0), Allowing(9.0)):
        inside = seconds_for(WRITE)
    with permitted_by(Refusing()), permitted_by(Allowing()), pytest.raises(LeaseLost):
        seconds_for(WRITE)
    with permitted_by(Allowing()), permitted_by(Refusing()), pytest.raises(LeaseLost):
        seconds_for(WRITE)

    assert inside == 3.0
    assert seconds_for(WRITE) == inf


def test_a_permit_holds_for_the_tasks_that_are_started_inside_and_for_no_others() -> None:
    async def main() -> list[float]:
        before = asyncio.Event()

        async def ask() -> float:
            await before.wait()
            return seconds_for(WRITE)

        outside = asyncio.create_task(ask())
        with permitted_by(Allowing(5.0)):
            inside = asyncio.create_task(ask())
        before.set()
        return [await outside, await inside]

    assert asyncio.run(main()) == [inf, 5.0]


def test_what_is_no_write_in_the_sense_of_a_permit_can_be_sent_all_the_same() -> None:
    with permitted_by(Refusing()):
        with unrestricted():
            inside = seconds_for(WRITE)
        with pytest.raises(LeaseLost):
            seconds_for(WRITE)

    assert inside == inf


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_refused_write_is_not_sent(method: str) -> None:
    seen, permit = asyncio.run(_sent(method))

    assert seen == []
    assert permit.refused == [f"{method} /b/logs", f"{method} /b/logs"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_needs_no_permit(method: str) -> None:
    seen, permit = asyncio.run(_sent(method))

    assert seen == [method, method]
    assert permit.refused == []


async def _sent(method: str) -> tuple[list[str], Refusing]:
    """What arrives of two requests under a permit that refuses; the answer of the second is read as it comes."""
    seen, permit, client = list[str](), Refusing(), HttpClient()

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request.method)
        return web.Response(text="ok")

    async with http_server(handler) as url:
        request = Request(method, f"{url}/b/logs?key=secret")
        with permitted_by(permit):
            with suppress(LeaseLost):
                await client.send(request)
            with suppress(LeaseLost):
                (await client.open(request, 5.0)).close()
        await client.close()
    return seen, permit


def test_a_write_has_no_more_time_than_its_permit_leaves() -> None:
    write = Request("PUT", "http://service/b", seconds=60.0)
    with permitted_by(Allowing(7.5)):
        cut, read = permitted(write), permitted(Request("GET", "http://service/b"))
    with permitted_by(Allowing(90.0)):
        whole = permitted(write)

    assert (cut.seconds, read.seconds, whole.seconds) == (7.5, 60.0, 60.0)


def test_a_write_that_outlives_its_permit_is_given_up() -> None:
    async def main() -> None:
        never, client = asyncio.Event(), HttpClient()

        async def handler(_request: web.BaseRequest) -> web.Response:
            await never.wait()
            return web.Response()

        async with http_server(handler) as url:
            try:
                with permitted_by(Allowing(0.01)):
                    await client.send(Request("PUT", url))
            finally:
                await client.close()

    with pytest.raises(RemoteUnavailable, match=r"no answer within 0\.01 s"):
        asyncio.run(main())


def test_a_write_that_is_refused_says_nothing_about_the_service() -> None:
    async def main() -> GateFigures:
        settings = GoogleSettings(storage="http://service", auth=Auth.ANONYMOUS)
        google = GoogleClient(HttpClient(), settings)
        with permitted_by(Refusing()), pytest.raises(LeaseLost):
            await google.post(Call(Service.STORAGE, ("b",), {"project": "p"}), {"name": "logs"})
        await google.close()
        (gate,) = google.budgets.snapshot().gates
        return gate

    gate = asyncio.run(main())

    assert (gate.in_flight, gate.breaker, gate.turned_away) == (0, State.CLOSED, 0)
