"""Client of Google's APIs: settings, credentials, calls, lists by page, and Cloud SQL's long-running operations."""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, assert_never
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import (
    QUOTA_PROJECT_HEADER,
    GoogleCall,
    GoogleService,
    default_caller_key,
    initial_rate,
    quota_key,
)
from setpoint.clients.google.errors import error_for_response, is_not_found, outcome_of
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse, decode_response, send_authenticated
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import QuotaBudget, QuotaBudgets
from setpoint.core.values.json_types import Json
from setpoint.errors import RemoteRefused, RemoteUnavailable, UserError

AUTH_VARIABLE: Final = "SETPOINT_GCP_AUTH"
SQL_ENDPOINT_VARIABLE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"
STORAGE_ENDPOINT_VARIABLE: Final = "STORAGE_EMULATOR_HOST"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class GoogleAuth(StrEnum):
    """How to authenticate: by Application Default Credentials, or not at all."""

    DEFAULT = "default"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """The endpoints of the services, and how to authenticate."""

    sql: str = "https://sqladmin.googleapis.com"
    storage: str = "https://storage.googleapis.com"
    auth: GoogleAuth = GoogleAuth.DEFAULT

    def address(self, service: GoogleService) -> str:
        """The endpoint of `service`, without a path."""
        match service:
            case GoogleService.SQL:
                return self.sql
            case GoogleService.STORAGE:
                return self.storage
            case _:
                assert_never(service)


def settings_from(environment: Mapping[str, str]) -> GoogleSettings:
    """The settings in environment variables; their names are known here only."""
    known = GoogleSettings()
    word = environment.get(AUTH_VARIABLE) or GoogleAuth.DEFAULT.value
    if word not in tuple(GoogleAuth):
        raise UserError(f"{AUTH_VARIABLE} is {word!r}: write {' or '.join(GoogleAuth)}")
    return GoogleSettings(
        _endpoint(environment, SQL_ENDPOINT_VARIABLE, GoogleService.SQL) or known.sql,
        _endpoint(environment, STORAGE_ENDPOINT_VARIABLE, GoogleService.STORAGE) or known.storage,
        GoogleAuth(word),
    )


def _endpoint(environment: Mapping[str, str], name: str, service: GoogleService) -> str:
    """The endpoint in the variable `name`, in the forms of Google's tools: without scheme, with slash or version."""
    text = environment.get(name, "").strip()
    if not text:
        return ""
    if "://" not in text:
        text = f"http://{text}"
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise UserError(f"{name} is {text!r}: write an address such as http://localhost:8080")
    return text.rstrip("/").removesuffix(service.value)


class GoogleCredentials(Protocol):
    """Authenticates requests."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers to send. `refused` are those that were answered with 401: newer ones are fetched."""
        ...


