"""Which function answers which request."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Generic, TypeVar
from urllib.parse import unquote

from setpoint.localcloud import refusals
from setpoint.localcloud.trees import Tree

# Google's front end knows these for every method.
STANDARD_PARAMETERS = frozenset({"alt", "prettyPrint", "fields", "key", "quotaUser", "userProject", "uploadType"})

Service = TypeVar("Service")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


@dataclass(frozen=True, slots=True)
class Call:
    """One request as a service sees it: the time is an argument, the body is a JSON value or None."""

    method: str
    path: str
    now: datetime
    query: Mapping[str, str]
    body: object = None
    # An upload is not JSON.
    media: bytes = b""
    content_type: str = ""
    # The parts of the path, by name.
    parts: Mapping[str, str] | None = None

    def part(self, name: str) -> str:
        """A named part of the path, decoded."""
        return (self.parts or {})[name]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: no body at all when it is None."""

    status: int
    body: Tree | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route(Generic[Service]):
    """A method, a path such as `/b/{bucket}`, what answers it, and the query parameters it knows."""

    method: str
    path: str
    answer: Callable[[Service, Call], Tree | None]
    parameters: frozenset[str] = frozenset()

    def parts_of(self, call: Call) -> Mapping[str, str] | None:
        """The named parts of the path, or None when this route is not meant."""
        if call.method != self.method:
            return None
        found = _pattern(self.path).fullmatch(call.path)
        return {name: unquote(part) for name, part in found.groupdict().items()} if found else None


def dispatch(routes: Sequence[Route[Service]], service: Service, call: Call) -> Answer:
    """The answer to `call`; 204 without a body when the route has nothing to say."""
    for route in routes:
        if (parts := route.parts_of(call)) is None:
            continue
        for name in call.query:
            if name not in route.parameters and name not in STANDARD_PARAMETERS:
                raise refusals.unknown_parameter(name)
        body = route.answer(service, replace(call, parts=parts))
        return Answer(204 if body is None else 200, body, {})
    raise refusals.no_such_method(call.method, call.path)
