"""Recorded HTTP requests and responses: one response per request, recorded and replayed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.clients.write_guard import is_capturing_writes
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json
from setpoint.errors import NotRecorded, RemoteError, RemoteRefused, RemoteUnavailable
from setpoint.replay.masking import Masker

# What an answer is known by besides its status.
_RECORDED_HEADERS: Final = ("Content-Type",)
# Who we are, and how fast we may ask, is no part of the world.
_NOT_RECORDED_STATUSES: Final = (401, 429)
_JSON_TYPE: Final = "application/json"


class RequestKey(NamedTuple):
    """What was asked, on which way out. `form` is the one that was asked for; `body` the digest of what was sent."""

    way: str
    method: str
    target: str
    form: str = _JSON_TYPE
    body: str = ""

    def __str__(self) -> str:
        return f"{self.method} {urlsplit(self.target).path} ({self.way})"


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of it: an answer, its body as text, or as bytes where it is none; or a `failure`, and why."""

    status: int = 0
    headers: dict[str, str] = {}
    text: str = ""
    bytes_: bytes = msgspec.field(default=b"", name="bytes")
    failure: str = ""
    # Whether trying again could have helped.
    passing: bool = True


@dataclass(slots=True)
class HttpRecording:
    """All questions and replies of one world."""

    replies: dict[RequestKey, RecordedResponse] = field(default_factory=dict)
    # What is over the bodies of questions; they are over it already on a tape that was read.
    masker: Masker | None = None
    # What was asked of the environment, and what there was.
    environment: dict[str, str | None] = field(default_factory=dict)
    # What was asked of it in vain.
    missed: list[RequestKey] = field(default_factory=list)

    def masked(self) -> "HttpRecording":
        """The same with nothing in it that nobody may see. Questions are known by what they say then, already."""
        masker = self.masker
        return HttpRecording(
            self.replies if masker is None else {key: _masked(one, masker) for key, one in self.replies.items()}
        )


@dataclass(frozen=True, slots=True)
class HttpRecorder:
    """A tap that keeps every answer. What was answered once is not asked again: the world is that of one moment."""

    way: str
    http_recording: HttpRecording

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See Tap."""
        known = self.http_recording.replies.get(request_key(self.way, request, self.http_recording.masker))
        return None if known is None else _to_answer(known)

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See Tap. Of two who asked the same at once, both get what came first."""
        if answer.status in _NOT_RECORDED_STATUSES:
            return answer
        return _to_answer(self._kept(request, _to_response(answer)))

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See Tap."""
        self._kept(request, RecordedResponse(failure=str(error), passing=isinstance(error, RemoteUnavailable)))

    def _kept(self, request: HttpRequest, reply: RecordedResponse) -> RecordedResponse:
        return self.http_recording.replies.setdefault(request_key(self.way, request, self.http_recording.masker), reply)


@dataclass(frozen=True, slots=True)
class HttpReplayer:
    """A tap that answers from a tape, and never guesses: NotRecorded for what is not on it."""

    way: str
    http_recording: HttpRecording

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See Tap."""
        key = request_key(self.way, request, self.http_recording.masker)
        known = self.http_recording.replies.get(key)
        if known is None:
            if not is_capturing_writes():
                self.http_recording.missed.append(key)
            raise NotRecorded(f"{key} was not asked when this world was recorded: record it again")
        return _to_answer(known)

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See Tap. Nobody is asked."""
        return answer

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See Tap. The same."""


def request_key(way: str, request: HttpRequest, masker: Masker | None) -> RequestKey:
    """What `request` asks, wherever its server is. A body counts by what it says under the veil."""
    parts = urlsplit(request.url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    form = request.headers.get("Accept", _JSON_TYPE)
    return RequestKey(way, request.method, target, form, _body_digest(request.body, masker) if request.body else "")


def _body_digest(body: bytes, masker: Masker | None) -> str:
    said = _decoded(body)
    return digest(said if masker is None else masker.over(said))


def _decoded(body: bytes) -> Json:
    """What a body says; a text where it is no JSON."""
    try:
        found: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
    return found


def _to_response(answer: HttpResponse) -> RecordedResponse:
    headers = {name: answer.headers[name] for name in _RECORDED_HEADERS if name in answer.headers}
    try:
        return RecordedResponse(answer.status, headers, answer.body.decode())
    except UnicodeDecodeError:
        return RecordedResponse(answer.status, headers, bytes_=answer.body)


def _masked(reply: RecordedResponse, masker: Masker) -> RecordedResponse:
    """The very same text where nothing in it has to be hidden."""
    said = _decoded(reply.text.encode())
    hidden = masker.over(said)
    if hidden == said:
        return reply
    return msgspec.structs.replace(reply, text=msgspec.json.encode(hidden).decode())


def _to_answer(reply: RecordedResponse) -> HttpResponse:
    if reply.failure:
        raise (RemoteUnavailable if reply.passing else RemoteRefused)(reply.failure)
    return HttpResponse(reply.status, _CaseInsensitiveHeaders(reply.headers), reply.bytes_ or reply.text.encode())


@dataclass(frozen=True, slots=True)
class _CaseInsensitiveHeaders(Mapping[str, str]):
    """Headers, found in any case."""

    headers: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        for known, text in self.headers.items():
            if known.lower() == name.lower():
                return text
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers)

    def __len__(self) -> int:
        return len(self.headers)
