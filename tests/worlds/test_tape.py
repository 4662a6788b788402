"""What was answered once is answered again, and nothing besides."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import Answer, Request
from setpoint.core.values import Json
from setpoint.errors import NotRecorded, RemoteRefused, RemoteUnavailable
from setpoint.worlds.tape import Player, Recorder, Tape
from setpoint.worlds.veil import Veil
from tests.laws.json_values import json_values

URL = "https://service.example/b/logs?fields=a"
ELSEWHERE = "http://recorded.invalid/b/logs?fields=a"


def _recorded(request: Request, answer: Answer, veil: Veil | None = None) -> Tape:
    tape = Tape(veil=veil)
    recorder = Recorder("google", tape)
    assert recorder.asked(request) is None
    recorder.answered(request, answer)
    return tape


def _played(tape: Tape, request: Request, way: str = "google") -> Answer:
    found = Player(way, tape).asked(request)
    assert found is not None
    return found


@given(st.integers(200, 599).filter(lambda status: status != 429), st.binary(max_size=40))
def test_an_answer_is_played_as_it_came_wherever_its_server_was(status: int, body: bytes) -> None:
    if status == 401:
        return
    tape = _recorded(Request("GET", URL), Answer(status, {"content-type": "text/plain", "Date": "now"}, body))

    played = _played(tape.veiled(), Request("GET", ELSEWHERE))

    assert (played.status, played.body) == (status, body)


@given(json_values)
def test_what_has_nothing_to_hide_is_played_byte_for_byte(value: Any) -> None:
    body = json.dumps(value, indent=3).encode()

    tape = _recorded(Request("GET", URL), Answer(200, {}, body), Veil())

    assert _played(tape.veiled(), Request("GET", ELSEWHERE)).body == body


def test_headers_are_found_in_any_case() -> None:
    tape = _recorded(Request("GET", URL), Answer(404, {"Content-Type": "text/html"}, b""))

    headers = _played(tape, Request("GET", URL)).headers

    assert (headers["content-type"], headers.get("Retry-After", ""), len(headers)) == ("text/html", "", 1)


@pytest.mark.parametrize(
    "other",
    [
        Request("HEAD", URL),
        Request("GET", "https://service.example/b/other?fields=a"),
        Request("GET", "https://service.example/b/logs?fields=b"),
        Request("GET", URL, {"Accept": "application/yaml"}),
        Request("GET", URL, body=b"{}"),
    ],
)
def test_another_question_has_no_answer(other: Request) -> None:
    tape = _recorded(Request("GET", URL), Answer(200, {}, b"{}"))

    with pytest.raises(NotRecorded, match="was not asked when this world was recorded"):
        _played(tape, other)
    with pytest.raises(NotRecorded, match=r"GET /b/logs \(own\)"):
        _played(tape, Request("GET", URL), "own")

    assert len(tape.missed) == 2


def test_what_was_answered_once_is_not_asked_again() -> None:
    tape, request = Tape(), Request("GET", URL)
    one, other = Recorder("google", tape), Recorder("google", tape)
    assert (one.asked(request), other.asked(request)) == (None, None)

    first = one.answered(request, Answer(200, {}, b"1"))
    second = other.answered(request, Answer(200, {}, b"2"))

    third = one.asked(request)
    assert third is not None
    assert (first.body, second.body, third.body) == (b"1", b"1", b"1")


@pytest.mark.parametrize("status", [401, 429])
def test_who_we_are_and_how_fast_we_ask_is_not_on_record(status: int) -> None:
    tape = _recorded(Request("GET", URL), Answer(status, {}, b"no"))

    assert tape.replies == {}


@pytest.mark.parametrize("error", [RemoteUnavailable("GET /b: gone"), RemoteRefused("GET /b: not trusted")])
def test_a_failure_is_one_again(error: RemoteUnavailable | RemoteRefused) -> None:
    tape = Tape()
    Recorder("google", tape).failed(Request("GET", URL), error)

    with pytest.raises(type(error), match=str(error)):
        _played(tape.veiled(), Request("GET", ELSEWHERE))


def test_a_question_with_a_secret_in_it_is_known_by_its_stand_in() -> None:
    veil = Veil()
    asked: Json = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hunter2"}}
    request = Request("PATCH", URL, body=json.dumps(asked).encode())

    tape = _recorded(request, Answer(200, {}, json.dumps(asked).encode()), veil).veiled()

    again = Request("PATCH", ELSEWHERE, body=json.dumps(veil.over(asked)).encode())
    assert json.loads(_played(tape, again).body) == veil.over(asked)
    assert "hunter2" not in str(tape)
    with pytest.raises(NotRecorded):
        _played(tape, request)
