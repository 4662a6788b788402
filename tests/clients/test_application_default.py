"""Application Default Credentials: every type of credentials yields a token, with no more scopes than needed."""

import asyncio
import json
from collections.abc import Mapping

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import iam

from setpoint import __version__
from setpoint.clients.google.tokens import TokenCredentials
from setpoint.errors import RemoteRefused
from tests.clients.google_machines import (
    ADVICE,
    IMPERSONATE,
    SCOPE,
    VARIABLE,
    CredentialSetup,
    Machine,
    bearer,
    by_federation,
    by_federation_and_impersonation,
    by_impersonation,
    by_key,
    by_login,
    by_metadata,
    every_credential_type,
    fetch_error,
    fetch_headers,
    service_account_file,
    user_file,
)
from tests.clients.manual_time import ManualClock
from tests.clients.token_servers import (
    CLIENT,
    EMAIL,
    REFRESH,
    SUBJECT,
    TokenRequest,
    TokenServers,
    key_text,
    token_servers,
)


@every_credential_type
def test_every_credential_type_yields_a_token_and_sends_the_user_agent(
    setup: CredentialSetup, machine: Machine
) -> None:
    headers, servers = fetch_headers(setup, machine)

    assert headers == bearer(servers.issued[-1])
    assert {request.headers["user-agent"] for request in servers.requests} == {f"setpoint/{__version__}"}


def test_a_service_account_signs_its_token_request(machine: Machine) -> None:
    _, servers = fetch_headers(by_key, machine)

    (claims,) = servers.claims
    assert (claims["iss"], claims["scope"], claims["aud"]) == (EMAIL, SCOPE, "https://oauth2.googleapis.com/token")
    assert servers.paths == ["/token"]


