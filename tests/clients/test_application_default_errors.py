"""Errors of Application Default Credentials: each has advice, and none contains a secret."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import requests
from aiohttp import web
from requests.adapters import HTTPAdapter

from setpoint.clients.google.tokens import TokenCredentials
from setpoint.errors import RemoteRefused, RemoteUnavailable
from tests.clients.google_machines import (
    ADVICE,
    VARIABLE,
    CredentialSetup,
    Machine,
    by_impersonation,
    by_key,
    every_credential_type,
    federation_file,
    fetch_error,
    fetch_headers,
    service_account_file,
)
from tests.clients.loopback_servers import http_server
from tests.clients.manual_time import ManualClock
from tests.clients.token_servers import (
    CLIENT,
    REFRESH,
    SUBJECT,
    TokenRequest,
    TokenServers,
    service_account_key_text,
    token_servers,
)

# --- Token servers that fail ------------------------------------------------------------------------------------------


def unless_detecting(answer: Callable[[], web.Response]) -> Callable[[TokenRequest], web.Response | None]:
    """The response to every request except the detection of a metadata server."""
    return lambda request: None if request.path == "/" else answer()


@every_credential_type
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_error_of_the_token_server_is_unavailable(machine: Machine, setup: CredentialSetup, status: int) -> None:
    error = fetch_error(
        setup, machine, unless_detecting(lambda: web.Response(status=status, headers={"Retry-After": "7"}))
    )

    assert isinstance(error, RemoteUnavailable)
    assert error.after == 7.0
    assert str(error).startswith("no Google token: ")
    assert str(error).endswith(f": {status}; check the network")


@every_credential_type
@pytest.mark.parametrize(
    "answer",
    [web.Response(text="<html>welcome to the hotel"), web.json_response({}), web.json_response(["a token"])],
    ids=["no JSON", "no token", "no object"],
)
def test_a_response_without_a_token_is_an_error(machine: Machine, setup: CredentialSetup, answer: web.Response) -> None:
    text, kind = answer.text or "", answer.content_type
    error = fetch_error(
        setup,
        machine,
        unless_detecting(lambda: web.Response(text=text, content_type=kind, headers={"Metadata-Flavor": "Google"})),
    )

    assert isinstance(error, RemoteUnavailable | RemoteRefused)


@every_credential_type
def test_a_token_server_that_refuses_connections_is_unavailable(machine: Machine, setup: CredentialSetup) -> None:
    async def main() -> None:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            setup(machine, servers)
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            await tokens.headers()
        clock.advance(3600.0)
        await tokens.headers()

    with pytest.raises(RemoteUnavailable, match=r"no Google token: .*: cannot connect; check the network"):
        asyncio.run(main())


def test_a_token_server_that_times_out_is_unavailable(machine: Machine) -> None:
    machine.patch.setattr("setpoint.clients.google.application_default.TOKEN_TIMEOUT", 0.05)

    async def main() -> None:
        never = asyncio.Event()

        async def hangs(_request: web.BaseRequest) -> web.Response:
            await never.wait()
            raise AssertionError

        async with token_servers() as servers, http_server(hangs) as url:
            machine.put(service_account_file(servers, token_uri=f"{url}/token"))
            await TokenCredentials().headers()

    with pytest.raises(RemoteUnavailable, match=r"/token: no answer within 0\.05 s; check the network"):
        asyncio.run(main())


# --- Files that cannot be used ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "there is no such file"),
        ("", "that is no JSON object"),
        ("no UTF-8", "that is no JSON object"),
        ("[]", "that is no JSON object"),
        ("{}", "The file … does not have a valid type"),
        ('{"type": "password"}', "Type is password, expected one of"),
        ('{"type": "service_account"}', "missing fields"),
        ('{"type": "authorized_user"}', "missing fields"),
        ('{"type": "impersonated_service_account"}', "it lacks what its type has to have"),
        ('{"type": "external_account"}', "Failed to load external account credentials"),
        ('{"type": "external_account", "credential_source": "x"}', "it lacks what its type has to have"),
    ],
)
def test_an_unusable_file_is_named_with_advice(machine: Machine, text: str | None, why: str) -> None:
    machine.put(text or "")
    if text is None:
        machine.file.unlink()
    elif text == "no UTF-8":
        machine.file.write_bytes(b"\xff")

    error = fetch_error(lambda m, s: None, machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(f"the Google credentials in {VARIABLE} ({machine.file}) cannot be used: ")
    assert why in str(error).replace(str(machine.file), "…")
    assert ADVICE in str(error)


def test_a_folder_is_no_file(machine: Machine) -> None:
    machine.patch.setenv(VARIABLE, str(machine.folder))

    error = fetch_error(lambda m, s: None, machine)

    assert f"{VARIABLE} ({machine.folder}) cannot be used: Is a directory; " in str(error)


@pytest.mark.parametrize("key", ["", "no key", 5, service_account_key_text()[:200]])
def test_an_invalid_key_is_reported_without_its_text(machine: Machine, key: object) -> None:
    error = fetch_error(lambda m, s: m.put(service_account_file(s, private_key=key)), machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(f"the Google credentials in {VARIABLE} ({machine.file}) cannot be used: ")
    assert "PRIVATE" not in str(error)


def test_a_missing_subject_token_file_is_named(machine: Machine) -> None:
    error = fetch_error(lambda m, s: m.put(federation_file(s, m.folder / "nowhere")), machine)

    assert isinstance(error, RemoteRefused)
    assert f"no token: File '{machine.folder}/nowhere' was not found; " in str(error)


def test_without_credentials_the_error_has_advice(machine: Machine) -> None:
    error = fetch_error(lambda m, s: None, machine)

    assert str(error) == (
        f"no Google credentials: no file, and no metadata server; {ADVICE}, "
        "or set SETPOINT_GCP_AUTH=anonymous for a local server"
    )


# --- Secrets ----------------------------------------------------------------------------------------------------------


def secrets(servers: TokenServers) -> list[str]:
    """All secrets, shortened: a part of a token is a secret, too."""
    whole = [*servers.issued, SUBJECT, REFRESH, CLIENT, *service_account_key_text().splitlines()[1:-1]]
    sent = [request.form.get("assertion", "") for request in servers.requests if request.path == "/token"]
    return [part[:24] for part in (*whole, *sent) if part]


def echo(status: int) -> Callable[[TokenRequest], web.Response]:
    """An error response that contains the request."""

    def answer(request: TokenRequest) -> web.Response:
        sent = f"{request.body.decode()} {request.headers.get('authorization', '')}"
        return web.json_response({"error": "bad_request", "error_description": sent}, status=status)

    return answer


def echo_page(request: TokenRequest) -> web.Response:
    return web.Response(status=400, text=f"{request.body.decode()} {request.headers}")


def odd_token(request: TokenRequest) -> web.Response | None:
    """A token with an expiry that cannot be parsed."""
    if request.path == "/":
        return None
    token = "ya29.c.SecretAccessToken9999abcdefgh"
    odd = {"access_token": token, "accessToken": token, "expires_in": "soon", "expireTime": "soon"}
    return web.json_response(odd, headers={"Metadata-Flavor": "Google"})


@every_credential_type
@pytest.mark.parametrize("instead", [echo(400), echo(500), echo_page, odd_token], ids=["400", "500", "page", "odd"])
def test_no_secret_is_in_an_error_or_in_a_log(
    machine: Machine,
    setup: CredentialSetup,
    instead: Callable[[TokenRequest], web.Response],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("", "google", "urllib3", "setpoint"):
        caplog.set_level(logging.DEBUG, name)
    machine.patch.setattr(logging.getLogger("google"), "propagate", True)
    seen: list[TokenServers] = []

    def watched(machine: Machine, servers: TokenServers) -> None:
        seen.append(servers)
        setup(machine, servers)

    error = fetch_error(watched, machine, lambda request: None if request.path == "/" else instead(request))

    shown = [str(error), repr(error), *traceback.format_exception(error)]
    shown += [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    hidden = [*secrets(seen[0]), "ya29.c.SecretAccessToken"]
    assert [secret for secret in hidden for one in shown if secret in one] == []


@every_credential_type
def test_no_secret_is_logged_on_success(
    machine: Machine, setup: CredentialSetup, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "google", "urllib3", "setpoint"):
        caplog.set_level(logging.DEBUG, name)
    machine.patch.setattr(logging.getLogger("google"), "propagate", True)

    _, servers = fetch_headers(setup, machine)

    shown = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert [secret for secret in secrets(servers) for one in shown if secret in one] == []


# --- In the clear -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://oauth2.example.com/token", "http://192.0.2.1/token"])
def test_no_secret_is_sent_in_the_clear(machine: Machine, address: str) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was sent")

    machine.patch.setattr(HTTPAdapter, "send", refuse)

    error = fetch_error(lambda m, s: m.put(service_account_file(s, token_uri=address)), machine)

    assert isinstance(error, RemoteRefused)
    assert f"POST {address} is not sent: it would go in the clear; write https in the file" in str(error)


def test_a_request_without_a_secret_may_be_sent_in_the_clear(machine: Machine) -> None:
    """Such as requests to the metadata servers of any cloud."""
    sent_to: list[str] = []

    def refuse_connection(_adapter: HTTPAdapter, request: Any, **__: Any) -> Any:
        sent_to.append(request.url)
        raise requests.exceptions.ConnectionError

    machine.patch.setattr(HTTPAdapter, "send", refuse_connection)
    source = {"url": "http://169.254.169.254/metadata/identity", "headers": {"Metadata": "True"}}

    fetch_error(lambda m, s: m.put({**federation_file(s, m.folder), "credential_source": source}), machine)

    assert sent_to == ["http://169.254.169.254/metadata/identity"]


def test_a_password_in_netrc_is_not_sent_instead(machine: Machine) -> None:
    rc = machine.folder / "netrc"
    rc.write_text("default login me password hunter2")
    machine.patch.setenv("NETRC", str(rc))

    _, servers = fetch_headers(by_impersonation, machine)

    assert [request.headers.get("authorization") for request in servers.requests] == [
        None,
        f"Bearer {servers.issued[0]}",
    ]


def test_a_redirect_of_a_token_server_is_not_followed(machine: Machine) -> None:
    def instead(request: TokenRequest) -> web.Response | None:
        return web.Response(status=307, headers={"Location": "/v1/token"}) if request.path == "/token" else None

    error = fetch_error(by_key, machine, instead)

    assert isinstance(error, RemoteRefused)
