"""Requests on behalf of tenants: in their project alone, with a token of their account, within their budget."""

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import web

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import (
    AnonymousCredentials,
    GoogleAuth,
    GoogleClient,
    GoogleCredentials,
    GoogleSettings,
    GoogleTenant,
    credentials_for,
    settings_from,
)
from setpoint.errors import Bug, ProjectRefused, RemoteRefused, RemoteUnavailable, SetpointError, TenantInvalid
from tests.clients.google_machines import IMPERSONATE, SCOPE, Machine, bearer, by_key, by_metadata
from tests.clients.scripted_http import ScriptedHttp, error_response, response
from tests.clients.token_servers import EMAIL, ROLE, TokenRequest, token_servers

OTHER = "other@some-project.iam.gserviceaccount.com"
INSTANCE = GoogleCall(GoogleService.SQL, ("projects", "p", "instances", "db"))
BUCKET = GoogleCall(GoogleService.STORAGE, ("b", "some-bucket"))
BUCKETS = GoogleCall(GoogleService.STORAGE, ("b",), {"project": "p"})


def client(http: ScriptedHttp, tenant: GoogleTenant | None = None, *, requires_tenant: bool = False) -> GoogleClient:
    found = GoogleClient(http, GoogleSettings(auth=GoogleAuth.ANONYMOUS), requires_tenant=requires_tenant)
    return found if tenant is None else found.acting_for(tenant)


# --- Projects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [INSTANCE, BUCKET, BUCKETS])
def test_without_a_tenant_nothing_is_sent_where_one_is_required(call: GoogleCall) -> None:
    http = ScriptedHttp(response(200, {}))

    with pytest.raises(Bug, match="no tenant is known"):
        asyncio.run(client(http, requires_tenant=True).get(call))

    assert http.requests == []


@pytest.mark.parametrize(
    "call",
    [
        GoogleCall(GoogleService.SQL, ("projects", "other", "instances", "db")),
        GoogleCall(GoogleService.SQL, ("projects", "P", "instances", "db")),
        GoogleCall(GoogleService.SQL, ("projects", "123456789012", "operations", "o")),
        GoogleCall(GoogleService.SQL, ("flags",)),
        GoogleCall(GoogleService.SQL, ("projects",)),
        GoogleCall(GoogleService.STORAGE, ("b",), {"project": "other"}),
        GoogleCall(GoogleService.STORAGE, ("b",)),
    ],
    ids=lambda call: call.path,
)
def test_nothing_is_sent_outside_of_the_project_of_the_tenant(call: GoogleCall) -> None:
    http = ScriptedHttp(response(200, {}))

    with pytest.raises(ProjectRefused, match="resources of this namespace are in 'p'"):
        asyncio.run(client(http, GoogleTenant(project="p"), requires_tenant=True).post(call))

    assert http.requests == []


@pytest.mark.parametrize("call", [INSTANCE, BUCKET, BUCKETS])
def test_the_project_of_the_tenant_is_reached(call: GoogleCall) -> None:
    http = ScriptedHttp(response(200, {}))

    asyncio.run(client(http, GoogleTenant(project="p"), requires_tenant=True).get(call))

    assert len(http.requests) == 1


# --- Budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GoogleTenant("a@x.iam.gserviceaccount.com", "p"), GoogleTenant("b@x.iam.gserviceaccount.com", "p")),
        (GoogleTenant(project="p"), GoogleTenant(project="q")),
        (GoogleTenant("a@x.iam.gserviceaccount.com"), GoogleTenant()),
    ],
    ids=["accounts", "projects", "account and process"],
)
def test_what_one_tenant_is_throttled_for_does_not_stop_another(one: GoogleTenant, other: GoogleTenant) -> None:
    http = ScriptedHttp(error_response(429, "rateLimitExceeded", Retry_After="3600"), response(200, {}))

    async def main() -> list[str]:
        base = client(http, requires_tenant=True)
        with pytest.raises(RemoteUnavailable):
            await base.acting_for(one).get(BUCKET)
        with pytest.raises(RemoteUnavailable, match="asked for a pause"):
            await base.acting_for(one).get(BUCKET)
        await base.acting_for(other).get(BUCKET)
        return [key.key.project for key in base.budgets.snapshot().budgets]

    budgets = asyncio.run(main())
    assert len(http.requests) == 2
    assert len(set(budgets)) == 2


