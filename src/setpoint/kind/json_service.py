"""A service with a JSON API over HTTP, as a kind calls it: rate limited, authenticated, and stopped by previews."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from setpoint.clients.authentication import send_authenticated
from setpoint.clients.foreign_errors import error_summary
from setpoint.clients.google.errors import is_not_found, retry_after
from setpoint.clients.http import HttpRequest, HttpResponse, send_retried
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED, CallOutcome, Throttled, Unavailable
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import QuotaBudget, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.clients.response_bodies import UNDECODABLE, decode_response
from setpoint.clients.url_path import encode_query, join_path
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.kind import Absent, Present, Unchanged, Written
from setpoint.errors import RemoteConflict, RemoteError, RemoteRefused, RemoteUnavailable, UserError
from setpoint.kind.kind_context import KindContext

L = TypeVar("L", bound=Struct)
# Used until the service throttles: AIMD finds the rate that it takes.
DEFAULT_RATE: Final = AimdSettings(start=50, burst=100, ceiling=1000, growth=5)
_LONGEST_MESSAGE: Final = 500
_UNREACHABLE: Final = "http://recorded.invalid"
_ADVICE: Final = {
    401: ". Check the token, and whether it is still valid",
    403: ". Check what the token may do",
    404: ". Check the address, and whether what should hold the object is there",
}
# Where services put the text of an error.
_MESSAGE_MEMBERS: Final = ("message", "detail", "title", "error_description", "error")


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A text from an environment variable; `default` where it is not set."""

    variable: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class FromSecret:
    """A text from a key of a Secret: of the tenant's namespace where there are tenants, else of `default`.

    A kind that uses it sets `reads_secrets`.
    """

    name: str
    key: str


# Where a token comes from; a function is called again after a 401.
ServiceToken: TypeAlias = FromEnvironment | FromSecret | Callable[[], Awaitable[str]]


class _Token(NamedTuple):
    """The headers with a token. Another object each time that the token was fetched."""

    headers: Mapping[str, str]


