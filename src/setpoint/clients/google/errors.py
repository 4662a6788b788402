"""Error responses of Google's APIs, mapped to our errors. The class of an error decides the retry."""

from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.foreign_errors import error_summary
from setpoint.clients.http import HttpResponse
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.token_bucket import MAX_RETRY_AFTER
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.errors import (
    OperationRunning,
    RemoteConflict,
    RemoteError,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)

# Rate limits; Google's older services report them with 403.
_RATE_LIMIT_REASONS: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"})
_ALREADY_EXISTS_REASONS: Final = frozenset({"conflict", "alreadyExists", "instanceAlreadyExists", "ALREADY_EXISTS"})
# Another operation changes the object: what is sent now is refused, and later it is not.
_BUSY_REASONS: Final = frozenset({"operationInProgress", "resourceNotReady"})
# Either that, or the object has changed since it was read.
_ABORTED_REASONS: Final = frozenset({"aborted", "ABORTED"})
_ADVICE: Final = {
    302: ". The service is not there: check the address",
    401: ". Check which account the credentials are for, and that they are still valid",
    404: ". Check the address, and whether what should hold the object is there",
}
_LONGEST_MESSAGE: Final = 500
# Another operation is at work on the object: of Cloud SQL, of newer APIs, of Compute.
_IN_PROGRESS_REASONS: Final = frozenset({"operationInProgress", "ABORTED", "aborted", "resourceNotReady"})


class _Item(Struct):
    reason: str = ""


class _Error(Struct):
    message: str = ""
    status: str = ""
    errors: list[_Item] = []


class _Body(Struct):
    error: _Error


_decoder: Final = msgspec.json.Decoder(_Body)


def error_for_response(request: object, method: str, response: HttpResponse, now: datetime) -> SetpointError:
    """The error for a response that is not a success. `request` names it in the message: method and path."""
    error = _decode_error(response.body)
    reason = _reason(error)
    summary = f"{request}: {error_summary(response.status, reason, error.message, longest=_LONGEST_MESSAGE)}"
    is_rate_limited = response.status == 403 and reason in _RATE_LIMIT_REASONS
    if response.status in (408, 429) or response.status >= 500 or is_rate_limited:
        return RemoteUnavailable(summary, retry_after(response, now))
    if response.status in (400, 409) and reason in _BUSY_REASONS:
        return OperationRunning(summary)
    match response.status:
        case 404 if is_not_found(response) and method in ("PATCH", "PUT"):
            return RemoteConflict(summary)
        case 409:
            return _conflict(summary, reason, method)
        case 412:
            return RemoteConflict(summary)
        case 400 if reason in _IN_PROGRESS_REASONS:
            return OperationRunning(summary)
        case status:
            advice = _ADVICE.get(status, "")
            # The message of the service may end with a full stop.
            return RemoteRefused((summary.removesuffix(".") if advice else summary) + advice, status)


def outcome_of(response: HttpResponse) -> CallOutcome:
    """What the response says about the service, for the rate limiter; not about the object."""
    if response.status < 400:
        return RESPONDED
    if response.status >= 500:
        return Unavailable(retry_after(response, datetime.now(UTC)))
    is_rate_limited = response.status == 403 and _reason(_decode_error(response.body)) in _RATE_LIMIT_REASONS
    if response.status == 429 or is_rate_limited:
        return Throttled(retry_after(response, datetime.now(UTC)))
    return RESPONDED


def is_not_found(response: HttpResponse) -> bool:
    """Whether the service says that the object does not exist. A 404 with HTML comes from another server."""
    return response.status == 404 and not response.headers.get("Content-Type", "").startswith("text/html")


def retry_after(response: HttpResponse, now: datetime) -> float | None:
    """Retry-After in seconds, whether it is written so or as a date, an hour at most; None when it has none."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER)
    if not text:
        return None
    # The parser of e-mails is large, and dates are rare here.
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return min(max((date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds(), 0.0), MAX_RETRY_AFTER)


def error_message(body: bytes) -> str:
    """The message of an error body; empty when it is none of Google's."""
    return _decode_error(body).message


def _conflict(summary: str, reason: str, method: str) -> RemoteError | OperationRunning:
    if reason in _ABORTED_REASONS:
        # What replaces a part that was read before, such as a policy, is a POST.
        return RemoteConflict(summary) if method == "POST" else OperationRunning(summary)
    # What could not be deleted now cannot be deleted at the next attempt either.
    is_taken = reason in _ALREADY_EXISTS_REASONS and method != "DELETE"
    return RemoteConflict(summary) if is_taken else RemoteRefused(summary)


def _decode_error(body: bytes) -> _Error:
    try:
        return _decoder.decode(body).error
    except UNDECODABLE:
        # The page of a proxy, or nothing: not an error of Google's.
        return _Error()


def _reason(error: _Error) -> str:
    return error.errors[0].reason if error.errors else error.status
