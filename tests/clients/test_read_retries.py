"""Reads of commands that ask once: sent again while a service is unavailable for the moment."""

import asyncio
from collections.abc import Sequence

import pytest

from setpoint.clients.foreign_errors import ConnectionEnded, transport_error
from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.ratelimit.read_retries import reads_retried
from setpoint.errors import RemoteError, RemoteUnavailable
from setpoint.replay.http_recording import HttpRecorder, HttpRecording
from tests.clients.manual_time import run
from tests.clients.scripted_http import ScriptedHttp, error_response, response

BUCKET = GoogleCall(GoogleService.STORAGE, ("b", "logs"))
DOWN = error_response(503, "backendError")
FULL = error_response(429, "rateLimitExceeded")
FOUND = response(200, {"name": "logs"})
MISSING = error_response(404, "notFound")


class BrokenHttp(HttpClient):
    """Raises the errors in order, then answers."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.sent = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent += 1
        if self.errors:
            error = self.errors.pop(0)
            raise transport_error(request, error, request.seconds) from error
        return FOUND


def google(http: HttpClient) -> GoogleClient:
    return GoogleClient(http, GoogleSettings(), AnonymousCredentials())


async def outcomes(client: GoogleClient, count: int = 1) -> list[str]:
    """What so many reads come to, one after the other."""
    found = []
    for _ in range(count):
        try:
            found.append((await client.get(BUCKET) or b"absent").decode())
        except RemoteError as error:
            found.append(type(error).__name__)
    return found


async def retried(http: HttpClient, count: int = 1) -> tuple[list[str], float]:
    """The same with retries, and when they ended."""
    with reads_retried():
        found = await outcomes(google(http), count)
    return found, asyncio.get_running_loop().time()


@pytest.mark.parametrize("answers", [(DOWN,), (FULL, DOWN, FULL), (FULL,) * 8])
def test_a_read_is_sent_again_until_the_service_is_there(answers: Sequence[HttpResponse]) -> None:
    http = ScriptedHttp(*answers, FOUND)

    assert run(retried(http))[0] == ['{"name":"logs"}']
    assert len(http.requests) == len(answers) + 1


def test_a_connection_that_broke_is_no_result_but_one_that_cannot_be_opened_is() -> None:
    broke, closed = BrokenHttp(ConnectionEnded(), ConnectionResetError()), BrokenHttp(TimeoutError())

    assert (run(retried(broke))[0], broke.sent) == (['{"name":"logs"}'], 3)
    assert (run(retried(closed))[0], closed.sent) == (["RemoteUnavailable"], 1)


def test_a_service_that_is_down_is_waited_for_once_and_not_for_each_object() -> None:
    http = ScriptedHttp(DOWN)

    found, ended = run(retried(http, 20))

    assert (found, len(http.requests)) == (["RemoteUnavailable"] * 20, 5 + 19)
    assert 1.875 <= ended <= 3.75


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [(error_response(429, "x", Retry_After="20"), 20.0), (error_response(503, "x", Retry_After="7"), 7.0)],
)
def test_the_pause_that_a_service_asks_for_is_kept(answer: HttpResponse, seconds: float) -> None:
    found, ended = run(retried(ScriptedHttp(answer, FOUND)))

    assert (found, ended >= seconds) == (['{"name":"logs"}'], True)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (error_response(429, "x", Retry_After="600"), "RemoteUnavailable"),
        (error_response(403, "forbidden"), "RemoteRefused"),
        (MISSING, "absent"),
    ],
)
def test_what_does_not_pass_soon_is_the_result(answer: HttpResponse, outcome: str) -> None:
    http = ScriptedHttp(answer, FOUND)

    assert (run(retried(http)), len(http.requests)) == (([outcome], 0.0), 1)


def test_without_retries_and_for_writes_a_request_is_sent_once() -> None:
    plain, written = ScriptedHttp(DOWN, FOUND), ScriptedHttp(DOWN, FOUND)

    async def write() -> None:
        with reads_retried():
            await google(written).patch(BUCKET, {})

    assert run(outcomes(google(plain))) == ["RemoteUnavailable"]
    with pytest.raises(RemoteUnavailable):
        run(write())
    assert (len(plain.requests), len(written.requests)) == (1, 1)


def test_a_recording_has_the_answer_and_not_that_it_took_two_requests() -> None:
    recording = HttpRecording()
    sent: list[str] = []

    class Intercepted(ScriptedHttp):
        """Asks the interceptor as the client does."""

        async def send(self, request: HttpRequest) -> HttpResponse:
            recorder = HttpRecorder("google", recording)
            found = recorder.on_request(request)
            if found is not None:
                return found
            sent.append(str(request))
            return recorder.on_response(request, await super().send(request))

    assert run(retried(Intercepted(DOWN, FOUND), 2))[0] == ['{"name":"logs"}'] * 2
    assert (len(sent), [one.status for one in recording.responses.values()]) == (2, [200])
