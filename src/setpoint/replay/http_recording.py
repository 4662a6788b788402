"""Recorded HTTP requests and responses: one response per request, recorded and replayed."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.clients.ratelimit.read_retries import is_repeated
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.clients.write_guard import is_capturing_writes
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.errors import NotRecorded, RemoteError, RemoteRefused, RemoteUnavailable, ResponseTooLarge
from setpoint.replay.masking import Masker

# The headers that are recorded.
_RECORDED_HEADERS: Final = ("Content-Type",)
# Authentication and rate limits of the recording process are not part of the recorded world.
_NOT_RECORDED_STATUSES: Final = (401, 429)
_JSON_TYPE: Final = "application/json"


class RequestKey(NamedTuple):
    """Identifies a request. `way` is the service or cluster, `form` the Accept header, `body` a digest of the body."""

    way: str
    method: str
    target: str
    form: str = _JSON_TYPE
    body: str = ""

    def __str__(self) -> str:
        return f"{self.method} {urlsplit(self.target).path} ({self.way})"


class RecordedResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A response with its body as text, or as bytes if it is not UTF-8; or the message of a `failure`."""

    status: int = 0
    headers: dict[str, str] = {}
    text: str = ""
    bytes_: bytes = msgspec.field(default=b"", name="bytes")
    failure: str = ""
    # Whether the failure was transient; and whether it was the size of the response.
    passing: bool = True
    too_large: bool = False

    @property
    def is_passing(self) -> bool:
        """Whether the service was unavailable for the moment."""
        return self.status >= 500 or (bool(self.failure) and self.passing and not self.too_large)


@dataclass(slots=True)
class HttpRecording:
    """All requests and responses of one world."""

    responses: dict[RequestKey, RecordedResponse] = field(default_factory=dict)
    # Masks request bodies before they are digested; None for a recording from a file, which is masked already.
    masker: Masker | None = None
    # The environment variables that were read, with their values.
    environment: dict[str, str | None] = field(default_factory=dict)
    # Why clusters could not be opened, so that nothing was sent to them, by their IDs.
    unopened: dict[str, str] = field(default_factory=dict)
    # Requests without a recorded response.
    missed: list[RequestKey] = field(default_factory=list)

    def masked(self) -> "HttpRecording":
        """The recording with secret values in responses masked. Request keys are made from masked bodies anyway."""
        masker, responses = self.masker, self.responses
        if masker is not None:
            responses = {key: _masked(one, masker) for key, one in responses.items()}
        return HttpRecording(responses, unopened=self.unopened)


@dataclass(frozen=True, slots=True)
class HttpRecorder:
    """An interceptor that records every response. A recorded request is not sent again: the world is of one moment."""

    way: str
    http_recording: HttpRecording

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        known = self.http_recording.responses.get(request_key(self.way, request, self.http_recording.masker))
        return None if known is None or (known.is_passing and is_repeated()) else _to_answer(known)

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See HttpInterceptor. Two concurrent equal requests both get the response that came first.

        One that says that the service is unavailable for the moment makes room for that to the same request, repeated.
        """
        if answer.status in _NOT_RECORDED_STATUSES:
            return answer
        return _to_answer(self._kept(request, _to_response(answer)))

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""
        is_too_large = isinstance(error, ResponseTooLarge)
        is_passing = isinstance(error, RemoteUnavailable)
        self._kept(request, RecordedResponse(failure=str(error), passing=is_passing, too_large=is_too_large))

    def _kept(self, request: HttpRequest, response: RecordedResponse) -> RecordedResponse:
        responses, key = self.http_recording.responses, request_key(self.way, request, self.http_recording.masker)
        if key not in responses or responses[key].is_passing:
            responses[key] = response
        return responses[key]


@dataclass(frozen=True, slots=True)
class HttpReplayer:
    """An interceptor that answers from a recording; NotRecorded for a request that is not in it."""

    way: str
    http_recording: HttpRecording

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        key = request_key(self.way, request, self.http_recording.masker)
        known = self.http_recording.responses.get(key)
        if known is None:
            if not is_capturing_writes():
                self.http_recording.missed.append(key)
            raise NotRecorded(f"{key} was not asked when this world was recorded: record it again")
        return _to_answer(known)

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """See HttpInterceptor. Nothing is sent, so this is never called."""
        return answer

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor. Never called, either."""


# Services whose requests are told apart by their paths alone.
_BY_PATH: Final = ("sqladmin.googleapis.com", "storage.googleapis.com")
_GOOGLE: Final = ".googleapis.com"


def _service_path(host: str, path: str) -> str:
    """The path with the host of a service of Google's before it, as below a base for all of them."""
    whole = f"/{host}{path}" if host.endswith(_GOOGLE) else path
    return next((whole.removeprefix(f"/{one}") for one in _BY_PATH if whole.startswith(f"/{one}/")), whole)


def request_key(way: str, request: HttpRequest, masker: Masker | None) -> RequestKey:
    """The key of `request`, wherever its service is. The body counts by the digest of its masked content."""
    parts = urlsplit(request.url)
    path = _service_path(parts.hostname or "", parts.path)
    target = f"{path}?{parts.query}" if parts.query else path
    form = request.headers.get("Accept", _JSON_TYPE)
    return RequestKey(way, request.method, target, form, _body_digest(request.body, masker) if request.body else "")


def _body_digest(body: bytes, masker: Masker | None) -> str:
    content = _decoded(body)
    return digest(content if masker is None else masker.mask(content))


def _decoded(body: bytes) -> Json:
    """The JSON in a body; its text if it is not JSON."""
    try:
        found: Json = msgspec.json.decode(body)
    except UNDECODABLE:
        return body.decode(errors="replace")
    return found


def _to_response(answer: HttpResponse) -> RecordedResponse:
    # A header may have bytes that are no UTF-8.
    headers = {name: _text(answer.headers[name]) for name in _RECORDED_HEADERS if name in answer.headers}
    try:
        return RecordedResponse(answer.status, headers, answer.body.decode())
    except UnicodeDecodeError:
        return RecordedResponse(answer.status, headers, bytes_=answer.body)


def _text(header: str) -> str:
    return header.encode(errors="replace").decode()


def _masked(response: RecordedResponse, masker: Masker) -> RecordedResponse:
    """`response` with its text masked; unchanged if it holds no secret value."""
    content = _decoded(response.text.encode())
    masked = masker.mask(content)
    if masked == content:
        return response
    return msgspec.structs.replace(response, text=msgspec.json.encode(masked).decode())


def _to_answer(response: RecordedResponse) -> HttpResponse:
    if response.too_large:
        raise ResponseTooLarge(response.failure)
    if response.failure:
        raise (RemoteUnavailable if response.passing else RemoteRefused)(response.failure)
    return HttpResponse(
        response.status, _CaseInsensitiveHeaders(response.headers), response.bytes_ or response.text.encode()
    )


@dataclass(frozen=True, slots=True)
class _CaseInsensitiveHeaders(Mapping[str, str]):
    """Headers with case-insensitive names."""

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
