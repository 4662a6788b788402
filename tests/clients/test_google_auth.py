"""Tokens: from where google-auth finds them, fetched once for all who ask, told apart when they fail."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import exceptions
from google.auth.credentials import Credentials

from setpoint.clients.google_auth import TokenCredentials
from setpoint.errors import RemoteRefused, RemoteUnavailable, SetpointError
from tests.clients.loopback import http_server

# google-auth has types in part.
failures: Any = exceptions


class Counted(Credentials):
    """The tokens t1, t2, …; an error instead when there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth has types in part
        self.fetched = 0
        self.error = error

    def refresh(self, _request: object) -> None:
        self.fetched += 1
        if self.error is not None:
            raise self.error
        self.token = f"t{self.fetched}"


def bearer(token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_one_fetches_for_all_who_ask() -> None:
    source = Counted()

    async def main() -> list[Mapping[str, str]]:
        tokens = TokenCredentials(lambda: source)
        return await asyncio.gather(*(tokens.headers() for _ in range(20)))

    assert asyncio.run(main()) == [bearer("t1")] * 20
    assert source.fetched == 1


def test_a_refused_token_is_fetched_anew_and_an_older_one_is_not() -> None:
    source = Counted()

    async def main() -> list[Mapping[str, str]]:
        tokens = TokenCredentials(lambda: source)
        first = await tokens.headers()
        return [first, await tokens.headers(refused=first), await tokens.headers(refused=first)]

    assert asyncio.run(main()) == [bearer("t1"), bearer("t2"), bearer("t2")]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failures.RefreshError("invalid_grant: revoked", {"refresh_token": "hunter2"}), RemoteRefused),
        (failures.RefreshError("try later", retryable=True), RemoteUnavailable),
        (failures.TransportError("connection refused"), RemoteUnavailable),
    ],
)
def test_what_goes_wrong_decides_the_retry(error: Exception, kind: type[SetpointError]) -> None:
    with pytest.raises(kind) as caught:
        asyncio.run(TokenCredentials(lambda: Counted(error)).headers())

    assert str(error.args[0]) in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_says_what_to_do_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))

    with pytest.raises(RemoteRefused, match="run `gcloud auth application-default login`"):
        asyncio.run(TokenCredentials().headers())


def test_takes_a_service_account_s_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        return web.json_response({"access_token": "from-key", "expires_in": 3600, "token_type": "Bearer"})

    headers = asyncio.run(with_key(handler, monkeypatch, tmp_path))

    assert headers == bearer("from-key")
    assert asked == ["POST /token"]


def test_a_key_that_google_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        said = {"error": "invalid_grant", "error_description": "Invalid grant: account not found"}
        return web.json_response(said, status=400)

    with pytest.raises(RemoteRefused, match="invalid_grant: Invalid grant: account not found; run"):
        asyncio.run(with_key(handler, monkeypatch, tmp_path))


def test_takes_the_metadata_server_s_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        answers: dict[str, Any] = {
            "/": {},
            "/computeMetadata/v1/project/project-id": "some-project",
            "/computeMetadata/v1/universe/universe-domain": "googleapis.com",
            "/computeMetadata/v1/instance/service-accounts/default/": {"email": "me@x", "scopes": [], "aliases": []},
        }
        token = {"access_token": "from-metadata", "expires_in": 3600, "token_type": "Bearer"}
        found = answers.get(request.path, token if request.path.endswith("/token") else None)
        if isinstance(found, str):
            return web.Response(text=found, headers={"Metadata-Flavor": "Google"})
        return web.json_response(found, headers={"Metadata-Flavor": "Google"})

    async def main() -> Mapping[str, str]:
        async with http_server(handler) as url:
            place = url.removeprefix("http://")
            monkeypatch.setenv("GCE_METADATA_HOST", place)
            monkeypatch.setenv("GCE_METADATA_IP", place)
            return await TokenCredentials().headers()

    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))

    assert asyncio.run(main()) == bearer("from-metadata")


async def with_key(handler: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Mapping[str, str]:
    """The headers for a key file whose token server is `handler`."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    async with http_server(handler) as url:
        file = folder / "key.json"
        known = {
            "type": "service_account",
            "client_email": "robot@some-project.iam.gserviceaccount.com",
            "private_key": key.private_bytes(encoding, form, serialization.NoEncryption()).decode(),
            "token_uri": f"{url}/token",
        }
        file.write_text(json.dumps(known))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        return await TokenCredentials().headers()
