"""Error responses of Google's APIs, mapped to our errors. The class of an error decides the retry."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.http import HttpResponse
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.errors import (
    OperationRunning,
    RemoteConflict,
    RemoteError,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)

# A quota that fills again; Google's older services say so with 403.
_RATE_LIMIT_REASONS: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"})
_ALREADY_EXISTS_REASONS: Final = frozenset({"conflict", "alreadyExists", "instanceAlreadyExists", "ALREADY_EXISTS"})
_WHAT_TO_DO: Final = {
    302: ". The service is not there: check the address",
    401: ". Check which account the credentials are for, and that they are still valid",
    404: ". Check the address, and whether what should hold the object is there",
}
_LONGEST_MESSAGE: Final = 500


class _Item(Struct):
    reason: str = ""


class _Error(Struct):
    message: str = ""
    status: str = ""
    errors: list[_Item] = []


class _Body(Struct):
    error: _Error


_decoder: Final = msgspec.json.Decoder(_Body)


def error_for_response(request: object, method: str, answer: HttpResponse, now: datetime) -> SetpointError:
    """The error that a bad answer stands for. `request` is how it is called in the message: method and path."""
    error = _decode_error(answer.body)
    reason = _reason(error)
    told = f"{request}: {_summary(answer.status, reason, error.message)}"
    if answer.status in (408, 429) or answer.status >= 500 or (answer.status == 403 and reason in _RATE_LIMIT_REASONS):
        return RemoteUnavailable(told, retry_after(answer, now))
    match answer.status:
        case 404 if is_not_found(answer) and method in ("PATCH", "PUT"):
            return RemoteConflict(told)
        case 409:
            return _conflict(told, reason, method)
        case 412:
            return RemoteConflict(told)
        case status:
            what_to_do = _WHAT_TO_DO.get(status, "")
            # The service ends its sentence itself.
            return RemoteRefused((told.removesuffix(".") if what_to_do else told) + what_to_do)


def outcome_of(answer: HttpResponse) -> CallOutcome:
    """What an answer says about the service, and not about the object."""
    if answer.status < 400:
        return RESPONDED
    if answer.status >= 500:
        return Unavailable(retry_after(answer, datetime.now(UTC)))
    if answer.status == 429 or (answer.status == 403 and _reason(_decode_error(answer.body)) in _RATE_LIMIT_REASONS):
        return Throttled(retry_after(answer, datetime.now(UTC)))
    return RESPONDED


def is_not_found(answer: HttpResponse) -> bool:
    """Whether the service says that there is no such object. A web page that says 404 is another server's."""
    return answer.status == 404 and not answer.headers.get("Content-Type", "").startswith("text/html")


def retry_after(answer: HttpResponse, now: datetime) -> float | None:
    """How long Retry-After asks to wait, written as seconds or as a date; None when it does not, or makes no sense."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max((date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds(), 0.0)


def error_message(body: bytes) -> str:
    """What Google says is wrong; nothing when that is no error of its."""
    return _decode_error(body).message


def _conflict(told: str, reason: str, method: str) -> RemoteError | OperationRunning:
    if reason == "operationInProgress":
        return OperationRunning(told)
    # What cannot be deleted will not be different at the next look.
    return RemoteConflict(told) if reason in _ALREADY_EXISTS_REASONS and method != "DELETE" else RemoteRefused(told)


def _decode_error(body: bytes) -> _Error:
    try:
        return _decoder.decode(body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # A proxy's page, or nothing: its text is not Google's word.
        return _Error()


def _reason(error: _Error) -> str:
    return error.errors[0].reason if error.errors else error.status


def _summary(status: int, reason: str, message: str) -> str:
    parts = (str(status), reason, " ".join(message.split())[:_LONGEST_MESSAGE])
    return ": ".join(part for part in parts if part)
