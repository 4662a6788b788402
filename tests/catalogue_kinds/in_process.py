"""A local cloud in the process of a test, and an HTTP client that hands requests to it without a connection.

The lifecycle contract of the kinds that are written by hand goes over the loopback device; here are hundreds of kinds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.errors import RemoteUnavailable
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.routing import ServiceResponse
from setpoint.testing import CallFault
from tests.kinds.lifecycle_google import OPERATION_SECONDS, held_clock, injected_fault

URL: Final = "http://local-cloud.test"


class RecordingCloud(Cloud):
    """A local cloud that keeps the bodies of the writes that took effect, with their secrets."""

    def __init__(self) -> None:
        super().__init__(clock=held_clock(), operation_seconds=OPERATION_SECONDS)
        self.written: list[Any] = []

    def handle(self, request: CloudRequest) -> ServiceResponse | None:
        answer = super().handle(request)
        if answer is not None and answer.status == 200 and request.method != "GET" and request.body:
            self.written.append(msgspec.json.decode(request.body))
        return answer


@dataclass(slots=True)
class _VerbFault:
    fault: CallFault
    verbs: Sequence[str]
    times: int


class VerbCloud(RecordingCloud):
    """A local cloud for requests whose verbs do not show in their method and path: faults go by the verb, too."""

    def __init__(self, verb_of: Callable[[CloudRequest], str]) -> None:
        super().__init__()
        self.verbs: list[str] = []
        self.verb_faults: list[_VerbFault] = []
        self._verb_of = verb_of

    def fail(self, fault: CallFault, verbs: Sequence[str], times: int) -> None:
        """The next requests with these verbs go wrong."""
        self.verb_faults.append(_VerbFault(fault, verbs, times))

    def handle(self, request: CloudRequest) -> ServiceResponse | None:
        verb = self._verb_of(request)
        self.verbs.append(verb)
        due = next((one for one in self.verb_faults if one.times and verb in one.verbs), None)
        if due is not None:
            due.times -= 1
            self.inject(injected_fault(due.fault, ".*", 1))
        answer = super().handle(request)
        if due is None and answer is not None and answer.status >= HTTPStatus.BAD_REQUEST:
            # While an operation runs, the service refuses the next write, which changes nothing.
            self.verbs[-1] = "get"
        return answer


class InProcessClient(HttpClient):
    """The HTTP client, with the local cloud where it has connections."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self._cloud = cloud

    async def _send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = self._cloud.handle(
            CloudRequest(
                request.method,
                parts.path,
                dict(parse_qsl(parts.query, keep_blank_values=True)),
                request.body or b"",
                headers.get("content-type", ""),
                headers.get("if-match", ""),
            )
        )
        if answer is None:
            raise RemoteUnavailable(f"{request}: the connection was cut")
        body = b"" if answer.body is None else msgspec.json.encode(answer.body, order="sorted")
        return HttpResponse(answer.status, {"Content-Type": "application/json; charset=UTF-8", **answer.headers}, body)
