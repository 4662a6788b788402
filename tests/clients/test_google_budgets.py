"""Quota budgets of Google's services: what a call counts against, and rate limiting of all calls."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from setpoint.clients.google.calls import (
    EMULATOR_RATE,
    GoogleCall,
    GoogleService,
    default_caller_key,
    initial_rate,
    quota_key,
)
from setpoint.clients.google.client import AnonymousCredentials, GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.google.errors import outcome_of
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, BreakerState, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller, on_behalf_of
from setpoint.clients.ratelimit.limiter import BudgetStats, QuotaBudgets
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.errors import RemoteUnavailable
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.faults import LimitRequests
from setpoint.localcloud.server import LocalCloud
from tests.clients.manual_time import ManualClock, run
from tests.clients.scripted_http import ScriptedHttp, error_response, response

INSTANCE = GoogleCall(GoogleService.SQL, ("projects", "p", "instances", "db"))
BUCKET = GoogleCall(GoogleService.STORAGE, ("b", "some-bucket"))


def instance(name: str, project: str = "p") -> GoogleCall:
    return GoogleCall(GoogleService.SQL, ("projects", project, "instances", name))


def client(http: HttpClient) -> GoogleClient:
    return GoogleClient(http, GoogleSettings(), AnonymousCredentials())


class Unreachable(HttpClient):
    """No server listens."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise RemoteUnavailable(f"{request}: cannot connect")


