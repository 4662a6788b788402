"""Requests as a service sees them: routes, path parameters, pages of lists, project numbers."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Generic, TypeVar
from urllib.parse import unquote

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud import api_errors
from setpoint.localcloud.schema import JsonBody

# Google's front end accepts these with every method.
STANDARD_PARAMETERS = frozenset({"alt", "prettyPrint", "fields", "key", "quotaUser", "userProject", "uploadType"})

_Service = TypeVar("_Service")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """One request as a service sees it: with the time, and the decoded body or None."""

    method: str
    path: str
    now: datetime
    query: Mapping[str, str]
    body: object = None
    # The body of an upload, which is not JSON.
    media: bytes = b""
    content_type: str = ""
    # The path parameters by name.
    parts: Mapping[str, str] | None = None
    # The etag of the header `If-Match`.
    if_match: str = ""

    def part(self, name: str) -> str:
        """A path parameter, decoded."""
        return (self.parts or {})[name]


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """A response; without a body when that is None."""

    status: int
    body: JsonBody | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route(Generic[_Service]):
    """A method, a path such as `/b/{bucket}`, its handler, and the query parameters that it accepts."""

    method: str
    path: str
    answer: Callable[[_Service, ServiceCall], JsonBody | None]
    parameters: frozenset[str] = frozenset()

    def parts_of(self, call: ServiceCall) -> Mapping[str, str] | None:
        """The path parameters of a call, or None when the route does not match."""
        if call.method != self.method:
            return None
        found = _pattern(self.path).fullmatch(call.path)
        return {name: unquote(part) for name, part in found.groupdict().items()} if found else None


def dispatch(routes: Sequence[Route[_Service]], service: _Service, call: ServiceCall) -> ServiceResponse:
    """The response to `call`; 204 without a body when the handler returns None."""
    for route in routes:
        if (parts := route.parts_of(call)) is None:
            continue
        if not {".", ".."}.isdisjoint(parts.values()):
            raise api_errors.dot_segment(call.path)
        for name in call.query:
            if name not in route.parameters and name not in STANDARD_PARAMETERS:
                raise api_errors.unknown_parameter(name)
        body = route.answer(service, replace(call, parts=parts))
        return ServiceResponse(204 if body is None else 200, body, {})
    raise api_errors.no_such_method(call.method, call.path)


_Item = TypeVar("_Item")


def page(items: Sequence[_Item], key: Callable[[_Item], str], call: ServiceCall) -> tuple[list[_Item], str | None]:
    """The items of this page, sorted by key, and the token of the next page.

    The token is the key of the last item: a list that changes between two pages repeats no item.
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
    """The number of a project: twelve digits, derived from its id. Every project id exists."""
    mark = int.from_bytes(hashlib.sha256(project.encode()).digest()[:8], "big")
    return str(10**11 + mark % (9 * 10**11))
