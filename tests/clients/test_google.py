"""The Google client: settings, requests, the retry after a 401, and the mapping of responses to errors."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from setpoint.clients.google.calls import GoogleApi, GoogleCall, GoogleService
from setpoint.clients.google.client import (
    AnonymousCredentials,
    GoogleAuth,
    GoogleClient,
    GoogleCredentials,
    GoogleSettings,
    credentials_for,
    settings_from,
)
from setpoint.clients.google.errors import retry_after
from setpoint.clients.google.tokens import TokenCredentials
from setpoint.clients.http import HttpClient, HttpResponse
from setpoint.errors import (
    OperationRunning,
    RemoteConflict,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
    UserError,
)
from tests.clients.scripted_http import ScriptedHttp, error_response, response

BUCKET = GoogleCall(GoogleService.STORAGE, ("b", "some-bucket"))
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@dataclass
class FakeCredentials:
    """Returns a new token after each refusal."""

    given: int = 1
    refused: list[Mapping[str, str]] = field(default_factory=list)

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        if refused is not None:
            self.refused.append(refused)
            self.given += 1
        return {"Authorization": f"Bearer token-{self.given}"}


def client(http: HttpClient, credentials: GoogleCredentials | None = None) -> GoogleClient:
    return GoogleClient(http, GoogleSettings(), credentials or AnonymousCredentials())


# --- Settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, GoogleSettings("https://sqladmin.googleapis.com", "https://storage.googleapis.com", GoogleAuth.DEFAULT)),
        ({"SETPOINT_GCP_AUTH": "anonymous"}, GoogleSettings(auth=GoogleAuth.ANONYMOUS)),
        ({"STORAGE_EMULATOR_HOST": "http://localhost:1"}, GoogleSettings(storage="http://localhost:1")),
        ({"STORAGE_EMULATOR_HOST": "localhost:1"}, GoogleSettings(storage="http://localhost:1")),
        ({"STORAGE_EMULATOR_HOST": "http://[::1]:1/storage/v1/"}, GoogleSettings(storage="http://[::1]:1")),
        ({"CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "https://sql.test/"}, GoogleSettings(sql="https://sql.test")),
        ({"CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "https://x/sql/v1beta4/"}, GoogleSettings(sql="https://x")),
        (
            {"CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS": "https://kms.test/", "PUBSUB_EMULATOR_HOST": "localhost:2"},
            GoogleSettings(overrides={"cloudkms": "https://kms.test", "pubsub": "http://localhost:2"}),
        ),
        ({"CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "", "SETPOINT_GCP_AUTH": ""}, GoogleSettings()),
    ],
)
def test_reads_the_variables_of_google_s_own_tools(environment: dict[str, str], settings: GoogleSettings) -> None:
    assert settings_from(environment) == settings


@pytest.mark.parametrize(
    ("host", "prefix", "address"),
    [
        ("compute.googleapis.com", "/compute/v1", "https://private.test"),
        ("europe-west1-aiplatform.googleapis.com", "/v1", "https://vertex.test"),
        ("pubsub.googleapis.com", "/v1", "http://base.test/pubsub.googleapis.com"),
    ],
)
def test_a_service_with_an_endpoint_of_its_own_is_asked_there(host: str, prefix: str, address: str) -> None:
    settings = settings_from(
        {
            "SETPOINT_GOOGLE_ENDPOINT": "http://base.test",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": "https://private.test/compute/v1/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": "https://vertex.test",
        }
    )

    assert settings.address(GoogleApi(host, prefix)) == address


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SETPOINT_GCP_AUTH": "other"}, "SETPOINT_GCP_AUTH is 'other': write default or anonymous"),
        (
            {"STORAGE_EMULATOR_HOST": "ftp://x"},
            "STORAGE_EMULATOR_HOST is 'ftp://x': write an address such as http://localhost:8080",
        ),
    ],
)
def test_an_invalid_setting_is_a_user_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        settings_from(environment)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("auth", "kind"), [(GoogleAuth.ANONYMOUS, AnonymousCredentials), (GoogleAuth.DEFAULT, TokenCredentials)]
)
def test_the_settings_choose_the_credentials(auth: GoogleAuth, kind: type[GoogleCredentials]) -> None:
    assert type(credentials_for(GoogleSettings(auth=auth))) is kind


# --- Requests ---------------------------------------------------------------------------------------------------------


def test_quotes_every_part_of_a_path_and_query() -> None:
    http = ScriptedHttp(response(200, {}))

    asyncio.run(client(http).get(GoogleCall(GoogleService.STORAGE, ("b", "x", "o", "a/b c?"), {"generation": "1&2"})))

    assert http.requests[0].url == (
        "https://storage.googleapis.com/storage/v1/b/x/o/a%2Fb%20c%3F?generation=1%262&alt=json&prettyPrint=false"
    )


def test_sends_json() -> None:
    http = ScriptedHttp(response(200, {"name": "x"}))

    answer = asyncio.run(client(http).patch(BUCKET, {"labels": {"a": None}}))

    assert (http.requests[0].method, http.requests[0].body) == ("PATCH", b'{"labels":{"a":null}}')
    assert http.requests[0].headers["Content-Type"] == "application/json"
    assert answer == b'{"name":"x"}'


def test_a_refused_token_is_replaced_once() -> None:
    http, tokens = ScriptedHttp(error_response(401, "authError"), response(200, {})), FakeCredentials()

    asyncio.run(client(http, tokens).get(BUCKET))

    assert [one.headers["Authorization"] for one in http.requests] == ["Bearer token-1", "Bearer token-2"]
    assert tokens.refused == [{"Authorization": "Bearer token-1"}]


def test_a_second_401_is_raised() -> None:
    http = ScriptedHttp(error_response(401, "authError", "Invalid Credentials"))

    error = error_of(client(http, FakeCredentials()), "GET")

    assert isinstance(error, RemoteRefused)
    assert str(error) == (
        "GET /storage/v1/b/some-bucket: 401: authError: Invalid Credentials. "
        "Check which account the credentials are for, and that they are still valid"
    )
    assert len(http.requests) == 2


def test_a_token_that_the_source_returns_again_is_tried_once_more() -> None:
    class SameToken:
        async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
            return {"Authorization": "Bearer cached"}

    http = ScriptedHttp(error_response(401, "authError"), response(200, {"name": "x"}))

    assert asyncio.run(client(http, SameToken()).get(BUCKET)) == b'{"name":"x"}'


def test_an_anonymous_request_is_not_repeated_after_a_401() -> None:
    http = ScriptedHttp(error_response(401, "authError"))

    assert isinstance(error_of(client(http), "GET"), RemoteRefused)
    assert len(http.requests) == 1


def test_a_token_is_never_sent_in_the_clear() -> None:
    http = ScriptedHttp(response(200, {}))
    google = GoogleClient(http, GoogleSettings(storage="http://localhost:1"), FakeCredentials())

    asyncio.run(google.get(BUCKET))

    assert http.requests[0].headers == {}


# --- Responses --------------------------------------------------------------------------------------------------------


def test_a_404_of_the_service_is_absence() -> None:
    absent = client(ScriptedHttp(error_response(404, "notFound")))

    assert asyncio.run(absent.get(BUCKET)) is None
    assert asyncio.run(absent.delete(BUCKET)) is None


def test_a_404_with_html_is_not_absence() -> None:
    page = HttpResponse(404, {"Content-Type": "text/html; charset=UTF-8"}, b"<html>404</html>")

    for method in ("GET", "DELETE"):
        error = error_of(client(ScriptedHttp(page)), method)

        assert isinstance(error, RemoteRefused)
        assert str(error) == (
            f"{method} /storage/v1/b/some-bucket: 404. "
            "Check the address, and whether what should hold the object is there"
        )


@pytest.mark.parametrize(
    ("method", "answer", "kind"),
    [
        ("GET", error_response(400, "invalid"), RemoteRefused),
        ("GET", error_response(403, "forbidden"), RemoteRefused),
        ("GET", error_response(403, "rateLimitExceeded"), RemoteUnavailable),
        ("GET", error_response(408, "timeout"), RemoteUnavailable),
        ("GET", error_response(429, "rateLimitExceeded"), RemoteUnavailable),
        ("GET", error_response(500, "backendError"), RemoteUnavailable),
        ("GET", error_response(503, "backendError"), RemoteUnavailable),
        ("GET", HttpResponse(502, {}, b"<html>"), RemoteUnavailable),
        ("GET", HttpResponse(302, {}, b""), RemoteRefused),
        ("GET", HttpResponse(400, {}, b'{"error": "invalid_grant"}'), RemoteRefused),
        ("POST", error_response(404, "instanceDoesNotExist"), RemoteRefused),
        ("PATCH", error_response(404, "notFound"), RemoteConflict),
        ("POST", error_response(409, "conflict"), RemoteConflict),
        ("POST", error_response(409, "instanceAlreadyExists"), RemoteConflict),
        ("POST", error_response(409, "operationInProgress"), OperationRunning),
        ("DELETE", error_response(409, "operationInProgress"), OperationRunning),
        ("DELETE", error_response(409, "conflict"), RemoteRefused),
        ("DELETE", error_response(409, "aborted"), OperationRunning),
        ("PATCH", error_response(409, "aborted"), OperationRunning),
        ("POST", error_response(409, "aborted"), RemoteConflict),
        ("PATCH", error_response(400, "resourceNotReady"), OperationRunning),
        ("PATCH", error_response(409, "invalidState"), RemoteRefused),
        ("PATCH", error_response(412, "conditionNotMet"), RemoteConflict),
        ("PUT", error_response(412, "staleData"), RemoteConflict),
    ],
)
def test_every_error_response_is_mapped_to_an_error_class(
    method: str, answer: HttpResponse, kind: type[SetpointError]
) -> None:
    assert type(error_of(client(ScriptedHttp(answer)), method)) is kind


def test_an_error_has_google_s_message_and_no_query() -> None:
    secret = GoogleCall(GoogleService.SQL, ("projects", "p", "users"), {"password": "hunter2"})
    google = client(ScriptedHttp(error_response(403, "forbidden", "The caller does not have\n permission")))

    with pytest.raises(RemoteRefused) as caught:
        asyncio.run(google.post(secret, {"password": "hunter2"}))

    assert str(caught.value) == (
        "POST /sql/v1beta4/projects/p/users: 403: forbidden: The caller does not have permission"
    )


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-1", None),
    ],
)
def test_retry_after_is_parsed_as_seconds_or_date(header: str, seconds: float | None) -> None:
    assert retry_after(HttpResponse(503, {"Retry-After": header}, b""), NOW) == seconds


def test_retry_after_is_part_of_the_error() -> None:
    error = error_of(client(ScriptedHttp(error_response(429, "rateLimitExceeded", Retry_After="7"))), "GET")

    assert isinstance(error, RemoteUnavailable)
    assert error.after == 7.0


def error_of(google: GoogleClient, method: str) -> SetpointError:
    calls: dict[str, Any] = {
        "GET": lambda: google.get(BUCKET),
        "DELETE": lambda: google.delete(BUCKET),
        "POST": lambda: google.post(BUCKET, {}),
        "PUT": lambda: google.put(BUCKET, {}),
        "PATCH": lambda: google.patch(BUCKET, {}),
    }
    with pytest.raises(SetpointError) as caught:
        asyncio.run(calls[method]())
    return caught.value
