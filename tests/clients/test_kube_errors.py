"""Error responses of an API server, mapped to our errors and to outcomes for the rate limiter."""

from typing import Any

import pytest

from setpoint.clients.http import HttpResponse
from setpoint.clients.kubernetes.errors import error_for_response, is_not_found, outcome_of
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
from tests.clients.scripted_http import response

POD = "GET /api/v1/namespaces/shop/pods/web"


def status(code: int, reason: str, message: str = "No.", details: dict[str, Any] | None = None) -> HttpResponse:
    """An error response with a Status."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return response(code, body | {"message": message, "details": details or {}}, Content_Type="application/json")


def text(code: int, words: str, content_type: str = "text/plain; charset=utf-8", **headers: str) -> HttpResponse:
    return HttpResponse(code, {"Content-Type": content_type, **headers}, words.encode())


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (status(400, "BadRequest", 'unknown field "x"'), RemoteRefused, '400: BadRequest: unknown field "x"'),
        (
            status(401, "Unauthorized", "Unauthorized"),
            RemoteRefused,
            "401: Unauthorized: Unauthorized. The cluster does not know these credentials, or no longer: log in again, "
            "or use another context",
        ),
        (
            status(403, "Forbidden", 'User "me" cannot list resource "pods" in API group "" in the namespace "shop"'),
            RemoteRefused,
            '403: Forbidden: User "me" cannot list resource "pods" in API group "" in the namespace "shop". '
            "Give this user a role with the verb list on pods in the namespace shop",
        ),
        (
            status(
                403, "Forbidden", 'User "me" cannot patch resource "x/status" in API group "a.io" at the cluster scope'
            ),
            RemoteRefused,
            '403: Forbidden: User "me" cannot patch resource "x/status" in API group "a.io" at the cluster scope. '
            "Give this user a role with the verb patch on x/status.a.io in the whole cluster",
        ),
        (status(403, "Forbidden", "exceeded quota: pods"), RemoteRefused, "403: Forbidden: exceeded quota: pods"),
        (
            status(404, "NotFound", 'pods "web" not found', {"name": "web", "kind": "pods"}),
            RemoteConflict,
            '404: NotFound: pods "web" not found',
        ),
        (
            status(404, "NotFound", 'namespaces "shop" not found', {"name": "shop", "kind": "namespaces"}),
            RemoteRefused,
            '404: NotFound: namespaces "shop" not found. Make the namespace first',
        ),
        (
            text(404, "404 page not found\n"),
            KindNotServed,
            "404: 404 page not found. The cluster does not know this kind, version or subresource: apply its CRD",
        ),
        (
            text(404, "<html>", "text/html"),
            KindNotServed,
            "404. The cluster does not know this kind, version or subresource: apply its CRD",
        ),
        (status(405, "MethodNotAllowed"), RemoteRefused, "405: MethodNotAllowed: No."),
        (status(409, "AlreadyExists"), AlreadyExists, "409: AlreadyExists: No."),
        (status(409, "Conflict", "it has been modified"), RemoteConflict, "409: Conflict: it has been modified"),
        (status(410, "Expired", "too old resource version"), RemoteExpired, "410: Expired: too old resource version"),
        (status(410, "Gone"), RemoteExpired, "410: Gone: No."),
        (status(422, "Invalid", "it is invalid"), RemoteInvalid, "422: Invalid: it is invalid"),
        (status(429, "TooManyRequests"), RemoteUnavailable, "429: TooManyRequests: No."),
        (status(500, "InternalError", "etcdserver: request timed out"), RemoteUnavailable, None),
        (text(503, "<html>hunter2</html>", "text/html"), RemoteUnavailable, "503"),
        (status(504, "Timeout"), RemoteUnavailable, "504: Timeout: No."),
        (
            text(302, "", "text/html", Location="https://login.test/?hunter2"),
            RemoteRefused,
            "302. The API server is not there: check the address in the kubeconfig",
        ),
    ],
)
def test_error_responses_are_mapped_to_errors(
    answer: HttpResponse, kind: type[RemoteError], message: str | None
) -> None:
    error = error_for_response(POD, answer)

    assert type(error) is kind
    assert message is None or str(error) == f"{POD}: {message}"


def test_names_the_field_managers_that_own_a_field() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1 at 2026-01-01T00:00:00Z',
            "field": ".spec.replicas",
        },
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "hpa" with subresource "scale" using apps/v1',
            "field": '.spec.template.spec.containers[name="web"].image',
        },
        {"reason": "FieldManagerConflict", "message": "in other words", "field": ".spec.x"},
    ]

    error = error_for_response("PATCH /x", status(409, "Conflict", "Apply failed", {"causes": causes}))

    assert isinstance(error, HeldByOthers)
    assert error.held == (
        ("spec.replicas", "kubectl-client-side-apply"),
        ('spec.template.spec.containers[name="web"].image', "hpa"),
        ("spec.x", "another field manager"),
    )
    assert str(error) == (
        "PATCH /x: spec.replicas is held by kubectl-client-side-apply, "
        'spec.template.spec.containers[name="web"].image is held by hpa, spec.x is held by another field manager: '
        "leave it out, or take it over with force"
    )


def test_names_every_invalid_field() -> None:
    causes = [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"},
        {"reason": "FieldValueInvalid", "message": "field is immutable", "field": "spec.clusterIP"},
        {"reason": "FieldValueForbidden", "message": "no such thing"},
    ]

    error = error_for_response("POST /x", status(422, "Invalid", "many things are wrong", {"causes": causes}))

    assert isinstance(error, RemoteInvalid)
    assert error.causes == (
        ("spec.selector", "Required value"),
        ("spec.clusterIP", "field is immutable"),
        ("", "no such thing"),
    )
    assert str(error) == (
        "POST /x: 422: Invalid: spec.selector: Required value; spec.clusterIP: field is immutable; no such thing"
    )


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        (text(429, "Too many requests, please try again later.", Retry_After="x"), None),
        (HttpResponse(429, {"Retry-After": "7"}, b""), 7.0),
        (status(429, "TooManyRequests", details={"retryAfterSeconds": 3}), 3.0),
        (status(504, "Timeout", details={"retryAfterSeconds": 1}), 1.0),
        (status(503, "ServiceUnavailable"), None),
    ],
)
def test_retry_after_is_read_from_header_or_status(answer: HttpResponse, after: float | None) -> None:
    error = error_for_response(POD, answer)

    assert isinstance(error, RemoteUnavailable)
    assert error.after == after


@pytest.mark.parametrize(
    ("answer", "absent"),
    [
        (status(404, "NotFound", details={"name": "web", "kind": "pods"}), True),
        (status(404, "NotFound", details={"name": "shop", "kind": "namespaces"}), False),
        (status(404, "NotFound", "the server could not find the requested resource"), False),
        (text(404, "404 page not found\n"), False),
        (text(404, "<html>", "text/html"), False),
        (status(410, "Gone", details={"name": "web"}), False),
        (response(200, {}), False),
    ],
)
def test_not_found_is_only_a_404_of_this_object(answer: HttpResponse, absent: bool) -> None:
    assert is_not_found(answer, "web") is absent


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (response(200, {}), RESPONDED),
        (status(404, "NotFound"), RESPONDED),
        (status(409, "Conflict"), RESPONDED),
        (text(429, "Too many requests, please try again later.", **{"Retry-After": "1"}), Throttled(1.0)),
        # A kind that is being initialised, or a failing webhook, does not throttle calls of other kinds.
        (status(429, "TooManyRequests", "storage is (re)initializing", {"retryAfterSeconds": 1}), RESPONDED),
        (status(500, "InternalError", "failed calling webhook"), RESPONDED),
        (status(503, "ServiceUnavailable"), Unavailable(None)),
        (text(502, "<html>", "text/html"), Unavailable(None)),
    ],
)
def test_the_outcome_distinguishes_the_api_server_from_the_object(answer: HttpResponse, outcome: CallOutcome) -> None:
    assert outcome_of(answer) == outcome


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"details": []}', b'{"code": "x"}', b"\xff"])
def test_an_invalid_error_body_is_still_an_error(body: bytes) -> None:
    error = error_for_response(POD, HttpResponse(503, {"Content-Type": "application/json"}, body))

    assert isinstance(error, RemoteUnavailable)