# --- Quota keys -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "call", "charge"),
    [
        ("GET", INSTANCE, ("sql", "p", "reads")),
        ("GET", GoogleCall(GoogleService.SQL, ("projects", "p", "operations", "o")), ("sql", "p", "reads")),
        ("GET", GoogleCall(GoogleService.SQL, ("flags",)), ("sql", "", "reads")),
        ("POST", GoogleCall(GoogleService.SQL, ("projects", "p", "instances")), ("sql", "p", "writes")),
        ("DELETE", instance("db", "q"), ("sql", "q", "writes")),
        ("GET", BUCKET, ("storage", "", "reads")),
        ("GET", GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"}), ("storage", "p", "reads")),
        ("PATCH", BUCKET, ("storage", "", "writes")),
        ("POST", GoogleCall(GoogleService.STORAGE, ("b", "x", "lockRetentionPolicy")), ("storage", "", "writes")),
        ("DELETE", GoogleCall(GoogleService.STORAGE, ("b", "x", "o", "y")), ("storage", "", "writes")),
        ("POST", GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"}), ("storage", "p", "buckets")),
        ("DELETE", BUCKET, ("storage", "", "buckets")),
    ],
)
def test_a_call_counts_against_the_quota_of_its_project_and_method(
    method: str, call: GoogleCall, charge: tuple[str, str, str]
) -> None:
    assert quota_key(method, call) == charge


@pytest.mark.parametrize(
    ("method", "call", "charge"),
    [
        ("GET", INSTANCE, ("sql", "billed", "reads")),
        ("GET", BUCKET, ("storage", "billed", "reads")),
        ("PATCH", BUCKET, ("storage", "billed", "writes")),
        ("GET", GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"}), ("storage", "billed", "reads")),
        # The quota of bucket creations is the project's own.
        ("POST", GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"}), ("storage", "p", "buckets")),
        ("DELETE", BUCKET, ("storage", "billed", "buckets")),
    ],
)
def test_a_call_counts_against_the_quota_project_of_the_credentials(
    method: str, call: GoogleCall, charge: tuple[str, str, str]
) -> None:
    assert quota_key(method, call, "billed") == charge


@pytest.mark.parametrize(
    ("address", "pace"),
    [
        ("https://sqladmin.googleapis.com", AimdSettings(start=25, burst=100, ceiling=100, growth=0.5)),
        ("https://sqladmin-mine.p.googleapis.com", AimdSettings(start=25, burst=100, ceiling=100, growth=0.5)),
        ("http://localhost:8080", EMULATOR_RATE),
        ("https://googleapis.com.test", EMULATOR_RATE),
    ],
)
def test_only_google_s_own_endpoints_start_with_google_s_rates(address: str, pace: AimdSettings) -> None:
    assert initial_rate("GET", INSTANCE, address) == pace


@pytest.mark.parametrize(
    ("call", "subject"),
    [
        (GoogleCall(GoogleService.SQL, ("projects", "p", "instances", "db", "databases", "x")), INSTANCE.parts),
        (GoogleCall(GoogleService.STORAGE, ("b", "some-bucket", "o", "y")), BUCKET.parts),
    ],
)
def test_a_call_without_a_caller_is_a_call_of_its_object(call: GoogleCall, subject: tuple[str, ...]) -> None:
    assert default_caller_key(call) == subject


# --- Outcomes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (response(200, {}), RESPONDED),
        (response(200, {}, Retry_After="7"), RESPONDED),
        (error_response(404, "notFound"), RESPONDED),
        (error_response(403, "forbidden"), RESPONDED),
        (error_response(409, "operationInProgress", Retry_After="7"), RESPONDED),
        (error_response(429, "rateLimitExceeded"), Throttled()),
        (error_response(429, "rateLimitExceeded", Retry_After="7"), Throttled(7.0)),
        (error_response(403, "rateLimitExceeded"), Throttled()),
        (error_response(403, "userRateLimitExceeded", Retry_After="7"), Throttled(7.0)),
        (error_response(500, "backendError"), Unavailable()),
        (error_response(503, "backendError", Retry_After="7"), Unavailable(7.0)),
        (HttpResponse(502, {}, b"<html>"), Unavailable()),
    ],
)
def test_the_outcome_of_a_call_follows_from_its_response(answer: HttpResponse, ending: CallOutcome) -> None:
    assert outcome_of(answer) == ending


# --- All calls --------------------------------------------------------------------------------------------------------


def figures(google: GoogleClient) -> dict[str, BudgetStats]:
    return {"/".join(one.key): one for one in google.budgets.snapshot().budgets}


def test_the_retry_after_a_401_is_counted() -> None:
    class Tokens:
        async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
            return {"Authorization": "Bearer old" if refused is None else "Bearer new"}

    async def main() -> dict[str, int]:
        http = ScriptedHttp(error_response(401, "authError"), response(200, {}))
        google = GoogleClient(http, GoogleSettings(), Tokens())
        await google.get(INSTANCE)
        await google.post(BUCKET, {})
        await google.put(BUCKET, {})
        await google.patch(BUCKET, {})
        await google.delete(BUCKET)
        return {name: one.calls for name, one in figures(google).items()}

    assert run(main()) == {"sql/p/reads": 2, "storage//buckets": 2, "storage//writes": 2}


def test_a_call_that_waits_for_a_token_holds_no_slot() -> None:
    class Slow:
        async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
            await asyncio.sleep(60.0)
            return {}

    async def main() -> tuple[object, ...]:
        google = GoogleClient(ScriptedHttp(response(200, {})), GoogleSettings(), Slow())
        call = asyncio.create_task(google.get(INSTANCE))
        await asyncio.sleep(30.0)
        before = google.budgets.snapshot().limiters
        await call
        return before

    assert run(main()) == ()


def test_a_project_that_has_used_up_its_quota_waits_and_other_projects_do_not() -> None:
    async def main() -> list[tuple[str, float]]:
        google = client(ScriptedHttp(error_response(429, "rateLimitExceeded", Retry_After="7"), response(200, {})))
        times = []

        async def get(project: str) -> None:
            await google.get(instance("db", project))
            times.append((project, asyncio.get_running_loop().time()))

        with pytest.raises(RemoteUnavailable):
            await get("p")
        await asyncio.gather(get("p"), get("q"))
        return times

    assert run(main()) == [("q", 0.0), ("p", 7.0)]


def test_projects_share_the_budget_of_one_quota_project() -> None:
    class Billed:
        async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
            return {"authorization": "Bearer t", "x-goog-user-project": "billed"}

    async def main() -> tuple[dict[str, int], float]:
        http = ScriptedHttp(error_response(429, "rateLimitExceeded", Retry_After="7"), response(200, {}))
        google = GoogleClient(http, GoogleSettings(), Billed())
        with pytest.raises(RemoteUnavailable):
            await google.get(instance("db", "p"))
        await google.get(instance("db", "q"))
        return {name: one.calls for name, one in figures(google).items()}, asyncio.get_running_loop().time()

    assert run(main()) == ({"sql/billed/reads": 2}, 7.0)


def test_a_thousand_queued_calls_of_one_project_do_not_delay_ten_of_another() -> None:
    class Slow(ScriptedHttp):
        async def send(self, request: HttpRequest) -> HttpResponse:
            await asyncio.sleep(1.0)
            return await super().send(request)

    async def main() -> dict[str, float]:
        google, ended = client(Slow(response(200, {}))), dict[str, float]()

        async def get(project: str, number: int) -> None:
            await google.get(instance(f"db-{number}", project))
            ended[project] = asyncio.get_running_loop().time()

        many = [get("p", number) for number in range(1000)]
        await asyncio.gather(*many, *(get("q", number) for number in range(10)))
        return ended

    ended = run(main())
    assert ended["q"] <= 4.0 < 20.0 < ended["p"]


def test_throttled_writes_do_not_slow_down_reads() -> None:
    async def main() -> float:
        google = client(ScriptedHttp(error_response(429, "rateLimitExceeded", Retry_After="7"), response(200, {})))
        with pytest.raises(RemoteUnavailable):
            await google.patch(INSTANCE, {})
        await google.get(INSTANCE)
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.0


def test_the_breaker_of_one_service_does_not_stop_the_other() -> None:
    async def main() -> tuple[str, list[BreakerState]]:
        google = client(Unreachable())
        calls = (google.get(instance(f"db-{number}")) for number in range(20))
        await asyncio.gather(*calls, return_exceptions=True)
        with pytest.raises(RemoteUnavailable) as caught:
            await google.get(INSTANCE)
        with pytest.raises(RemoteUnavailable, match="cannot connect"):
            await google.get(BUCKET)
        return str(caught.value), [one.breaker for one in google.budgets.snapshot().limiters]

    message = (
        "GET /sql/v1beta4/projects/p/instances/db: not sent: https://sqladmin.googleapis.com has not answered any call "
        "for a while; now and then one call is sent to see, and all are when it answers again"
    )
    assert run(main()) == (message, [BreakerState.OPEN, BreakerState.CLOSED])


def test_an_object_that_always_fails_does_not_stop_other_objects() -> None:
    async def main() -> BreakerState:
        google = client(ScriptedHttp(error_response(500, "backendError")))
        for _ in range(200):
            with pytest.raises(RemoteUnavailable, match="500"):
                await google.get(INSTANCE)
        return google.budgets.snapshot().limiters[0].breaker

    assert run(main()) is BreakerState.CLOSED


def test_the_caller_is_set_by_the_worker_that_runs_the_step() -> None:
    async def call(google: GoogleClient, key: str, order: list[str], *, failed: bool) -> None:
        with on_behalf_of(key, failed=failed):
            await google.get(INSTANCE)
        order.append(key)

    async def main() -> str:
        google, order = client(ScriptedHttp(response(200, {}))), list[str]()
        # Uses up the burst.
        await asyncio.gather(*(google.get(INSTANCE) for _ in range(100)))
        calls = [call(google, f"f{n}", order, failed=True) for n in range(3)]
        calls += [call(google, f"h{n}", order, failed=False) for n in range(9)]
        await asyncio.gather(*calls)
        return " ".join(order)

    assert run(main()) == "h0 h1 h2 f0 h3 h4 h5 f1 h6 h7 h8 f2"


def test_without_on_behalf_of_there_is_no_caller() -> None:
    with on_behalf_of("a", failed=True):
        inside = current_caller.get()

    assert (inside, current_caller.get()) == (Caller("a", failed=True), None)


# --- Over HTTP --------------------------------------------------------------------------------------------------------


def test_two_hundred_calls_at_once_all_succeed_within_a_quota_of_fifty_a_second() -> None:
    clock = ManualClock()

    async def until_it_succeeds(google: GoogleClient, number: int) -> None:
        while True:
            try:
                assert await google.get(instance(f"db-{number}")) is None
            except RemoteUnavailable:
                continue
            return

    async def main() -> Counter[int | None]:
        async with LocalCloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC))) as cloud:
            cloud.inject(LimitRequests(requests_per_second=50))
            settings = GoogleSettings(cloud.url, cloud.url, GoogleAuth.ANONYMOUS)
            google = GoogleClient(HttpClient(), settings, budgets=QuotaBudgets(clock))
            calls = asyncio.gather(*(until_it_succeeds(google, number) for number in range(200)))
            while not calls.done():
                await asyncio.sleep(0)
                if google.budgets.snapshot().limiters[0].in_flight == 0:
                    # The remaining callers wait for the time to pass.
                    clock.advance(0.1)
                    cloud.advance(0.1)
            await google.close()
            return Counter(entry.status for entry in cloud.journal.entries)

    answers = asyncio.run(main())

    assert answers[404] == 200
    assert answers[429] < 200
    assert answers.keys() == {404, 429}
