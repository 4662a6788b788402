"""Every way to say who we are leads to a token, and asks for no more than it needs."""

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
    Machine,
    Way,
    bearer,
    by_federation,
    by_federation_and_impersonation,
    by_impersonation,
    by_key,
    by_login,
    by_metadata,
    every_way,
    headers_by,
    refusal_by,
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


@every_way
def test_a_way_leads_to_a_token_and_every_call_on_it_has_our_name(way: Way, machine: Machine) -> None:
    headers, servers = headers_by(way, machine)

    assert headers == bearer(servers.given[-1])
    assert {asked.headers["user-agent"] for asked in servers.asked} == {f"setpoint/{__version__}"}


def test_a_robot_signs_what_it_asks_for(machine: Machine) -> None:
    _, servers = headers_by(by_key, machine)

    (claims,) = servers.claims
    assert (claims["iss"], claims["scope"], claims["aud"]) == (EMAIL, SCOPE, "https://oauth2.googleapis.com/token")
    assert servers.paths == ["/token"]


def test_a_key_that_is_not_the_robot_s_is_refused(machine: Machine) -> None:
    def way(machine: Machine, servers: TokenServers) -> None:
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        machine.put(service_account_file(servers, private_key=key_text(other)))

    error = refusal_by(way, machine)

    assert isinstance(error, RemoteRefused)
    assert str(error).startswith(
        f"Google gives the credentials of {VARIABLE} ({machine.file}) no token: invalid_grant: Invalid JWT Signature; "
        f"{ADVICE}"
    )


def test_a_person_s_login_brings_its_own_scopes(machine: Machine) -> None:
    _, servers = headers_by(by_login, machine)

    (asked,) = servers.asked
    assert asked.form == {
        "grant_type": "refresh_token",
        "client_id": "some-client",
        "client_secret": CLIENT,
        "refresh_token": REFRESH,
    }


def test_a_login_that_was_taken_back_is_refused(machine: Machine) -> None:
    def way(machine: Machine, servers: TokenServers) -> None:
        machine.put(user_file(servers, refresh_token="another"))

    error = refusal_by(way, machine)

    assert isinstance(error, RemoteRefused)
    assert f"({machine.file}) no token: invalid_grant: Token has been expired or revoked; {ADVICE}" in str(error)


def test_a_robot_may_act_as_another_with_the_first_token_for_nothing_but_that(machine: Machine) -> None:
    headers, servers = headers_by(by_impersonation, machine)

    first, second = servers.asked
    assert (first.path, servers.claims[0]["scope"]) == ("/token", iam._IAM_SCOPE[0])
    assert (second.path, second.headers["authorization"]) == (IMPERSONATE, f"Bearer {servers.given[0]}")
    assert second.json == {
        "scope": [SCOPE],
        "delegates": ["projects/-/serviceAccounts/between@some-project.iam.gserviceaccount.com"],
        "lifetime": "3600s",
    }
    assert headers == bearer(servers.given[1])


def test_who_may_not_act_as_another_is_told_what_google_says(machine: Machine) -> None:
    def instead(asked: TokenRequest) -> web.Response | None:
        if asked.path != IMPERSONATE:
            return None
        error = {"code": 403, "message": "Permission 'iam.serviceAccounts.getAccessToken' denied on resource"}
        return web.json_response({"error": error}, status=403)

    error = refusal_by(by_impersonation, machine, instead)

    assert isinstance(error, RemoteRefused)
    assert (
        f"({machine.file}) no token: Unable to acquire impersonated credentials: "
        "Permission 'iam.serviceAccounts.getAccessToken' denied on resource; "
    ) in str(error)


def test_a_workload_elsewhere_exchanges_its_own_token(machine: Machine) -> None:
    _, servers = headers_by(by_federation, machine)

    (asked,) = servers.asked
    assert (asked.path, asked.form["subject_token"], asked.form["scope"]) == ("/v1/token", SUBJECT, SCOPE)
    assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"


def test_a_workload_s_own_token_is_read_again_for_every_exchange(machine: Machine) -> None:
    async def main() -> list[str]:
        async with token_servers() as servers:
            by_federation(machine, servers)
            (machine.folder / "subject").write_text("an old one")
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            with pytest.raises(RemoteRefused, match="rejected by the attribute condition"):
                await tokens.headers()
            (machine.folder / "subject").write_text(SUBJECT)
            clock.advance(60.0)
            await tokens.headers()
            return [asked.form["subject_token"] for asked in servers.asked]

    assert asyncio.run(main()) == ["an old one", SUBJECT]