class AnonymousCredentials:
    """No authentication: for local servers."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """No headers, also after a 401."""
        return _NO_HEADERS


def credentials_for(settings: GoogleSettings) -> GoogleCredentials:
    """The credentials that the settings name."""
    match settings.auth:
        case GoogleAuth.ANONYMOUS:
            return AnonymousCredentials()
        case GoogleAuth.DEFAULT:
            # Imported only when needed: google-auth brings a cryptographic library with it.
            from setpoint.clients.google.tokens import TokenCredentials

            return TokenCredentials()
        case _:
            assert_never(settings.auth)


class GoogleClient:
    """Calls that succeed, or raise one of our errors. Each is rate-limited by its quota budget.

    `close` closes the connections.
    """

    def __init__(
        self,
        http: HttpClient,
        settings: GoogleSettings,
        credentials: GoogleCredentials | None = None,
        budgets: QuotaBudgets | None = None,
    ) -> None:
        self.budgets = budgets or QuotaBudgets()
        self._http = http
        self._settings = settings
        self._credentials = credentials

    async def get(self, call: GoogleCall) -> bytes | None:
        """The object, as the bytes that came; None when the service says that it does not exist."""
        request, response = await self._send("GET", call)
        return None if is_not_found(response) else _require_success(request, response)

    async def post(self, call: GoogleCall, body: Json = None) -> bytes:
        """The response to a create, or to a custom method."""
        return _require_success(*await self._send("POST", call, body))

    async def put(self, call: GoogleCall, body: Json) -> bytes:
        """The response to a replacement of the whole object."""
        return _require_success(*await self._send("PUT", call, body))

    async def patch(self, call: GoogleCall, body: Json) -> bytes:
        """The response to a change of some fields."""
        return _require_success(*await self._send("PATCH", call, body))

    async def delete(self, call: GoogleCall) -> bytes | None:
        """The response to a deletion; None when the object did not exist."""
        request, response = await self._send("DELETE", call)
        return None if is_not_found(response) else _require_success(request, response)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def _send(self, method: str, call: GoogleCall, body: Json = None) -> tuple[HttpRequest, HttpResponse]:
        url = self._settings.address(call.service) + call.path
        headers = {} if body is None else {"Content-Type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        request: HttpRequest

        def send(identity: Mapping[str, str]) -> Awaitable[HttpResponse]:
            nonlocal request
            request = HttpRequest(method, url, {**identity, **headers}, content)
            return self._send_limited(call, request)

        response = await send_authenticated(self._credentials_for(url).headers, send)
        return request, response

    async def _send_limited(self, call: GoogleCall, request: HttpRequest) -> HttpResponse:
        budget = self._budget_for(call, request)
        caller = current_caller.get() or Caller(default_caller_key(call))
        with await budget.limiter.acquire(budget, caller, request) as slot:
            response = await self._http.send(request)
            slot.outcome = outcome_of(response)
        return response

    def _budget_for(self, call: GoogleCall, request: HttpRequest) -> QuotaBudget:
        key = quota_key(request.method, call, request.headers.get(QUOTA_PROJECT_HEADER))
        found = self.budgets.find(key)
        if found is not None:
            return found
        address = self._settings.address(call.service)
        return self.budgets.make(key, initial_rate(request.method, call, address), address)

    def _credentials_for(self, url: str) -> GoogleCredentials:
        if not url.startswith("https://"):
            # A token is never sent in the clear, and a local server has no use for one.
            return AnonymousCredentials()
        if self._credentials is None:
            self._credentials = credentials_for(self._settings)
        return self._credentials


def _require_success(request: HttpRequest, response: HttpResponse) -> bytes:
    if 200 <= response.status < 300:
        return response.body
    raise error_for_response(request, request.method, response, datetime.now(UTC))


# --- Long-running operations of Cloud SQL -----------------------------------------------------------------------------


class _OperationError(Struct):
    code: str = ""
    message: str = ""


class _OperationErrors(Struct):
    errors: list[_OperationError] = []


class SqlOperation(Struct, rename="camel"):
    """The fields of an operation that say whether it has ended, and how."""

    name: str
    status: str
    operation_type: str = ""
    target_id: str = ""
    error: _OperationErrors | None = None

    @property
    def is_done(self) -> bool:
        """Whether the operation has succeeded; RemoteRefused when it has failed."""
        if self.status != "DONE":
            return False
        if self.error is not None:
            problems = "; ".join(f"{one.code}: {one.message}" for one in self.error.errors) or "it does not say why"
            raise RemoteRefused(f"operation {self.operation_type} on {self.target_id} failed: {problems}")
        return True


_operation_decoder: Final = msgspec.json.Decoder(SqlOperation)


def sql_operation(body: bytes) -> SqlOperation:
    """The operation in a response."""
    return decode_response(_operation_decoder, body, "an operation")


# --- Lists ------------------------------------------------------------------------------------------------------------

# The most that Cloud SQL and Cloud Storage allow.
_PAGE_SIZE: Final = "1000"


class _Page(Struct, frozen=True, rename="camel"):
    items: list[msgspec.Raw] = []
    next_page_token: str = ""


class _Named(Struct, frozen=True):
    name: str


_page_decoder: Final = msgspec.json.Decoder(_Page)
_name_decoder: Final = msgspec.json.Decoder(_Named)


async def list_pages(google: GoogleClient, call: GoogleCall, what: str) -> AsyncGenerator[Sequence[bytes], None]:
    """The pages of a list, each item as the bytes that came: most need no decoding.

    RemoteRefused when there is no such list; RemoteUnavailable when a page token repeats.
    """
    tokens = {""}
    token = ""
    while True:
        query = {**call.query, "maxResults": _PAGE_SIZE, **({"pageToken": token} if token else {})}
        body = await google.get(replace(call, query=query))
        if body is None:
            raise RemoteRefused(f"{what} cannot be listed: the service says that there is no such list")
        page = decode_response(_page_decoder, body, what)
        yield page.items
        token = page.next_page_token
        if not token:
            return
        if token in tokens:
            raise RemoteUnavailable(f"{what}: the list leads back to a page that was there before")
        tokens.add(token)


def item_name(item: bytes, what: str) -> str:
    """The name of an item; RemoteUnavailable when it has none."""
    return decode_response(_name_decoder, item, what).name
