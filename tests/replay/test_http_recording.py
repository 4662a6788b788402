"""A recorded response is replayed, and no other request is answered."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.core.values.json_types import Json
from setpoint.errors import NotRecorded, RemoteRefused, RemoteUnavailable
from setpoint.replay.http_recording import HttpRecorder, HttpRecording, HttpReplayer
from setpoint.replay.masking import Masker
from tests.laws.json_values import json_values

URL = "https://service.example/b/logs?fields=a"
ELSEWHERE = "http://recorded.invalid/b/logs?fields=a"


def _recorded(request: HttpRequest, answer: HttpResponse, masker: Masker | None = None) -> HttpRecording:
    http_recording = HttpRecording(masker=masker)
    recorder = HttpRecorder("google", http_recording)
    assert recorder.on_request(request) is None
    recorder.on_response(request, answer)
    return http_recording


def _played(http_recording: HttpRecording, request: HttpRequest, way: str = "google") -> HttpResponse:
    found = HttpReplayer(way, http_recording).on_request(request)
    assert found is not None
    return found


@given(st.integers(200, 599).filter(lambda status: status != 429), st.binary(max_size=40))
def test_a_response_is_replayed_as_recorded_for_any_host(status: int, body: bytes) -> None:
    if status == 401:
        return
    http_recording = _recorded(
        HttpRequest("GET", URL), HttpResponse(status, {"content-type": "text/plain", "Date": "now"}, body)
    )

    played = _played(http_recording.masked(), HttpRequest("GET", ELSEWHERE))

    assert (played.status, played.body) == (status, body)


@given(json_values)
def test_a_response_without_secrets_is_replayed_byte_for_byte(value: Any) -> None:
    body = json.dumps(value, indent=3).encode()

    http_recording = _recorded(HttpRequest("GET", URL), HttpResponse(200, {}, body), Masker())

    assert _played(http_recording.masked(), HttpRequest("GET", ELSEWHERE)).body == body


def test_headers_are_found_in_any_case() -> None:
    http_recording = _recorded(HttpRequest("GET", URL), HttpResponse(404, {"Content-Type": "text/html"}, b""))

    headers = _played(http_recording, HttpRequest("GET", URL)).headers

    assert (headers["content-type"], headers.get("Retry-After", ""), len(headers)) == ("text/html", "", 1)


@pytest.mark.parametrize(
    "other",
    [
        HttpRequest("HEAD", URL),
        HttpRequest("GET", "https://service.example/b/other?fields=a"),
        HttpRequest("GET", "https://service.example/b/logs?fields=b"),
        HttpRequest("GET", URL, {"Accept": "application/yaml"}),
        HttpRequest("GET", URL, body=b"{}"),
    ],
)
def test_another_request_is_not_recorded(other: HttpRequest) -> None:
    http_recording = _recorded(HttpRequest("GET", URL), HttpResponse(200, {}, b"{}"))

    with pytest.raises(NotRecorded, match="was not asked when this world was recorded"):
        _played(http_recording, other)
    with pytest.raises(NotRecorded, match=r"GET /b/logs \(own\)"):
        _played(http_recording, HttpRequest("GET", URL), "own")

    assert len(http_recording.missed) == 2


def test_a_recorded_request_is_not_sent_again() -> None:
    http_recording, request = HttpRecording(), HttpRequest("GET", URL)
    one, other = HttpRecorder("google", http_recording), HttpRecorder("google", http_recording)
    assert (one.on_request(request), other.on_request(request)) == (None, None)

    first = one.on_response(request, HttpResponse(200, {}, b"1"))
    second = other.on_response(request, HttpResponse(200, {}, b"2"))

    third = one.on_request(request)
    assert third is not None
    assert (first.body, second.body, third.body) == (b"1", b"1", b"1")


@pytest.mark.parametrize("status", [401, 429])
def test_authentication_and_rate_limit_responses_are_not_recorded(status: int) -> None:
    http_recording = _recorded(HttpRequest("GET", URL), HttpResponse(status, {}, b"no"))

    assert http_recording.responses == {}


@pytest.mark.parametrize("error", [RemoteUnavailable("GET /b: gone"), RemoteRefused("GET /b: not trusted")])
def test_a_recorded_failure_is_raised_again(error: RemoteUnavailable | RemoteRefused) -> None:
    http_recording = HttpRecording()
    HttpRecorder("google", http_recording).on_error(HttpRequest("GET", URL), error)

    with pytest.raises(type(error), match=str(error)):
        _played(http_recording.masked(), HttpRequest("GET", ELSEWHERE))


def test_a_request_with_a_secret_value_is_known_by_its_mask() -> None:
    masker = Masker()
    asked: Json = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hunter2"}}
    request = HttpRequest("PATCH", URL, body=json.dumps(asked).encode())

    http_recording = _recorded(request, HttpResponse(200, {}, json.dumps(asked).encode()), masker).masked()

    again = HttpRequest("PATCH", ELSEWHERE, body=json.dumps(masker.mask(asked)).encode())
    assert json.loads(_played(http_recording, again).body) == masker.mask(asked)
    assert "hunter2" not in str(http_recording)
    with pytest.raises(NotRecorded):
        _played(http_recording, request)