def test_a_workload_elsewhere_may_act_as_a_robot(machine: Machine) -> None:
    headers, servers = headers_by(by_federation_and_impersonation, machine)

    assert servers.paths == ["/v1/token", IMPERSONATE]
    assert servers.asked[1].headers["authorization"] == f"Bearer {servers.given[0]}"
    assert servers.asked[1].json["scope"] == [SCOPE]
    assert headers == bearer(servers.given[1])


def test_the_metadata_server_is_asked_as_it_wants_to_be(machine: Machine) -> None:
    _, servers = headers_by(by_metadata, machine)

    assert {asked.headers["metadata-flavor"] for asked in servers.asked} == {"Google"}
    assert servers.asked[-1].path == "/computeMetadata/v1/instance/service-accounts/default/token"
    assert servers.asked[-1].query == {"scopes": SCOPE}


def test_who_does_not_say_that_it_is_the_metadata_server_is_not(machine: Machine) -> None:
    error = refusal_by(by_metadata, machine, lambda _: web.Response(text="welcome to the hotel"))

    assert str(error).startswith(f"no Google credentials: no file, and no metadata server; {ADVICE}")


def test_gcloud_s_own_login_is_found_without_a_variable(machine: Machine) -> None:
    def way(machine: Machine, servers: TokenServers) -> None:
        machine.put(user_file(servers), machine.folder / "gcloud" / "application_default_credentials.json")
        machine.patch.delenv(VARIABLE)

    headers, servers = headers_by(way, machine)

    assert headers == bearer(servers.given[0])


def test_the_variable_counts_for_more_than_gcloud_s_login_and_that_for_more_than_the_machine(machine: Machine) -> None:
    def way(machine: Machine, servers: TokenServers) -> None:
        by_metadata(machine, servers)
        machine.put(user_file(servers), machine.folder / "gcloud" / "application_default_credentials.json")
        machine.put(service_account_file(servers))

    _, servers = headers_by(way, machine)

    assert [asked.form["grant_type"] for asked in servers.asked] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


@pytest.mark.parametrize("way", [by_login, by_impersonation, by_federation], ids=lambda way: way.__name__)
def test_the_project_whose_quota_is_used_up_is_named_when_the_file_names_one(machine: Machine, way: Way) -> None:
    def with_project(machine: Machine, servers: TokenServers) -> None:
        way(machine, servers)
        machine.put({**json.loads(machine.file.read_text()), "quota_project_id": "billed"})

    headers, servers = headers_by(with_project, machine)

    assert headers == {**bearer(servers.given[-1]), "x-goog-user-project": "billed"}


@every_way
def test_the_project_whose_quota_is_used_up_can_be_set(machine: Machine, way: Way) -> None:
    machine.patch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "billed")

    headers, servers = headers_by(way, machine)

    assert headers == {**bearer(servers.given[-1]), "x-goog-user-project": "billed"}


# --- Until it runs out -----------------------------------------------------------------------------------------------


@every_way
def test_a_token_is_replaced_when_its_time_is_over(machine: Machine, way: Way) -> None:
    async def main() -> tuple[list[Mapping[str, str]], list[str]]:
        async with token_servers() as servers:
            machine.lead_to(servers.url)
            way(machine, servers)
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            found = [await tokens.headers(), await tokens.headers()]
            clock.advance(3600.0)
            return [*found, await tokens.headers()], servers.given

    headers, given = asyncio.run(main())

    assert headers[0] == headers[1]
    assert headers[2] == bearer(given[-1]) != headers[0]


def test_a_key_that_was_replaced_is_read_after_the_old_one_was_refused(machine: Machine) -> None:
    async def main() -> tuple[Mapping[str, str], list[str]]:
        async with token_servers() as servers:
            machine.lead_to(servers.url)
            machine.put(user_file(servers, refresh_token="taken back"))
            clock = ManualClock()
            tokens = TokenCredentials(clock=clock)
            with pytest.raises(RemoteRefused):
                await tokens.headers()
            machine.put(user_file(servers))
            clock.advance(60.0)
            return await tokens.headers(), servers.given

    headers, given = asyncio.run(main())

    assert headers == bearer(given[0])
