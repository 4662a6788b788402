"""Error responses of an API server, mapped to our errors. The class of an error decides the retry."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.foreign_errors import error_summary
from setpoint.clients.http import HttpResponse
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.clients.response_bodies import UNDECODABLE, decode_response
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

STATUS: Final = "Status"
_LONGEST_MESSAGE: Final = 1000
# Of a Status no more is looked at. Patterns search these texts, and messages quote them.
_LONGEST_TEXT: Final = 4000
_LONGEST_WORD: Final = 300
# What stays of the end of a text that is cut.
_END_LENGTH: Final = 150
_HIGHEST_CODE: Final = 999
# So many fields are listed in a message.
_MOST_FIELDS: Final = 20
# The longest Retry-After that is honoured. API servers ask for seconds.
MAX_RETRY_AFTER: Final = 300.0
# The API server has just begun to serve one kind: no reason to slow down calls of other kinds.
_STARTING_KIND: Final = "storage is (re)initializing"
# The API server reports an apply with unknown fields or values of a wrong type as an internal error.
_TYPED_PATCH_ERROR: Final = "failed to create typed patch object"
_FIELD_ERROR: Final = re.compile(r"\.([^\s:]+): ([^\n]+)")
_UNKNOWN_FIELD: Final = re.compile(r'unknown field "([^"]+)"')
_FIELD_MANAGER: Final = re.compile(r'conflict with "([^"]*)"')
_FORBIDDEN: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_WRONG_ADDRESS: Final = ". The API server is not there: check the address in the kubeconfig"
_ADVICE: Final = {
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
    """The metav1.Status of a response, or in a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details = _Details()
    kind: str = ""


_status_decoder: Final = msgspec.json.Decoder(ApiStatus)


def decode_status(response: HttpResponse) -> ApiStatus:
    """The Status in the response; plain text is its message, and a page of another server is an empty one."""
    try:
        return _bounded(_status_decoder.decode(response.body))
    except UNDECODABLE:
        is_text = response.headers.get("Content-Type", "").startswith("text/plain")
        start = response.body[: 4 * _LONGEST_TEXT] if is_text else b""
        return _bounded(ApiStatus(message=start.decode(errors="replace")))


def status_of_event(body: bytes | msgspec.Raw, what: object) -> ApiStatus:
    """The Status that an error event of the watch `what` has; an empty one for any other object."""
    status = decode_response(_status_decoder, body, what)
    return _bounded(status) if status.kind == STATUS else ApiStatus()


def status_alone(response: HttpResponse) -> HttpResponse:
    """An error response with its Status and Retry-After alone: for a server that a tenant named.

    It may be any server that this process can reach and the tenant cannot: what it answers is not for the tenant,
    unless it is an API server.
    """
    status = decode_status(response)
    headers = {"Content-Type": "application/json"}
    if "Retry-After" in response.headers:
        headers["Retry-After"] = response.headers["Retry-After"]
    body = msgspec.json.encode(status if status.kind == STATUS else ApiStatus())
    return HttpResponse(response.status, headers, body)


def _bounded(status: ApiStatus) -> ApiStatus:
    """The Status without control characters, and with texts of a limited length."""
    details = status.details
    causes = tuple(
        _Cause(one.reason, _plain(one.message, _LONGEST_MESSAGE), _plain(one.field, _LONGEST_WORD))
        for one in details.causes
    )
    names = _plain(details.name, _LONGEST_WORD), _plain(details.kind, _LONGEST_WORD)
    seconds = int(min(max(details.retry_after_seconds, 0), MAX_RETRY_AFTER))
    reason, message = _plain(status.reason, _LONGEST_WORD), _plain(status.message, _LONGEST_TEXT)
    code = min(max(status.code, 0), _HIGHEST_CODE)
    return ApiStatus(code, reason, message, _Details(*names, causes, seconds), status.kind)


def _plain(text: str, longest: int) -> str:
    """The text without control characters. Of a long one the end stays: it says what is wrong with a value."""
    is_long = len(text) > longest
    shown = f"{text[: longest - _END_LENGTH - 3]} … {text[-_END_LENGTH:]}" if is_long else text
    if shown.isprintable():
        return shown
    # Lines matter: the API server lists fields so.
    return "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in shown)