# --- Service accounts -------------------------------------------------------------------------------------------------


async def headers_of(client: GoogleClient, http: ScriptedHttp) -> Mapping[str, str]:
    await client.get(BUCKET)
    return http.requests[-1].headers


@pytest.mark.parametrize("setup", [by_key, by_metadata], ids=lambda one: one.__name__)
def test_requests_of_a_tenant_have_a_token_of_its_account(setup: object, machine: Machine) -> None:
    http = ScriptedHttp(response(200, {}))

    async def main() -> None:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            (by_key if setup is by_key else by_metadata)(machine, servers)
            base = GoogleClient(http, GoogleSettings(iam=servers.url), requires_tenant=True)
            tenant, process = base.acting_for(GoogleTenant(ROLE)), base.acting_for(GoogleTenant())
            asked = {**await headers_of(tenant, http)}
            again = {**await headers_of(base.acting_for(GoogleTenant(ROLE)), http)}
            own = {**await headers_of(process, http)}

            (request,) = [one for one in servers.requests if one.path == IMPERSONATE]
            assert (request.json["scope"], request.json["lifetime"]) == ([SCOPE], "3600s")
            # That of the process itself was given for the impersonation first.
            assert asked == again == bearer(servers.issued[1])
            assert own == bearer(servers.issued[-1])
            assert len(servers.issued) == 3

    asyncio.run(main())


def test_an_account_that_may_not_be_impersonated_is_named_with_the_role_that_is_missing(machine: Machine) -> None:
    def refuse(request: TokenRequest) -> web.Response | None:
        if OTHER not in request.path:
            return None
        message = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
        error = {"code": 403, "message": message, "status": "PERMISSION_DENIED"}
        return web.json_response({"error": error}, status=403)

    http = ScriptedHttp(response(200, {}))

    async def main() -> SetpointError:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            by_key(machine, servers)
            servers.instead = refuse
            base = GoogleClient(http, GoogleSettings(iam=servers.url), requires_tenant=True)
            with pytest.raises(TenantInvalid) as caught:
                await base.acting_for(GoogleTenant(OTHER)).get(BUCKET)
            # Another tenant goes on.
            await base.acting_for(GoogleTenant(ROLE)).get(BUCKET)
            return caught.value

    error = asyncio.run(main())
    assert str(error) == (
        f"Google gives the credentials of GOOGLE_APPLICATION_CREDENTIALS ({machine.file}) no token of the service "
        f"account {OTHER}: Unable to acquire impersonated credentials: Permission 'iam.serviceAccounts.getAccessToken' "
        "denied on resource (or it may not exist); an administrator gives them roles/iam.serviceAccountTokenCreator on "
        "it, or corrects the annotation setpoint.dev/google-service-account of the Namespace"
    )
    assert isinstance(error, RemoteRefused)
    assert len(http.requests) == 1


def test_credentials_of_a_bounded_number_of_accounts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def record(_settings: GoogleSettings, account: str = "") -> GoogleCredentials:
        made.append(account)
        return AnonymousCredentials()

    monkeypatch.setattr("setpoint.clients.google.client.credentials_for", record)
    http = ScriptedHttp(response(200, {}))

    async def main() -> int:
        base = GoogleClient(http, GoogleSettings(), requires_tenant=True)
        await base.acting_for(GoogleTenant()).get(BUCKET)
        for number in range(1100):
            await base.acting_for(GoogleTenant(f"a-{number}@x.iam.gserviceaccount.com")).get(BUCKET)
        await base.acting_for(GoogleTenant()).get(BUCKET)
        return len(base._credentials)

    assert asyncio.run(main()) == 1000
    # Those of the process are never dropped.
    assert made.count("") == 1


def test_the_endpoint_of_the_token_service_can_be_another_one() -> None:
    environment = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS": "http://localhost:9/v1/"}

    assert settings_from(environment).iam == "http://localhost:9"
    assert settings_from({}).iam == "https://iamcredentials.googleapis.com"


def test_anonymous_requests_stay_anonymous() -> None:
    settings = settings_from({"SETPOINT_GCP_AUTH": "anonymous"})

    assert asyncio.run(credentials_for(settings, EMAIL).headers()) == {}