class JsonService:
    """Calls that succeed, or raise one of our errors. Paths are given in parts, each of which is quoted.

    Each request waits for the rate limit of the service. A 404 to a read or a deletion means that the object is not
    there; 408, 429 and 5xx are RemoteUnavailable, with Retry-After; 409 and 412 are RemoteConflict; anything else is
    RemoteRefused, with what the service says. A token is sent by https, or to this machine, only.
    """

    def __init__(
        self,
        context: KindContext,
        name: str,
        address: str | FromEnvironment,
        *,
        token: ServiceToken | None = None,
        header: str = "Authorization",
        scheme: str = "Bearer",
        rate: AimdSettings = DEFAULT_RATE,
    ) -> None:
        self.name = name
        self._context = context
        self._address = address
        self._token_source = token
        self._header, self._scheme, self._rate = header, scheme, rate
        self._token: _Token | None = None

    async def get(self, *parts: str, query: Mapping[str, str] | None = None) -> bytes | None:
        """The object, as the bytes that came; None when the service says that it does not exist."""
        request, response = await self._send("GET", parts, query)
        return None if is_not_found(response) else _require_success(request, response)

    async def post(self, *parts: str, body: Json = None, query: Mapping[str, str] | None = None) -> bytes:
        """The response to a create, or to a custom method."""
        return _require_success(*await self._send("POST", parts, query, body))

    async def put(self, *parts: str, body: Json, query: Mapping[str, str] | None = None) -> bytes:
        """The response to a replacement of the whole object."""
        return _require_success(*await self._send("PUT", parts, query, body))

    async def patch(self, *parts: str, body: Json, query: Mapping[str, str] | None = None) -> bytes:
        """The response to a change of some fields."""
        return _require_success(*await self._send("PATCH", parts, query, body))

    async def delete(self, *parts: str, query: Mapping[str, str] | None = None) -> bytes | None:
        """The response to a deletion; None when the object did not exist."""
        request, response = await self._send("DELETE", parts, query)
        return None if is_not_found(response) else _require_success(request, response)

    async def observe(
        self, live_type: type[L], *parts: str, known: str | None = None, outputs: type[Struct] | None = None
    ) -> Absent | Present[L] | Unchanged:
        """What `observe` of a kind returns for the object at this path: see `read`."""
        body = await self.get(*parts)
        if body is None:
            return Absent()
        return Unchanged() if known is not None and sha256_hex(body) == known else self.read(live_type, body, outputs)

    def read(self, live_type: type[L], body: bytes, outputs: type[Struct] | None = None) -> Present[L]:
        """The object in a body: the live type and the outputs have the members that they name, and no others."""
        live = decode_response(_decoder(live_type), body, self.name)
        shown: JsonObject = {}
        if outputs is not None:
            shown = msgspec.to_builtins(decode_response(_decoder(outputs), body, self.name))
        members = {name: one for name, one in shown.items() if one is not None}
        return Present(live, sha256_hex(body), outputs=members)

    def written(self, live_type: type[L], body: bytes, outputs: type[Struct] | None = None) -> Written[L]:
        """What `create` or `update` of a kind returns if the service answers with the whole object."""
        return Written(self.read(live_type, body, outputs))

    # --- How a request is sent ----------------------------------------------------------------------------------------

    async def _send(
        self, method: str, parts: tuple[str, ...], query: Mapping[str, str] | None, body: Json = None
    ) -> tuple[HttpRequest, HttpResponse]:
        url = self._base_url() + join_path(parts) + (f"?{encode_query(query)}" if query else "")
        headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": "application/json"})
        content = None if body is None else msgspec.json.encode(body)
        request: HttpRequest

        def send(token: _Token) -> Awaitable[HttpResponse]:
            nonlocal request
            request = HttpRequest(method, url, {**token.headers, **headers}, content)
            return send_retried(self._send_limited, request, _outcome_of)

        async def identity(refused: _Token | None) -> _Token:
            try:
                return await self._authenticated(url, refused)
            except RemoteError as error:
                if refused is None:
                    self._context.services.http(self.name).report_unsent(
                        HttpRequest(method, url, headers, content), error
                    )
                raise

        response = await send_authenticated(identity, send)
        return request, response

    async def _send_limited(self, request: HttpRequest) -> HttpResponse:
        budget = self._budget("reads" if request.method == "GET" else "writes")
        caller = current_caller.get() or Caller(self.name)
        with await budget.limiter.acquire(budget, caller, request) as slot:
            response = await self._context.services.http(self.name).send(request)
            slot.outcome = _outcome_of(response)
        return response

    def _budget(self, quota: str) -> QuotaBudget:
        tenant = "" if self._context.tenant is None else self._context.tenant.namespace
        key, budgets = QuotaKey(self.name, tenant, quota), self._context.services.budgets
        return budgets.find(key) or budgets.make(key, self._rate, self.name)

    def _base_url(self) -> str:
        if self._context.is_recorded:
            return _UNREACHABLE
        source = self._address
        if isinstance(source, str):
            return source.rstrip("/")
        text = self._context.environment.get(source.variable, "").strip() or source.default
        if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
            shown = f"is {text!r}" if text else "is not set"
            raise UserError(
                f"{source.variable} {shown}: write the address of {self.name}, as https://{self.name}.example"
            )
        return text.rstrip("/")

    async def _authenticated(self, url: str, refused: _Token | None) -> _Token:
        if self._token is None or self._token is refused:
            text = await self._read_token()
            headers = {self._header: f"{self._scheme} {text}".strip()} if text else {}
            if refused is None or refused.headers != headers:
                self._token = _Token(headers)
        token = self._token
        assert token is not None
        if token.headers and not _is_private(url):
            raise RemoteRefused(f"{self.name}: no token is sent over http to another machine: use an https address")
        return token

    async def _read_token(self) -> str:
        match self._token_source:
            case None:
                return ""
            case FromEnvironment(variable=variable, default=default):
                found = self._context.credential(variable) or default
                if not found and not self._context.is_recorded:
                    raise UserError(f"{variable} is not set: write the token of {self.name} there")
                return found
            case FromSecret(name=name, key=key):
                return "" if self._context.is_recorded else (await self._context.secret(name, key)).strip()
            case fetch:
                return "" if self._context.is_recorded else await fetch()


def _is_private(url: str) -> bool:
    """Whether what is sent cannot be read on its way."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


@cache
def _decoder(type_: type[L]) -> msgspec.json.Decoder[L]:
    return msgspec.json.Decoder(type_)


# --- What a response means --------------------------------------------------------------------------------------------


def _require_success(request: HttpRequest, response: HttpResponse) -> bytes:
    if 200 <= response.status < 300:
        return response.body
    raise _error_for(request, response)


def _error_for(request: HttpRequest, response: HttpResponse) -> RemoteError:
    status = response.status
    summary = f"{request}: {error_summary(status, '', _message_in(response.body), longest=_LONGEST_MESSAGE)}"
    if status in (408, 425, 429) or status >= 500:
        return RemoteUnavailable(summary, retry_after(response, datetime.now(UTC)))
    # What could not be deleted now cannot be deleted at the next attempt either.
    is_conflict = status == 412 or (status == 409 and request.method != "DELETE")
    if is_conflict or (is_not_found(response) and request.method in ("PATCH", "PUT")):
        return RemoteConflict(summary)
    advice = _ADVICE.get(status, "")
    return RemoteRefused((summary.removesuffix(".") if advice else summary) + advice, status)


def _outcome_of(response: HttpResponse) -> CallOutcome:
    """What the response says about the service, for the rate limiter; not about the object."""
    if response.status == 429:
        return Throttled(retry_after(response, datetime.now(UTC)))
    return Unavailable(retry_after(response, datetime.now(UTC))) if response.status >= 500 else RESPONDED


def _message_in(body: bytes) -> str:
    """The text of an error, where services mostly put it; empty when there is none."""
    try:
        found: object = msgspec.json.decode(body)
    except UNDECODABLE:
        return ""
    while isinstance(found, dict):
        found = next((found[name] for name in _MESSAGE_MEMBERS if found.get(name)), None)
    return found if isinstance(found, str) else ""