def is_not_found(response: HttpResponse, name: str | None) -> bool:
    """Whether the API server says that no object has this name. A 404 may also mean that the kind or the namespace does
    not exist, or come from another server."""
    if response.status != 404 or not name:
        return False
    status = decode_status(response)
    return status.reason == "NotFound" and status.details.name == name


def error_for_response(request: object, response: HttpResponse) -> RemoteError:
    """The error for a response that is not a success. `request` names it in the message: method and path."""
    return error_for_status(request, response.status, decode_status(response), response.headers)


def error_for_status(
    request: object, code: int, status: ApiStatus, headers: Mapping[str, str] | None = None
) -> RemoteError:
    """The error for a Status."""
    summary = f"{request}: {error_summary(code, status.reason, status.message, longest=_LONGEST_MESSAGE)}"
    if code == 500 and status.message.startswith(_TYPED_PATCH_ERROR):
        return RemoteInvalid(summary, tuple(_FIELD_ERROR.findall(status.message)))
    if code in (408, 429) or code >= 500:
        return RemoteUnavailable(summary, _retry_after(status, headers or {}))
    match code:
        case 403:
            return RemoteRefused(summary + _missing_permission(status.message), code)
        case 404:
            return _not_found(summary, status)
        case 409:
            return _conflict(request, summary, status)
        case 410:
            return RemoteExpired(summary)
        case 422:
            return _invalid(request, summary, status)
        case _:
            return RemoteRefused(summary + _ADVICE.get(code, ""), code, tuple(_UNKNOWN_FIELD.findall(status.message)))


def outcome_of(response: HttpResponse) -> CallOutcome:
    """What the response says about the API server, for the rate limiter; not about the object."""
    if response.status < 400:
        return RESPONDED
    status = decode_status(response)
    if response.status == 429 and _STARTING_KIND not in status.message:
        return Throttled(_retry_after(status, response.headers))
    # An internal error, such as a webhook that does not answer, concerns this one request.
    is_of_request = status.reason == "InternalError" or status.message.startswith(_TYPED_PATCH_ERROR)
    if response.status >= 500 and not is_of_request:
        return Unavailable(_retry_after(status, response.headers))
    return RESPONDED


def _retry_after(status: ApiStatus, headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER)
    return float(status.details.retry_after_seconds) or None


def _missing_permission(message: str) -> str:
    """The rule that a role would need."""
    found = _FORBIDDEN.search(message)
    if found is None:
        return ""
    group = found["group"]
    what = f"{found['resource']}.{group}" if group else found["resource"]
    where = f" in the namespace {found['namespace']}" if found["namespace"] else " in the whole cluster"
    return f". Give this user a role with the verb {found['verb']} on {what}{where}"


def _not_found(summary: str, status: ApiStatus) -> RemoteError:
    details = status.details
    if details.kind == "namespaces":
        return RemoteRefused(f"{summary}. Make the namespace first", 404)
    if details.name:
        return RemoteConflict(summary)
    return KindNotServed(f"{summary}. The cluster does not know this kind, version or subresource: apply its CRD")


def _conflict(request: object, summary: str, status: ApiStatus) -> RemoteError:
    if status.reason == "AlreadyExists":
        return AlreadyExists(summary)
    causes = [one for one in status.details.causes if one.reason == "FieldManagerConflict"]
    if not causes:
        return RemoteConflict(summary)
    held = tuple((one.field.removeprefix("."), _field_manager(one.message)) for one in causes)
    fields = ", ".join(f"{field} is held by {holder}" for field, holder in held[:_MOST_FIELDS])
    return HeldByOthers(f"{request}: {fields}: leave it out, or take it over with force", held)


def _field_manager(message: str) -> str:
    found = _FIELD_MANAGER.search(message)
    return found[1][:_LONGEST_WORD] if found else "another field manager"


def _invalid(request: object, summary: str, status: ApiStatus) -> RemoteError:
    causes = tuple((one.field, one.message) for one in status.details.causes)
    if not causes:
        return RemoteInvalid(summary)
    listed = "; ".join(f"{field}: {message}" if field else message for field, message in causes)
    return RemoteInvalid(f"{request}: 422: {status.reason}: {listed[:_LONGEST_MESSAGE]}", causes)
