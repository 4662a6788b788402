"""Error responses of an API server, mapped to our errors. The class of an error decides the retry."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.http import HttpResponse
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.errors import (
    AlreadyExists,
    HeldByOthers,
    KindNotServed,
    RemoteConflict,
    RemoteError,
    RemoteExpired,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
)

_LONGEST_MESSAGE: Final = 1000
# One kind is not there yet, for a moment: that is no reason to ask for less of the others.
_ONE_KIND: Final = "storage is (re)initializing"
# What an apply is told whose fields the kind does not have, or not with such values: as an error of the server.
_UNTYPED: Final = "failed to create typed patch object"
_FIELD_ERROR: Final = re.compile(r"\.([^\s:]+): ([^\n]+)")
_FIELD_MANAGER: Final = re.compile(r'conflict with "([^"]*)"')
_FORBIDDEN: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_WRONG_ADDRESS: Final = ". The API server is not there: check the address in the kubeconfig"
_WHAT_TO_DO: Final = {
    **dict.fromkeys((301, 302, 303, 307, 308), _WRONG_ADDRESS),
    401: ". The cluster does not know these credentials, or no longer: log in again, or use another context",
}


class _Cause(Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(Struct, frozen=True, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: tuple[_Cause, ...] = ()
    retry_after_seconds: int = 0


class ApiStatus(Struct, frozen=True):
    """What the API server says about a request, or about a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details = _Details()


status_decoder: Final = msgspec.json.Decoder(ApiStatus)


def decode_status(answer: HttpResponse) -> ApiStatus:
    """What the API server says; plain text is its message, and the page of somebody else says nothing."""
    try:
        return status_decoder.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        is_text = answer.headers.get("Content-Type", "").startswith("text/plain")
        return ApiStatus(message=answer.body.decode(errors="replace") if is_text else "")


def is_not_found(answer: HttpResponse, name: str | None) -> bool:
    """Whether the API server says that there is no object of this name. It says 404 as well when it knows no such kind,
    or no such namespace; and a web page that says 404 is another server's."""
    if answer.status != 404 or not name:
        return False
    status = decode_status(answer)
    return status.reason == "NotFound" and status.details.name == name


def error_for_response(request: object, answer: HttpResponse) -> RemoteError:
    """The error that a bad answer stands for. `request` is how it is called in the message: method and path."""
    return error_for_status(request, answer.status, decode_status(answer), answer.headers)


def error_for_status(
    request: object, code: int, status: ApiStatus, headers: Mapping[str, str] | None = None
) -> RemoteError:
    """The error that a status stands for."""
    told = f"{request}: {_summary(code, status)}"
    if code == 500 and status.message.startswith(_UNTYPED):
        return RemoteInvalid(told, tuple(_FIELD_ERROR.findall(status.message)))
    if code in (408, 429) or code >= 500:
        return RemoteUnavailable(told, _retry_after(status, headers or {}))
    match code:
        case 403:
            return RemoteRefused(told + _missing_permission(status.message))
        case 404:
            return _not_found(told, status)
        case 409:
            return _conflict(request, told, status)
        case 410:
            return RemoteExpired(told)
        case 422:
            return _invalid(request, told, status)
        case _:
            return RemoteRefused(told + _WHAT_TO_DO.get(code, ""))


def outcome_of(answer: HttpResponse) -> CallOutcome:
    """What an answer says about the API server, and not about the object."""
    if answer.status < 400:
        return RESPONDED
    status = decode_status(answer)
    if answer.status == 429 and _ONE_KIND not in status.message:
        return Throttled(_retry_after(status, answer.headers))
    # An error inside of it, such as a webhook that does not answer, is of this one request.
    is_of_request = status.reason == "InternalError" or status.message.startswith(_UNTYPED)
    if answer.status >= 500 and not is_of_request:
        return Unavailable(_retry_after(status, answer.headers))
    return RESPONDED


def _retry_after(status: ApiStatus, headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    return float(status.details.retry_after_seconds) or None


def _summary(code: int, status: ApiStatus) -> str:
    parts = (str(code), status.reason, " ".join(status.message.split())[:_LONGEST_MESSAGE])
    return ": ".join(part for part in parts if part)


def _missing_permission(message: str) -> str:
    """Which rule of a role would allow it."""
    found = _FORBIDDEN.search(message)
    if found is None:
        return ""
    group = found["group"]
    what = f"{found['resource']}.{group}" if group else found["resource"]
    where = f" in the namespace {found['namespace']}" if found["namespace"] else " in the whole cluster"
    return f". Give this user a role with the verb {found['verb']} on {what}{where}"


def _not_found(told: str, status: ApiStatus) -> RemoteError:
    details = status.details
    if details.kind == "namespaces":
        return RemoteRefused(f"{told}. Make the namespace first")
    if details.name:
        return RemoteConflict(told)
    return KindNotServed(f"{told}. The cluster does not know this kind, version or subresource: apply its CRD")


def _conflict(request: object, told: str, status: ApiStatus) -> RemoteError:
    if status.reason == "AlreadyExists":
        return AlreadyExists(told)
    causes = [one for one in status.details.causes if one.reason == "FieldManagerConflict"]
    if not causes:
        return RemoteConflict(told)
    held = tuple((one.field.removeprefix("."), _field_manager(one.message)) for one in causes)
    fields = ", ".join(f"{field} is held by {holder}" for field, holder in held)
    return HeldByOthers(f"{request}: {fields}: leave it out, or take it over with force", held)


def _field_manager(message: str) -> str:
    found = _FIELD_MANAGER.search(message)
    return found[1] if found else "somebody else"


def _invalid(request: object, told: str, status: ApiStatus) -> RemoteError:
    causes = tuple((one.field, one.message) for one in status.details.causes)
    if not causes:
        return RemoteInvalid(told)
    listed = "; ".join(f"{field}: {message}" if field else message for field, message in causes)
    return RemoteInvalid(f"{request}: 422: {status.reason}: {listed[:_LONGEST_MESSAGE]}", causes)
