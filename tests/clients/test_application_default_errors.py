"""Everything that can be wrong with credentials: it is told with what to do, and never with anything secret."""

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
    Machine,
    Way,
    by_impersonation,
    by_key,
    every_way,
    federation_file,
    headers_by,
    refusal_by,
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
    robot_key_text,
    token_servers,
)

# --- Servers that do not answer --------------------------------------------------------------------------------------


def unless_detecting(answer: Callable[[], web.Response]) -> Callable[[TokenRequest], web.Response | None]:
    """The answer to everything but the question whether there is a metadata server."""
    return lambda asked: None if asked.path == "/" else answer()


@every_way
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_cannot_now_is_asked_again_later(machine: Machine, way: Way, status: int) -> None:
    error = refusal_by(
        way, machine, unless_detecting(lambda: web.Response(status=status, headers={"Retry-After": "7"}))
    )

    assert isinstance(error, RemoteUnavailable)
    assert error.after == 7.0
    assert str(error).startswith("no Google token: ")
    assert str(error).endswith(f": {status}; check the network")


@every_way
@pytest.mark.parametrize(
    "answer",
    [web.Response(text="<html>welcome to the hotel"), web.json_response({}), web.json_response(["a token"])],
    ids=["no JSON", "no token", "no object"],
)
def test_an_answer_without_a_token_is_none(machine: Machine, way: Way, answer: web.Response) -> None:
    text, kind = answer.text or "", answer.content_type
    error = refusal_by(
        way,
        machine,
        unless_detecting(lambda: web.Response(text=text, content_type=kind, headers={"Metadata-Flavor": "Google"})),
    )

    assert isinstance(error, RemoteUnavailable | RemoteRefused)


@every_way
def test_a_server_that_is_gone_is_looked_for_again_later(machine: Machine, way: Way) -> None:
    async def main() -> None:
        async with token_servers() as servers:
            machine.lead_to(servers.url)
            way(machine, servers)
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            await tokens.headers()
        clock.advance(3600.0)
        await tokens.headers()

    with pytest.raises(RemoteUnavailable, match=r"no Google token: .*: cannot connect; check the network"):
        asyncio.run(main())


def test_a_server_that_takes_too_long_is_asked_again_later(machine: Machine) -> None:
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


