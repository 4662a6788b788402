"""Requests and answers between a controller and a service, both in this process, with every write on record."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse

# A status, and a body.
Told: TypeAlias = tuple[int, Any]
ABSENT: Final[Told] = (404, {"error": {"code": 404, "message": "none", "errors": [{"reason": "notFound"}]}})

PROJECT: Final = "example-project"
SQL: Final = "https://sqladmin.googleapis.com/sql/v1beta4"
STORAGE: Final = "https://storage.googleapis.com/storage/v1"
_OF_NO_CONSEQUENCE: Final = ("alt", "prettyPrint")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `steps` is the path without its version and its project."""

    method: str
    steps: tuple[str, ...]
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None


Service: TypeAlias = Callable[[Asked], Told]


def in_one_order(value: Any) -> Any:
    """A body with lists that are told apart by names and values sorted by them: their order is of no consequence."""
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
    """The way to a service."""

    service: Service
    log: list[tuple[Asked, Told]] = field(default_factory=list)

    @property
    def writes(self) -> list[Asked]:
        """Everything that was asked but to read."""
        return [asked for asked, _ in self.log if asked.method != "GET"]

    def ask(self, asked: Asked) -> Told:
        """What the service tells. Bodies go as JSON, as they do on any wire."""
        asked = Asked(asked.method, asked.steps, asked.query, _through_json(asked.body))
        told: Told = _through_json(self.service(asked))
        self.log.append((asked, told))
        return told


class WiredHttp(HttpClient):
    """HTTP that ends at a wire."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    async def send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        body = msgspec.json.decode(request.body) if request.body else None
        query = {name: value for name, value in parse_qsl(parts.query) if name not in _OF_NO_CONSEQUENCE}
        status, told = self._wire.ask(Asked(request.method, steps_of(parts.path), query, body))
        return HttpResponse(status, {}, b"" if told is None else msgspec.json.encode(told))


def steps_of(path: str) -> tuple[str, ...]:
    """The path below the project, or below the version where there is none in it."""
    steps = tuple(unquote(step) for step in path.strip("/").split("/"))
    return steps[4:] if "projects" in steps else steps[2:]


def _through_json(value: Any) -> Any:
    """What is left of a value on the other side; tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(value))
