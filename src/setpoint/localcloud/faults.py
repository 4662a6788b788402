"""Fault injection: each fault is a value, the same in Python and over the control API."""

import math
import re
from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from setpoint.core.values.paths import Path, set_at
from setpoint.errors import UserError
from setpoint.localcloud.schema import JsonBody, merge_patch


class FaultTiming(StrEnum):
    """When a request fails: before it took effect, or after."""

    BEFORE = "before"
    AFTER = "after"


class FailRequest(Struct, tag="fail", tag_field="fault", forbid_unknown_fields=True):
    """The next `times` matching requests are answered with `status`."""

    status: int
    method: str = ".*"
    path: str = ""
    times: int = 1
    retry_after: int | None = None
    moment: FaultTiming = FaultTiming.BEFORE


class DropConnection(Struct, tag="drop", tag_field="fault", forbid_unknown_fields=True):
    """The next `times` matching requests get no response: the connection is dropped."""

    method: str = ".*"
    path: str = ""
    times: int = 1
    moment: FaultTiming = FaultTiming.BEFORE


class AddLatency(Struct, tag="latency", tag_field="fault", forbid_unknown_fields=True):
    """Every matching request waits this long first, by the local cloud's clock."""

    seconds: float
    method: str = ".*"
    path: str = ""


class FailOperation(Struct, tag="fail-operation", tag_field="fault", forbid_unknown_fields=True):
    """The next `times` matching operations end with an error, and change nothing."""

    code: str = "INTERNAL_ERROR"
    message: str = "The operation failed because the local cloud was told to let it fail."
    type: str = ".*"
    target: str = ".*"
    times: int = 1


class RewriteField(Struct, tag="rewrite", tag_field="fault", forbid_unknown_fields=True):
    """The service sets `field` to `value` with every write of a resource of this kind."""

    kind: str
    field: str
    value: Any


class AddFields(Struct, tag="grow", tag_field="fault", forbid_unknown_fields=True):
    """A newer API: every resource of this kind has these members too. In requests they are accepted and ignored."""

    members: dict[str, Any]
    kind: str | None = None


class LimitRequests(Struct, tag="quota", tag_field="fault", forbid_unknown_fields=True):
    """At most this many requests a second for each project; None removes the limit."""

    requests_per_second: int | None


Fault: TypeAlias = FailRequest | DropConnection | AddLatency | FailOperation | RewriteField | AddFields | LimitRequests


class Faults:
    """The active faults. One with `times` is removed when it is used up."""

    def __init__(self) -> None:
        self._active: list[Fault] = []
        self._recent: defaultdict[str, deque[datetime]] = defaultdict(deque)

    def add(self, fault: Fault) -> None:
        """Activates a fault; a new quota replaces the old one. UserError for an invalid pattern or path."""
        _check(fault)
        if isinstance(fault, LimitRequests):
            self._active = [one for one in self._active if not isinstance(one, LimitRequests)]
            self._recent.clear()
        # A copy: some faults count down, and the caller keeps its own value.
        self._active.append(replace(fault))

    def clear(self) -> None:
        """Removes every fault."""
        self._active.clear()

    @property
    def active(self) -> tuple[Fault, ...]:
        """The active faults, oldest first."""
        return tuple(self._active)

    def latency(self, method: str, path: str) -> float:
        """The seconds that a request has to wait."""
        waits = (one for one in self._active if isinstance(one, AddLatency) and _matches(one, method, path))
        return sum(one.seconds for one in waits)

    def outcome(self, method: str, path: str, moment: FaultTiming) -> FailRequest | DropConnection | None:
        """The fault for this request at this moment, if any; it counts down by one."""
        for one in self._active:
            if isinstance(one, FailRequest | DropConnection) and one.moment is moment and _matches(one, method, path):
                self._use(one)
                return one
        return None

    def operation_error(self, type_: str, target: str) -> JsonBody | None:
        """The error that an operation will end with, if any; the fault counts down by one."""
        for one in self._active:
            if isinstance(one, FailOperation) and re.fullmatch(one.type, type_) and re.search(one.target, target):
                self._use(one)
                error = {"code": one.code, "kind": "sql#operationError", "message": one.message}
                return {"errors": [error], "kind": "sql#operationErrors"}
        return None

    def rewritten(self, resource: JsonBody, kinds: Sequence[str] = ()) -> JsonBody:
        """The resource with every RewriteField applied; `kinds` are names that it has beside its own `kind`."""
        for one in self._active:
            if isinstance(one, RewriteField) and one.kind in (resource.get("kind"), *kinds):
                changed = set_at(resource, Path.parse(one.field), one.value)
                # A path without steps would replace the whole resource: it names no field.
                resource = changed if isinstance(changed, dict) else resource
        return resource

    def with_added_fields(self, body: JsonBody) -> JsonBody:
        """A response with the members of every AddFields, in each of its resources."""
        for one in self._active:
            if isinstance(one, AddFields):
                body = _with_fields(body, one)
        return body

    def without_added_fields(self, body: object) -> object:
        """A request without the members of any AddFields."""
        for one in self._active:
            if isinstance(one, AddFields) and isinstance(body, dict):
                body = _without(body, one.members)
        return body

    def over_quota(self, project: str, now: datetime) -> int | None:
        """The seconds to wait when the project is over its quota; otherwise the request counts, and None."""
        limits = [one.requests_per_second for one in self._active if isinstance(one, LimitRequests)]
        if not limits or limits[0] is None:
            return None
        recent = self._recent[project]
        while recent and (now - recent[0]).total_seconds() >= 1:
            recent.popleft()
        if len(recent) < limits[0]:
            recent.append(now)
            return None
        return max(1, math.ceil(1 - (now - recent[0]).total_seconds())) if recent else 1

    def _use(self, fault: FailRequest | DropConnection | FailOperation) -> None:
        fault.times -= 1
        if fault.times <= 0:
            self._active = [one for one in self._active if one is not fault]


def _check(fault: Fault) -> None:
    patterns = [str(getattr(fault, name)) for name in ("method", "path", "type", "target") if hasattr(fault, name)]
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UserError(f"{pattern!r} is not a regular expression: {error}") from error
    if isinstance(fault, RewriteField):
        Path.parse(fault.field)


def _matches(fault: FailRequest | DropConnection | AddLatency, method: str, path: str) -> bool:
    return re.fullmatch(fault.method, method) is not None and re.search(fault.path, path) is not None


def _with_fields(body: JsonBody, fault: AddFields) -> JsonBody:
    items = body.get("items")
    if isinstance(items, list):
        body = {**body, "items": [_with_fields(one, fault) for one in items]}
    if fault.kind in (None, body.get("kind")):
        body = merge_patch(body, fault.members)
    return body


def _without(body: JsonBody, members: JsonBody) -> JsonBody:
    result: JsonBody = {}
    for name, value in body.items():
        added: object | UnsetType = members.get(name, UNSET)
        if added is UNSET:
            result[name] = value
        elif isinstance(added, dict) and isinstance(value, dict) and (rest := _without(value, added)):
            result[name] = rest
    return result
