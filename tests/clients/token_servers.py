"""Google's token servers on one loopback address: each accepts what the real one accepts, and refuses the rest."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.clients.loopback_servers import http_server

EMAIL: Final = "account@some-project.iam.gserviceaccount.com"
ROLE: Final = "deployer@some-project.iam.gserviceaccount.com"
# Secrets: none of them may appear in an error or a log.
SUBJECT: Final = "eyJhbGciOiJSUzI1NiJ9.SubjectTokenOfTheWorkload123.c2lnbmF0dXJl"
REFRESH: Final = "1//0gRefreshTokenOfAUser0123456789"
CLIENT: Final = "GOCSPX-ClientSecret0123456789abc"
_METADATA: Final = "/computeMetadata/v1/"

Served = Callable[["TokenServers", "TokenRequest"], web.Response]


@cache
def service_account_key() -> rsa.RSAPrivateKey:
    """The private key of the service account."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_text(key: rsa.RSAPrivateKey) -> str:
    """A key in PEM."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@cache
def service_account_key_text() -> str:
    """The private key of the service account, in PEM."""
    return key_text(service_account_key())


@dataclass(frozen=True)
class TokenRequest:
    """A request to a token server."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class TokenServers:
    """All token servers. Each token is a new one; `instead` answers in place of any of them."""

    url: str = ""
    seconds: int = 3600
    instead: Callable[[TokenRequest], web.Response | None] = lambda _: None
    requests: list[TokenRequest] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    # The claims of signed requests of the service account.
    claims: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, received: web.BaseRequest) -> web.Response:
        headers = {name.lower(): text for name, text in received.headers.items()}
        request = TokenRequest(received.method, received.path, dict(received.query), headers, await received.read())
        self.requests.append(request)
        found = self.instead(request)
        if found is not None:
            return found
        if request.path.startswith(_METADATA) or request.path == "/":
            return self._metadata(request)
        served = _SERVERS.get((request.method, request.path.partition(":")[0]))
        return _no(404, "not_found") if served is None else served(self, request)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def new_token(self) -> str:
        token = f"ya29.c.SecretAccessToken{len(self.issued):04}abcdefgh"
        self.issued.append(token)
        return token

    def _oauth(self) -> web.Response:
        return web.json_response({"access_token": self.new_token(), "expires_in": self.seconds, "token_type": "Bearer"})

    def token(self, request: TokenRequest) -> web.Response:
        """`oauth2.googleapis.com/token`: for a signed request, or for a refresh token."""
        form = request.form
        if form["grant_type"] == "refresh_token":
            known = {"refresh_token": REFRESH, "client_id": "some-client", "client_secret": CLIENT}
            is_known = known.items() <= form.items()
            return self._oauth() if is_known else _no(400, "invalid_grant", "Token has been expired or revoked.")
        claims = verified(form["assertion"])
        if claims is None or claims["aud"] != "https://oauth2.googleapis.com/token":
            return _no(400, "invalid_grant", "Invalid JWT Signature.")
        self.claims.append(claims)
        return self._oauth()

    def exchange(self, request: TokenRequest) -> web.Response:
        """`sts.googleapis.com/v1/token`: in exchange for a token of another identity provider."""
        if request.form["subject_token"] != SUBJECT:
            return _no(400, "invalid_grant", "The given credential is rejected by the attribute condition.")
        return self._oauth()

    def impersonate(self, request: TokenRequest) -> web.Response:
        """`iamcredentials.googleapis.com`: for a token that was issued here."""
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.issued:
            message = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
            error = {"code": 403, "message": message, "status": "PERMISSION_DENIED"}
            return web.json_response({"error": error}, status=403)
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)
        return web.json_response(
            {"accessToken": self.new_token(), "expireTime": end.isoformat().replace("+00:00", "Z")}
        )

    def _metadata(self, request: TokenRequest) -> web.Response:
        """The metadata server answers only requests with its header, and sends the header itself."""
        if request.headers.get("metadata-flavor") != "Google":
            return web.Response(status=403)
        name = request.path.removeprefix(_METADATA)
        flavour = {"Metadata-Flavor": "Google"}
        if name == "instance/service-accounts/default/token":
            token = {"access_token": self.new_token(), "expires_in": self.seconds, "token_type": "Bearer"}
            return web.json_response(token, headers=flavour)
        if name in ("instance/service-accounts/default/", f"instance/service-accounts/{EMAIL}/"):
            return web.json_response({"email": EMAIL, "scopes": [], "aliases": ["default"]}, headers=flavour)
        texts = {"/": "", "project/project-id": "some-project", "universe/universe-domain": "googleapis.com"}
        return web.Response(text=texts[name], headers=flavour) if name in texts else web.Response(status=404)


_SERVERS: Final[Mapping[tuple[str, str], Served]] = {
    ("POST", "/token"): TokenServers.token,
    ("POST", "/v1/token"): TokenServers.exchange,
    ("POST", f"/v1/projects/-/serviceAccounts/{ROLE}"): TokenServers.impersonate,
}


def verified(assertion: str) -> dict[str, Any] | None:
    """The claims of a signed request; None when the service account has not signed it."""
    signed, _, signature = assertion.rpartition(".")
    try:
        service_account_key().public_key().verify(
            _unpacked(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    except InvalidSignature:
        return None
    header, claims = (json.loads(_unpacked(part)) for part in signed.split("."))
    return claims if header["alg"] == "RS256" else None


def _unpacked(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _no(status: int, error: str, description: str = "") -> web.Response:
    return web.json_response({"error": error, "error_description": description}, status=status)


@asynccontextmanager
async def token_servers() -> AsyncIterator[TokenServers]:
    """The running servers."""
    servers = TokenServers()
    async with http_server(servers.answer) as url:
        servers.url = url
        yield servers
