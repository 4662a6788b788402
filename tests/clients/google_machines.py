"""Machines with one type of Google credentials each, and the token servers for them."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from google.auth import _exponential_backoff
from google.auth.compute_engine import _metadata
from requests.adapters import HTTPAdapter

from setpoint.clients.google.tokens import TokenCredentials
from setpoint.errors import SetpointError
from tests.clients.token_servers import (
    CLIENT,
    EMAIL,
    REFRESH,
    ROLE,
    SUBJECT,
    TokenRequest,
    TokenServers,
    service_account_key_text,
    token_servers,
)

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
IMPERSONATE = f"/v1/projects/-/serviceAccounts/{ROLE}:generateAccessToken"
VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
NO_SERVER = "127.0.0.1:1"
ADVICE = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file"

Info = dict[str, Any]
# Sets up one type of credentials on a machine.
CredentialSetup = Callable[["Machine", TokenServers], None]


class Machine:
    """A machine without a login, and without a metadata server."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.patch = patch
        self.file = folder / "credentials.json"
        for name in (VARIABLE, "GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_CLOUD_PROJECT", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.delenv(name, raising=False)
        patch.setenv("CLOUDSDK_CONFIG", str(folder / "gcloud"))
        self.set_metadata_server(NO_SERVER)
        # google-auth tries again by itself, and sleeps in between.
        patch.setattr(_exponential_backoff.ExponentialBackoff, "_calculate_jitter", lambda _: 0.0)

    def set_metadata_server(self, place: str) -> None:
        self.patch.setenv("GCE_METADATA_HOST", place)
        self.patch.setenv("GCE_METADATA_IP", place)
        # google-auth reads the variable when it is loaded.
        self.patch.setattr(_metadata, "_GCE_METADATA_HOST", place)

    def put(self, info: Info | str, file: Path | None = None) -> None:
        """Writes a credentials file, and names it in the variable."""
        file = file or self.file
        file.parent.mkdir(exist_ok=True)
        file.write_text(info if isinstance(info, str) else json.dumps(info))
        self.patch.setenv(VARIABLE, str(file))

    def redirect_google_to(self, url: str) -> None:
        """Sends requests for Google's own addresses to `url` instead, below google-auth."""
        send = HTTPAdapter.send

        def send_redirected(adapter: HTTPAdapter, request: Any, *arguments: Any, **more: Any) -> Any:
            request.url = re.sub(r"^https://(oauth2|iamcredentials)\.googleapis\.com", url, request.url)
            return send(adapter, request, *arguments, **more)

        self.patch.setattr(HTTPAdapter, "send", send_redirected)


def service_account_file(servers: TokenServers, **more: Any) -> Info:
    """The key file of a service account."""
    return {
        "type": "service_account",
        "client_email": EMAIL,
        "private_key": service_account_key_text(),
        "token_uri": f"{servers.url}/token",
        **more,
    }


def user_file(_servers: TokenServers, **more: Any) -> Info:
    """The file that gcloud writes after a login. It names no token endpoint: that is Google's."""
    known = {"client_id": "some-client", "client_secret": CLIENT, "refresh_token": REFRESH}
    return {"type": "authorized_user", **known, **more}


def federation_file(servers: TokenServers, subject: Path, **more: Any) -> Info:
    """A workload outside Google Cloud, with its subject token in a file."""
    return {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/it",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{servers.url}/v1/token",
        "credential_source": {"file": str(subject)},
        **more,
    }


# --- Types of credentials ---------------------------------------------------------------------------------------------


def by_key(machine: Machine, servers: TokenServers) -> None:
    machine.put(service_account_file(servers))


def by_login(machine: Machine, servers: TokenServers) -> None:
    machine.put(user_file(servers))


def by_impersonation(machine: Machine, servers: TokenServers) -> None:
    url = f"https://iamcredentials.googleapis.com{IMPERSONATE}"
    source = service_account_file(servers)
    machine.put(
        {
            "type": "impersonated_service_account",
            "service_account_impersonation_url": url,
            "source_credentials": source,
            "delegates": ["projects/-/serviceAccounts/between@some-project.iam.gserviceaccount.com"],
        }
    )


def by_federation(machine: Machine, servers: TokenServers) -> None:
    subject = machine.folder / "subject"
    subject.write_text(SUBJECT)
    machine.put(federation_file(servers, subject))


def by_federation_and_impersonation(machine: Machine, servers: TokenServers) -> None:
    subject = machine.folder / "subject"
    subject.write_text(SUBJECT)
    machine.put(federation_file(servers, subject, service_account_impersonation_url=f"{servers.url}{IMPERSONATE}"))


def by_metadata(machine: Machine, servers: TokenServers) -> None:
    machine.set_metadata_server(servers.url.removeprefix("http://"))


CREDENTIAL_TYPES: tuple[CredentialSetup, ...] = (
    *(by_key, by_login, by_impersonation),
    *(by_federation, by_federation_and_impersonation, by_metadata),
)
every_credential_type = pytest.mark.parametrize("setup", CREDENTIAL_TYPES, ids=lambda setup: setup.__name__)


def bearer(token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


def fetch_headers(
    setup: CredentialSetup, machine: Machine, instead: Callable[[TokenRequest], web.Response | None] = lambda _: None
) -> tuple[Mapping[str, str], TokenServers]:
    """The headers that the credentials yield, and the token servers."""

    async def main() -> tuple[Mapping[str, str], TokenServers]:
        async with token_servers() as servers:
            machine.redirect_google_to(servers.url)
            setup(machine, servers)
            servers.instead = instead
            return await TokenCredentials().headers(), servers

    return asyncio.run(main())


def fetch_error(
    setup: CredentialSetup, machine: Machine, instead: Callable[[TokenRequest], web.Response | None] = lambda _: None
) -> SetpointError:
    with pytest.raises(SetpointError) as caught:
        fetch_headers(setup, machine, instead)
    return caught.value
