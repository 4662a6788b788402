"""Requests as a service sees them: routes, path parameters, pages of lists, project numbers."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Generic, TypeVar
from urllib.parse import unquote

from setpoint.localcloud import api_errors
from setpoint.localcloud.json_body import JsonBody

# Google's front end knows these for every method.
STANDARD_PARAMETERS = frozenset({"alt", "prettyPrint", "fields", "key", "quotaUser", "userProject", "uploadType"})

_Service = TypeVar("_Service")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


@dataclass(frozen=True, slots=True)
class ServiceCall:
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
class ServiceResponse:
    """What goes back: no body at all when it is None."""

    status: int
    body: JsonBody | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route(Generic[_Service]):
    """A method, a path such as `/b/{bucket}`, what answers it, and the query parameters it knows."""

    method: str
    path: str
    answer: Callable[[_Service, ServiceCall], JsonBody | None]
    parameters: frozenset[str] = frozenset()

    def parts_of(self, call: ServiceCall) -> Mapping[str, str] | None:
        """The named parts of the path, or None when this route is not meant."""
        if call.method != self.method:
            return None
        found = _pattern(self.path).fullmatch(call.path)
        return {name: unquote(part) for name, part in found.groupdict().items()} if found else None


def dispatch(routes: Sequence[Route[_Service]], service: _Service, call: ServiceCall) -> ServiceResponse:
    """The answer to `call`; 204 without a body when the route has nothing to say."""
    for route in routes:
        if (parts := route.parts_of(call)) is None:
            continue
        for name in call.query:
            if name not in route.parameters and name not in STANDARD_PARAMETERS:
                raise api_errors.unknown_parameter(name)
        body = route.answer(service, replace(call, parts=parts))
        return ServiceResponse(204 if body is None else 200, body, {})
    raise api_errors.no_such_method(call.method, call.path)


_Item = TypeVar("_Item")


def page(items: Sequence[_Item], key: Callable[[_Item], str], call: ServiceCall) -> tuple[list[_Item], str | None]:
    """The items of this page, in the order of their keys, and the token of the next page.

    The token is the key of the last item given: a list that changes between two pages repeats nothing.
    """
    size = _page_size(call.query.get("maxResults", "500"))
    after = call.query.get("pageToken", "")
    left = sorted((item for item in items if key(item) > after), key=key)
    return left[:size], key(left[size - 1]) if len(left) > size else None


def _page_size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise api_errors.wrong_value("max_results", "TYPE_UINT32", text)
    return min(int(text), 1000)


def project_number(project: str) -> str:
    """The number of a project: twelve digits, always the same for the same project."""
    mark = int.from_bytes(hashlib.sha256(project.encode()).digest()[:8], "big")
    return str(10**11 + mark % (9 * 10**11))
