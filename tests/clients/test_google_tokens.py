"""Access tokens: fetched once for all callers, before the old one expires, and off the event loop."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

import pytest

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.google.tokens import FAILURE_PAUSE, REFRESH_BEFORE_EXPIRY, AccessToken, TokenCredentials
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.errors import RemoteRefused, RemoteUnavailable, SetpointError
from tests.clients.manual_time import ManualClock

HOUR = 3600.0


@dataclass
class CountingSource:
    """Returns the tokens t1, t2, …, each valid for `seconds`, or raises `error`. Each fetch waits for `go`."""

    seconds: float = inf
    error: SetpointError | None = None
    fetched: int = 0
    go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.go.set()

    def fetch(self) -> AccessToken:
        self.fetched += 1
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error
        return AccessToken(bearer(f"t{self.fetched}"), self.seconds)


def bearer(token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


def tokens_from(source: CountingSource, clock: ManualClock | None = None) -> TokenCredentials:
    return TokenCredentials(lambda: source, clock or ManualClock())


def _is_fetching(tokens: TokenCredentials) -> bool:
    return tokens._fetching is not None and not tokens._fetching.done()


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks run until the condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


# --- Shared fetches ---------------------------------------------------------------------------------------------------


def test_one_fetch_is_enough_for_all_callers() -> None:
    source = CountingSource()

    async def main() -> list[Mapping[str, str]]:
        tokens = tokens_from(source)
        return await asyncio.gather(*(tokens.headers() for _ in range(20)))

    assert asyncio.run(main()) == [bearer("t1")] * 20
    assert source.fetched == 1


def test_a_refused_token_is_fetched_again_unless_a_newer_one_is_held() -> None:
    async def main() -> list[Mapping[str, str]]:
        tokens = tokens_from(CountingSource())
        first = await tokens.headers()
        return [first, await tokens.headers(refused=first), await tokens.headers(refused=first)]

    assert asyncio.run(main()) == [bearer("t1"), bearer("t2"), bearer("t2")]


def test_one_fetch_is_enough_for_all_callers_with_a_refused_token() -> None:
    source = CountingSource()

    async def main() -> list[Mapping[str, str]]:
        tokens = tokens_from(source)
        first = await tokens.headers()
        return await asyncio.gather(*(tokens.headers(refused=first) for _ in range(20)))

    assert asyncio.run(main()) == [bearer("t2")] * 20
    assert source.fetched == 2


def test_a_failure_is_raised_to_all_callers_and_fetched_once() -> None:
    source = CountingSource(error=RemoteUnavailable("no token", 7.0))

    async def main() -> list[BaseException | Mapping[str, str]]:
        tokens = tokens_from(source)
        return await asyncio.gather(*(tokens.headers() for _ in range(20)), return_exceptions=True)

    assert [repr(one) for one in asyncio.run(main())] == ["RemoteUnavailable('no token')"] * 20
    assert source.fetched == 1


def test_for_a_moment_after_a_failure_no_token_is_fetched() -> None:
    source, clock = CountingSource(error=RemoteRefused("no token")), ManualClock()

    async def main() -> list[int]:
        tokens, fetched = tokens_from(source, clock), []
        for seconds in (0.0, FAILURE_PAUSE / 2, FAILURE_PAUSE / 2):
            clock.advance(seconds)
            with pytest.raises(RemoteRefused, match="no token"):
                await tokens.headers()
            fetched.append(source.fetched)
        return fetched

    assert asyncio.run(main()) == [1, 1, 2]


def test_a_fetch_after_a_failure_succeeds() -> None:
    source, clock = CountingSource(error=RemoteUnavailable("no token")), ManualClock()

    async def main() -> Mapping[str, str]:
        tokens = tokens_from(source, clock)
        with pytest.raises(RemoteUnavailable):
            await tokens.headers()
        source.error = None
        clock.advance(FAILURE_PAUSE)
        return await tokens.headers()

    assert asyncio.run(main()) == bearer("t2")


def test_a_cancelled_caller_does_not_stop_the_fetch_for_other_callers() -> None:
    source = CountingSource()
    source.go.clear()

    async def main() -> Mapping[str, str]:
        tokens = tokens_from(source)
        first, second = (asyncio.create_task(tokens.headers()) for _ in range(2))
        await until(lambda: source.fetched == 1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        source.go.set()
        return await second

    assert asyncio.run(main()) == bearer("t1")
    assert source.fetched == 1


def test_a_failure_that_no_caller_awaits_is_not_reported_by_asyncio() -> None:
    source = CountingSource(error=RemoteUnavailable("no token"))
    source.go.clear()

    async def main() -> list[str]:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context["message"]))
        tokens = tokens_from(source)
        only = asyncio.create_task(tokens.headers())
        await until(lambda: source.fetched == 1)
        only.cancel()
        source.go.set()
        await asyncio.gather(only, return_exceptions=True)
        return reported

    assert asyncio.run(main()) == []


# --- Expiry -----------------------------------------------------------------------------------------------------------


def test_a_token_is_used_until_it_is_about_to_expire() -> None:
    source, clock = CountingSource(seconds=HOUR), ManualClock()

    async def main() -> Mapping[str, str]:
        tokens = tokens_from(source, clock)
        await tokens.headers()
        clock.advance(HOUR - REFRESH_BEFORE_EXPIRY)
        return await tokens.headers()

    assert asyncio.run(main()) == bearer("t1")
    assert source.fetched == 1


def test_no_caller_waits_while_an_old_token_is_refreshed() -> None:
    source, clock = CountingSource(seconds=HOUR), ManualClock()

    async def main() -> list[Mapping[str, str]]:
        tokens = tokens_from(source, clock)
        await tokens.headers()
        clock.advance(HOUR - REFRESH_BEFORE_EXPIRY + 1)
        source.go.clear()
        found = [await tokens.headers() for _ in range(3)]
        source.go.set()
        await until(lambda: not _is_fetching(tokens))
        return [*found, await tokens.headers()]

    assert asyncio.run(main()) == [bearer("t1"), bearer("t1"), bearer("t1"), bearer("t2")]
    assert source.fetched == 2


def test_callers_wait_for_the_successor_of_an_expired_token() -> None:
    clock = ManualClock()

    async def main() -> Mapping[str, str]:
        tokens = tokens_from(CountingSource(seconds=HOUR), clock)
        await tokens.headers()
        clock.advance(HOUR)
        return await tokens.headers()

    assert asyncio.run(main()) == bearer("t2")


def test_the_lifetime_of_a_token_starts_before_its_fetch() -> None:
    source, clock = CountingSource(seconds=HOUR), ManualClock()
    source.go.clear()

    async def main() -> list[Mapping[str, str]]:
        tokens = tokens_from(source, clock)
        first = asyncio.create_task(tokens.headers())
        await until(lambda: source.fetched == 1)
        clock.advance(60.0)
        source.go.set()
        found = [await first]
        clock.advance(HOUR - 60.0)
        return [*found, await tokens.headers()]

    assert asyncio.run(main()) == [bearer("t1"), bearer("t2")]


def test_an_old_token_is_used_while_its_refresh_fails() -> None:
    source, clock = CountingSource(seconds=HOUR), ManualClock()

    async def main() -> list[int]:
        tokens, fetched = tokens_from(source, clock), []
        await tokens.headers()
        clock.advance(HOUR - REFRESH_BEFORE_EXPIRY + 1)
        source.error = RemoteUnavailable("no token")
        for seconds in (0.0, FAILURE_PAUSE / 2, FAILURE_PAUSE / 2):
            clock.advance(seconds)
            assert await tokens.headers() == bearer("t1")
            await until(lambda: not _is_fetching(tokens))
            fetched.append(source.fetched)
        return fetched

    assert asyncio.run(main()) == [2, 2, 3]


# --- Off the event loop -----------------------------------------------------------------------------------------------


def test_a_fetch_does_not_block_the_event_loop() -> None:
    source = CountingSource()
    source.go.clear()

    async def main() -> tuple[bool, Mapping[str, str]]:
        token = asyncio.create_task(tokens_from(source).headers())
        await until(lambda: source.fetched == 1)
        was_under_way = not token.done()
        # The source waits for an event that only the event loop sets.
        source.go.set()
        return was_under_way, await token

    assert asyncio.run(main()) == (True, bearer("t1"))


def test_credentials_can_be_used_in_one_event_loop_after_another() -> None:
    source = CountingSource()
    tokens = tokens_from(source)

    async def main() -> Mapping[str, str]:
        return await tokens.headers(refused=bearer("t1"))

    assert [asyncio.run(main()) for _ in range(2)] == [bearer("t1"), bearer("t2")]


# --- With a service ---------------------------------------------------------------------------------------------------


class Api(HttpClient):
    """A service that accepts one token only."""

    def __init__(self, accepted: str) -> None:
        super().__init__()
        self.accepted = bearer(accepted)
        self.statuses: list[int] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(0)
        status = 200 if request.headers["authorization"] == self.accepted["authorization"] else 401
        self.statuses.append(status)
        return HttpResponse(status, {}, b"{}")


def test_refused_calls_are_sent_again_with_one_new_token_for_all() -> None:
    source, api = CountingSource(), Api("t2")

    async def main() -> list[bytes | None]:
        google = GoogleClient(api, GoogleSettings(), tokens_from(source))
        buckets = (GoogleCall(GoogleService.STORAGE, ("b", f"bucket-{number}")) for number in range(20))
        return await asyncio.gather(*map(google.get, buckets))

    assert asyncio.run(main()) == [b"{}"] * 20
    assert source.fetched == 2
    assert sorted(api.statuses) == [200] * 20 + [401] * 20


# --- No token is shown ------------------------------------------------------------------------------------------------


def test_no_token_is_shown() -> None:
    async def main() -> list[object]:
        tokens = tokens_from(CountingSource())
        headers = await tokens.headers()
        return [tokens, vars(tokens), AccessToken(headers), HttpRequest("GET", "https://x/y?token=t1", headers, b"t1")]

    shown = [repr(one) for one in asyncio.run(main())]
    assert [one for one in shown if "t1" in one] == []