def test_the_key_of_another_service_account_is_refused(machine: Machine) -> None:
    def setup(machine: Machine, servers: TokenServers) -> None:
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        machine.put(service_account_file(servers, private_key=key_text(other)))

    error = fetch_error(setup, machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(
        f"Google gives the credentials of {VARIABLE} ({machine.file}) no token: invalid_grant: Invalid JWT Signature; "
        f"{ADVICE}"
    )


def test_a_user_login_requests_no_scopes(machine: Machine) -> None:
    _, servers = fetch_headers(by_login, machine)

    (request,) = servers.requests
    assert request.form == {
        "grant_type": "refresh_token",
        "client_id": "some-client",
        "client_secret": CLIENT,
        "refresh_token": REFRESH,
    }


def test_a_revoked_login_is_refused(machine: Machine) -> None:
    def setup(machine: Machine, servers: TokenServers) -> None:
        machine.put(user_file(servers, refresh_token="another"))

    error = fetch_error(setup, machine)

    assert isinstance(error, RemoteRefused)
    assert f"({machine.file}) no token: invalid_grant: Token has been expired or revoked; {ADVICE}" in str(error)


def test_impersonation_uses_the_first_token_for_the_exchange_only(machine: Machine) -> None:
    headers, servers = fetch_headers(by_impersonation, machine)

    first, second = servers.requests
    assert (first.path, servers.claims[0]["scope"]) == ("/token", iam._IAM_SCOPE[0])
    assert (second.path, second.headers["authorization"]) == (IMPERSONATE, f"Bearer {servers.issued[0]}")
    assert second.json == {
        "scope": [SCOPE],
        "delegates": ["projects/-/serviceAccounts/between@some-project.iam.gserviceaccount.com"],
        "lifetime": "3600s",
    }
    assert headers == bearer(servers.issued[1])


def test_a_refused_impersonation_shows_google_s_message(machine: Machine) -> None:
    def instead(request: TokenRequest) -> web.Response | None:
        if request.path != IMPERSONATE:
            return None
        error = {"code": 403, "message": "Permission 'iam.serviceAccounts.getAccessToken' denied on resource"}
        return web.json_response({"error": error}, status=403)

    error = fetch_error(by_impersonation, machine, instead)

    assert isinstance(error, RemoteRefused)
    assert (
        f"({machine.file}) no token: Unable to acquire impersonated credentials: "
        "Permission 'iam.serviceAccounts.getAccessToken' denied on resource; "
    ) in str(error)


def test_workload_identity_federation_exchanges_the_subject_token(machine: Machine) -> None:
    _, servers = fetch_headers(by_federation, machine)

    (request,) = servers.requests
    assert (request.path, request.form["subject_token"], request.form["scope"]) == ("/v1/token", SUBJECT, SCOPE)
    assert request.form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"


def test_the_subject_token_is_read_again_for_every_exchange(machine: Machine) -> None:
    async def main() -> list[str]:
        async with token_servers() as servers:
            by_federation(machine, servers)
            (machine.folder / "subject").write_text("old")
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            with pytest.raises(RemoteRefused, match="rejected by the attribute condition"):
                await tokens.headers()
            (machine.folder / "subject").write_text(SUBJECT)
            clock.advance(60.0)
            await tokens.headers()
            return [request.form["subject_token"] for request in servers.requests]

    assert asyncio.run(main()) == ["old", SUBJECT]


def test_a_federated_workload_may_impersonate_a_service_account(machine: Machine) -> None:
    headers, servers = fetch_headers(by_federation_and_impersonation, machine)

    assert servers.paths == ["/v1/token", IMPERSONATE]
    assert servers.requests[1].headers["authorization"] == f"Bearer {servers.issued[0]}"
    assert servers.requests[1].json["scope"] == [SCOPE]
    assert headers == bearer(servers.issued[1])


def test_requests_to_the_metadata_server_have_its_header(machine: Machine) -> None:
    _, servers = fetch_headers(by_metadata, machine)

    assert {request.headers["metadata-flavor"] for request in servers.requests} == {"Google"}
    assert servers.requests[-1].path == "/computeMetadata/v1/instance/service-accounts/default/token"
    assert servers.requests[-1].query == {"scopes": SCOPE}


def test_a_server_without_the_metadata_header_is_not_used(machine: Machine) -> None:
    error = fetch_error(by_metadata, machine, lambda _: web.Response(text="welcome to the hotel"))

    assert str(error).startswith(f"no Google credentials: no file, and no metadata server; {ADVICE}")


def test_the_login_of_gcloud_is_found_without_a_variable(machine: Machine) -> None:
    def setup(machine: Machine, servers: TokenServers) -> None:
        machine.put(user_file(servers), machine.folder / "gcloud" / "application_default_credentials.json")
        machine.patch.delenv(VARIABLE)

    headers, servers = fetch_headers(setup, machine)

    assert headers == bearer(servers.issued[0])


def test_the_variable_precedes_gcloud_s_login_which_precedes_the_metadata_server(machine: Machine) -> None:
    def setup(machine: Machine, servers: TokenServers) -> None:
        by_metadata(machine, servers)
        machine.put(user_file(servers), machine.folder / "gcloud" / "application_default_credentials.json")
        machine.put(service_account_file(servers))

    _, servers = fetch_headers(setup, machine)

    assert [request.form["grant_type"] for request in servers.requests] == [
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    ]


@pytest.mark.parametrize("setup", [by_login, by_impersonation, by_federation], ids=lambda setup: setup.__name__)
def test_the_quota_project_of_the_file_is_sent(machine: Machine, setup: CredentialSetup) -> None:
    def with_project(machine: Machine, servers: TokenServers) -> None:
        setup(machine, servers)
        machine.put({**json.loads(machine.file.read_text()), "quota_project_id": "billed"})

    headers, servers = fetch_headers(with_project, machine)

    assert headers == {**bearer(servers.issued[-1]), "x-goog-user-project": "billed"}


@every_credential_type
def test_the_quota_project_can_be_set_by_a_variable(machine: Machine, setup: CredentialSetup) -> None:
    machine.patch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "billed")

    headers, servers = fetch_headers(setup, machine)

    assert headers == {**bearer(servers.issued[-1]), "x-goog-user-project": "billed"}


# --- Expiry -----------------------------------------------------------------------------------------------------------


@every_credential_type
def test_an_expired_token_is_replaced(machine: Machine, setup: CredentialSetup) -> None:
    async def main() -> tuple[list[Mapping[str, str]], list[str]]:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            setup(machine, servers)
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            found = [await tokens.headers(), await tokens.headers()]
            clock.advance(3600.0)
            return [*found, await tokens.headers()], servers.issued

    headers, given = asyncio.run(main())

    assert headers[0] == headers[1]
    assert headers[2] == bearer(given[-1]) != headers[0]


def test_a_replaced_key_file_is_read_after_the_old_key_was_refused(machine: Machine) -> None:
    async def main() -> tuple[Mapping[str, str], list[str]]:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            machine.put(user_file(servers, refresh_token="revoked"))
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            with pytest.raises(RemoteRefused):
                await tokens.headers()
            machine.put(user_file(servers))
            clock.advance(60.0)
            return await tokens.headers(), servers.issued

    headers, given = asyncio.run(main())

    assert headers == bearer(given[0])
