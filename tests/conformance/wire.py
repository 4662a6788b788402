"""A recorded connection between a controller and a service, both in this process."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse

# A status, and a body.
WireResponse: TypeAlias = tuple[int, Any]
ABSENT: Final[WireResponse] = (404, {"error": {"code": 404, "message": "none", "errors": [{"reason": "notFound"}]}})

PROJECT: Final = "example-project"
SQL: Final = "https://sqladmin.googleapis.com/sql/v1beta4"
STORAGE: Final = "https://storage.googleapis.com/storage/v1"
_IGNORED_PARAMETERS: Final = ("alt", "prettyPrint")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request. `steps` is the path without its version and its project."""

    method: str
    steps: tuple[str, ...]
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None


Service: TypeAlias = Callable[[WireRequest], WireResponse]


def in_one_order(value: Any) -> Any:
    """A body with every list of named entries sorted: their order does not matter."""
    if isinstance(value, dict):
        return {name: in_one_order(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    items = [in_one_order(one) for one in value]
    if all(isinstance(one, dict) and one.keys() & {"name", "value"} for one in items):
        items.sort(key=lambda one: (str(one.get("name")), str(one.get("value"))))
    return items


@dataclass
class Wire:
    """A connection to a service, with a log of all requests and responses."""

    service: Service
    log: list[tuple[WireRequest, WireResponse]] = field(default_factory=list)

    @property
    def writes(self) -> list[WireRequest]:
        """All requests but reads."""
        return [request for request, _ in self.log if request.method != "GET"]

    def send(self, request: WireRequest) -> WireResponse:
        """The response of the service. Bodies are encoded as JSON in between."""
        request = WireRequest(request.method, request.steps, request.query, _through_json(request.body))
        response: WireResponse = _through_json(self.service(request))
        self.log.append((request, response))
        return response


class WiredHttp(HttpClient):
    """An HTTP client that sends over a wire."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    async def send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        body = msgspec.json.decode(request.body) if request.body else None
        query = {name: value for name, value in parse_qsl(parts.query) if name not in _IGNORED_PARAMETERS}
        status, answer = self._wire.send(WireRequest(request.method, steps_of(parts.path), query, body))
        return HttpResponse(status, {}, b"" if answer is None else msgspec.json.encode(answer))


def steps_of(path: str) -> tuple[str, ...]:
    """The path below the project, or below the version where there is none in it."""
    steps = tuple(unquote(step) for step in path.strip("/").split("/"))
    return steps[4:] if "projects" in steps else steps[2:]


def _through_json(value: Any) -> Any:
    """The value after encoding and decoding; tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(value))