# --- Files that cannot be used ---------------------------------------------------------------------------------------


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
def test_a_file_that_cannot_be_used_is_named_with_what_to_do(machine: Machine, text: str | None, why: str) -> None:
    machine.put(text or "")
    if text is None:
        machine.file.unlink()
    elif text == "no UTF-8":
        machine.file.write_bytes(b"\xff")

    error = refusal_by(lambda m, s: None, machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(f"the Google credentials in {VARIABLE} ({machine.file}) cannot be used: ")
    assert why in str(error).replace(str(machine.file), "…")
    assert ADVICE in str(error)


def test_a_folder_is_no_file(machine: Machine) -> None:
    machine.patch.setenv(VARIABLE, str(machine.folder))

    error = refusal_by(lambda m, s: None, machine)

    assert f"{VARIABLE} ({machine.folder}) cannot be used: Is a directory; " in str(error)


@pytest.mark.parametrize("key", ["", "no key", 5, robot_key_text()[:200]])
def test_a_key_that_is_none_is_told_without_it(machine: Machine, key: object) -> None:
    error = refusal_by(lambda m, s: m.put(service_account_file(s, private_key=key)), machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(f"the Google credentials in {VARIABLE} ({machine.file}) cannot be used: ")
    assert "PRIVATE" not in str(error)


def test_a_workload_s_own_token_that_is_not_there_is_named(machine: Machine) -> None:
    error = refusal_by(lambda m, s: m.put(federation_file(s, m.folder / "nowhere")), machine)

    assert isinstance(error, RemoteRefused)
    assert f"no token: File '{machine.folder}/nowhere' was not found; " in str(error)


def test_without_anything_it_says_what_to_do(machine: Machine) -> None:
    error = refusal_by(lambda m, s: None, machine)

    assert str(error) == (
        f"no Google credentials: no file, and no metadata server; {ADVICE}, "
        "or set SETPOINT_GCP_AUTH=anonymous for a local server"
    )


# --- Secrets ----------------------------------------------------------------------------------------------------------


def secrets(servers: TokenServers) -> list[str]:
    """All that is secret, in pieces: a part of a token is one, too."""
    whole = [*servers.given, SUBJECT, REFRESH, CLIENT, *robot_key_text().splitlines()[1:-1]]
    sent = [asked.form.get("assertion", "") for asked in servers.asked if asked.path == "/token"]
    return [part[:24] for part in (*whole, *sent) if part]


def echo(status: int) -> Callable[[TokenRequest], web.Response]:
    """Whatever was sent comes back, as text and in the words of an error."""

    def answer(asked: TokenRequest) -> web.Response:
        sent = f"{asked.body.decode()} {asked.headers.get('authorization', '')}"
        return web.json_response({"error": "bad_request", "error_description": sent}, status=status)

    return answer


def echo_page(asked: TokenRequest) -> web.Response:
    return web.Response(status=400, text=f"{asked.body.decode()} {asked.headers}")


def odd_token(asked: TokenRequest) -> web.Response | None:
    """A token whose end is nothing that can be read."""
    if asked.path == "/":
        return None
    token = "ya29.c.SecretAccessToken9999abcdefgh"
    odd = {"access_token": token, "accessToken": token, "expires_in": "soon", "expireTime": "soon"}
    return web.json_response(odd, headers={"Metadata-Flavor": "Google"})


@every_way
@pytest.mark.parametrize("instead", [echo(400), echo(500), echo_page, odd_token], ids=["400", "500", "page", "odd"])
def test_no_secret_is_in_an_error_or_in_a_log(
    machine: Machine, way: Way, instead: Callable[[TokenRequest], web.Response], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "google", "urllib3", "setpoint"):
        caplog.set_level(logging.DEBUG, name)
    machine.patch.setattr(logging.getLogger("google"), "propagate", True)
    seen: list[TokenServers] = []

    def watched(machine: Machine, servers: TokenServers) -> None:
        seen.append(servers)
        way(machine, servers)

    error = refusal_by(watched, machine, lambda asked: None if asked.path == "/" else instead(asked))

    shown = [str(error), repr(error), *traceback.format_exception(error)]
    shown += [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    hidden = [*secrets(seen[0]), "ya29.c.SecretAccessToken"]
    assert [secret for secret in hidden for one in shown if secret in one] == []


@every_way
def test_no_secret_is_in_a_log_when_all_is_well(machine: Machine, way: Way, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "google", "urllib3", "setpoint"):
        caplog.set_level(logging.DEBUG, name)
    machine.patch.setattr(logging.getLogger("google"), "propagate", True)

    _, servers = headers_by(way, machine)

    shown = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert [secret for secret in secrets(servers) for one in shown if secret in one] == []


# --- In the clear ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://oauth2.example.com/token", "http://192.0.2.1/token"])
def test_nothing_secret_is_sent_in_the_clear(machine: Machine, address: str) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was sent")

    machine.patch.setattr(HTTPAdapter, "send", refuse)

    error = refusal_by(lambda m, s: m.put(service_account_file(s, token_uri=address)), machine)

    assert isinstance(error, RemoteRefused)
    assert f"POST {address} is not sent: it would go in the clear; write https in the file" in str(error)


def test_a_question_that_holds_no_secret_may_be_asked_in_the_clear(machine: Machine) -> None:
    """As metadata servers are, those of other clouds too."""
    asked: list[str] = []

    def elsewhere(_adapter: HTTPAdapter, request: Any, **__: Any) -> Any:
        asked.append(request.url)
        raise requests.exceptions.ConnectionError

    machine.patch.setattr(HTTPAdapter, "send", elsewhere)
    source = {"url": "http://169.254.169.254/metadata/identity", "headers": {"Metadata": "True"}}

    refusal_by(lambda m, s: m.put({**federation_file(s, m.folder), "credential_source": source}), machine)

    assert asked == ["http://169.254.169.254/metadata/identity"]


def test_a_password_in_netrc_is_not_sent_instead(machine: Machine) -> None:
    rc = machine.folder / "netrc"
    rc.write_text("default login me password hunter2")
    machine.patch.setenv("NETRC", str(rc))

    _, servers = headers_by(by_impersonation, machine)

    assert [asked.headers.get("authorization") for asked in servers.asked] == [None, f"Bearer {servers.given[0]}"]


def test_a_token_server_that_sends_us_elsewhere_is_not_followed(machine: Machine) -> None:
    def instead(asked: TokenRequest) -> web.Response | None:
        return web.Response(status=307, headers={"Location": "/v1/token"}) if asked.path == "/token" else None

    error = refusal_by(by_key, machine, instead)

    assert isinstance(error, RemoteRefused)
