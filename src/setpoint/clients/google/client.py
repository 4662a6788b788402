"""Client of Google's APIs: settings, credentials, calls, and lists by page."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, assert_never
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import (
    QUOTA_PROJECT_HEADER,
    GoogleApi,
    GoogleCall,
    GoogleService,
    default_caller_key,
    initial_rate,
    project_in,
    quota_key,
    recorded_elsewhere,
)
from setpoint.clients.google.errors import error_for_response, is_not_found, outcome_of
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse, send_retried
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import QuotaBudget, QuotaBudgets
from setpoint.clients.response_bodies import decode_response
from setpoint.clients.transport.messages import Headers
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.core.values.json_types import Json
from setpoint.errors import Bug, RemoteError, RemoteRefused, RemoteUnavailable, ResponseTooLarge, UserError

if TYPE_CHECKING:
    from setpoint.clients.listed_page import ListedPage

AUTH_VARIABLE: Final = "SETPOINT_GCP_AUTH"
SQL_ENDPOINT_VARIABLE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"
STORAGE_ENDPOINT_VARIABLE: Final = "STORAGE_EMULATOR_HOST"
# One for all of Google: a request for https://HOST/PATH goes to BASE/HOST/PATH.
GOOGLE_ENDPOINT_VARIABLE: Final = "SETPOINT_GOOGLE_ENDPOINT"
IAM_ENDPOINT_VARIABLE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS"
# Of any other service, by the first part of its host.
_OVERRIDES: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
_HAND_WRITTEN: Final = (SQL_ENDPOINT_VARIABLE, IAM_ENDPOINT_VARIABLE)
_EMULATORS: Final = {"PUBSUB_EMULATOR_HOST": "pubsub"}
# Credentials of so many service accounts are kept at once.
_MAX_ACCOUNTS: Final = 1000
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_JSON: Final = {"Content-Type": "application/json"}
_STORAGE: Final = GoogleService.STORAGE


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
    # The service that gives tokens of other service accounts.
    iam: str = "https://iamcredentials.googleapis.com"
    # Where requests to every other host go: `BASE/HOST/PATH` instead of `https://HOST/PATH`.
    base: str = ""
    # Where requests to a host of another service go, by the first part of the host.
    overrides: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)

    def address(self, service: GoogleService | GoogleApi) -> str:
        """The endpoint of `service`, without the path that its methods start with."""
        if service is _STORAGE:
            # Before the patterns below: buckets are many, and are observed again and again.
            return self.storage
        match service:
            case GoogleApi(host=host, prefix=prefix):
                own = self.overrides.get(host.partition(".")[0].rpartition("-")[2]) if self.overrides else None
                if own:
                    return own.removesuffix(prefix)
                return f"{self.base}/{host}" if self.base else f"https://{host}"
            case GoogleService.SQL:
                return self.sql
            case _:
                assert_never(service)


def settings_from(environment: Mapping[str, str]) -> GoogleSettings:
    """The settings in environment variables; their names are known here only."""
    known = GoogleSettings()
    word = environment.get(AUTH_VARIABLE) or GoogleAuth.DEFAULT.value
    if word not in tuple(GoogleAuth):
        raise UserError(f"{AUTH_VARIABLE} is {word!r}: write {' or '.join(GoogleAuth)}")
    base = _endpoint(environment, GOOGLE_ENDPOINT_VARIABLE, "")

    def address(variable: str, version: str, otherwise: str) -> str:
        """The one that the variable of the service names; else below the base of all of them."""
        own = _endpoint(environment, variable, version)
        return own or (f"{base}/{otherwise.removeprefix('https://')}" if base else otherwise)

    return GoogleSettings(
        address(SQL_ENDPOINT_VARIABLE, GoogleService.SQL.value, known.sql),
        address(STORAGE_ENDPOINT_VARIABLE, GoogleService.STORAGE.value, known.storage),
        GoogleAuth(word),
        address(IAM_ENDPOINT_VARIABLE, "/v1", known.iam),
        base,
        _overrides(environment),
    )


def _overrides(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The endpoints of single services, by the first part of their hosts."""
    other = [name for name in environment if name.startswith(_OVERRIDES) and name not in _HAND_WRITTEN]
    named = {**{name: name.removeprefix(_OVERRIDES).lower() for name in other}, **_EMULATORS}
    return {service: found for name, service in named.items() if (found := _endpoint(environment, name, ""))}


def _endpoint(environment: Mapping[str, str], name: str, version: str) -> str:
    """The endpoint in the variable `name`, in the forms of Google's tools: without scheme, with slash or version."""
    text = environment.get(name, "").strip()
    if not text:
        return ""
    if "://" not in text:
        text = f"http://{text}"
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise UserError(f"{name} is {text!r}: write an address such as http://localhost:8080")
    return text.rstrip("/").removesuffix(version)


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


_ANONYMOUS: Final = AnonymousCredentials()


def credentials_for(settings: GoogleSettings, account: str = "") -> GoogleCredentials:
    """The credentials that the settings name; with an `account`, those of that service account by impersonation."""
    match settings.auth:
        case GoogleAuth.ANONYMOUS:
            return _ANONYMOUS
        case GoogleAuth.DEFAULT:
            # Imported only when needed: google-auth brings a cryptographic library with it.
            from setpoint.clients.google.tokens import TokenCredentials, application_default, impersonated

            return TokenCredentials(impersonated(account, settings.iam) if account else application_default)
        case _:
            assert_never(settings.auth)


@dataclass(frozen=True, slots=True)
class GoogleTenant:
    """On whose behalf requests are sent: the service account to impersonate, if any, and the only project, if any."""

    account: str = ""
    project: str | None = None


class GoogleClient:
    """Calls that succeed, or raise one of our errors. Each is rate-limited by its quota budget.

    With `requires_tenant`, nothing is sent but on behalf of a tenant. `close` closes the connections.
    """

    def __init__(
        self,
        http: HttpClient,
        settings: GoogleSettings,
        credentials: GoogleCredentials | None = None,
        budgets: QuotaBudgets | None = None,
        *,
        requires_tenant: bool = False,
    ) -> None:
        self.budgets = budgets or QuotaBudgets()
        self._http = http
        self._settings = settings
        self._tenant: GoogleTenant | None = None if requires_tenant else GoogleTenant()
        # By service account; that of the process itself has none. Shared with the clients of tenants.
        self._credentials: dict[str, GoogleCredentials] = {} if credentials is None else {"": credentials}
        # Shared with the clients of tenants, too.
        self.page_tokens: dict[bytes, str] = {}
        self._last_identity: Mapping[str, str] = _NO_HEADERS
        self._last_headers = Headers()

    def acting_for(self, tenant: GoogleTenant) -> "GoogleClient":
        """The same client on behalf of a tenant: with the same connections, and with budgets of the tenant's own."""
        other = copy(self)
        other._tenant = tenant
        return other

    async def get(self, call: GoogleCall) -> bytes | None:
        """The object, as the bytes that came; None when the service says that it does not exist."""
        request, response = await self._send("GET", call)
        return None if is_not_found(response) else _require_success(request, response)

    async def post(self, call: GoogleCall, body: Json = None) -> bytes:
        """The response to a create, or to a custom method."""
        return _require_success(*await self._send("POST", call, body))

    async def query(self, call: GoogleCall, body: Json) -> bytes | None:
        """The response to a read that is sent by POST; None when the service says that the object does not exist."""
        request, response = await self._send("POST", call, body, is_query=True)
        return None if is_not_found(response) else _require_success(request, response)

    async def put(self, call: GoogleCall, body: Json, *, is_creation: bool = False) -> bytes:
        """The response to a replacement of the whole object, or to its creation under a name of the caller's."""
        return _require_success(*await self._send("PUT", call, body, is_repeatable=not is_creation))

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

    async def _send(
        self,
        method: str,
        call: GoogleCall,
        body: Json = None,
        *,
        is_repeatable: bool = True,
        is_query: bool = False,
    ) -> tuple[HttpRequest, HttpResponse]:
        tenant = self._require_allowed(call)
        url = self._settings.address(call.service) + call.path
        credentials = self._credentials_for(url, tenant.account)
        content = None if body is None else msgspec.json.encode(body)
        try:
            identity = await credentials.headers()
        except RemoteError as error:
            self._http.report_unsent(HttpRequest(method, url, body=content, is_query=is_query), error)
            raise
        headers = self._headers_of(identity, content)
        request = HttpRequest(method, url, headers, content, is_repeatable=is_repeatable, is_query=is_query)
        response = await self._send_limited(call, tenant, request, identity)
        # As `send_authenticated` does, with three calls less for each of the many requests that are not refused.
        if response.status == 401 and (renewed := await credentials.headers(identity)) is not identity:
            request = replace(request, headers=self._headers_of(renewed, content))
            response = await self._send_limited(call, tenant, request, renewed)
        return request, response

    def _headers_of(self, identity: Mapping[str, str], content: bytes | None) -> Mapping[str, str]:
        """The headers of a request; without a body always the same object, whose lines are then made only once."""
        if content is not None:
            return {**identity, **_JSON}
        if self._last_identity is not identity:
            self._last_identity, self._last_headers = identity, Headers.of(identity)
        return self._last_headers

    def _require_allowed(self, call: GoogleCall) -> GoogleTenant:
        """The tenant of a call; ProjectRefused for a call in another project than the tenant's. Nothing is sent then.

        A call on a bucket names no project: whose bucket it is, its kind has to know.
        """
        tenant = self._tenant
        if tenant is None:
            raise Bug(f"{call.path.partition('?')[0]}: not sent: no tenant is known, on whose behalf it would be")
        project = None if tenant.project is None else project_in(call)
        if tenant.project is not None and project is not None and project != tenant.project:
            # What a manifest names is refused before: this is in the status.
            raise recorded_elsewhere(project, tenant.project)
        return tenant

    async def _send_limited(
        self, call: GoogleCall, tenant: GoogleTenant, request: HttpRequest, identity: Mapping[str, str]
    ) -> HttpResponse:
        method = "GET" if request.is_read else request.method
        budget = self._budget_for(method, call, tenant, identity.get(QUOTA_PROJECT_HEADER))
        caller = current_caller.get() or Caller(default_caller_key(call))

        async def send(request: HttpRequest) -> HttpResponse:
            with await budget.limiter.acquire(budget, caller, request) as slot:
                response = await self._http.send(request)
                slot.outcome = RESPONDED if response.status < 400 else outcome_of(response)
            return response

        return await send_retried(send, request, outcome_of)

    def _budget_for(
        self, method: str, call: GoogleCall, tenant: GoogleTenant, quota_project: str | None
    ) -> QuotaBudget:
        key = quota_key(method, call, quota_project)
        if tenant.account or tenant.project:
            # What one tenant is throttled for is not held against another.
            project = key.project or tenant.project or ""
            key = key._replace(project=f"{project} as {tenant.account}" if tenant.account else project)
        found = self.budgets.find(key)
        if found is not None:
            return found
        address = self._settings.address(call.service)
        return self.budgets.make(key, initial_rate(method, call, address), address)

    def _credentials_for(self, url: str, account: str) -> GoogleCredentials:
        if not url.startswith("https://"):
            # A token is never sent in the clear, and a local server has no use for one.
            return _ANONYMOUS
        found = self._credentials.get(account)
        if found is None:
            if len(self._credentials) >= _MAX_ACCOUNTS:
                self._credentials.pop(next(one for one in self._credentials if one))
            found = self._credentials[account] = credentials_for(self._settings, account)
        return found


def _require_success(request: HttpRequest, response: HttpResponse) -> bytes:
    if 200 <= response.status < 300:
        return response.body
    raise error_for_response(request, request.method, response, datetime.now(UTC))


# --- Lists ------------------------------------------------------------------------------------------------------------

# The most that Cloud SQL and Cloud Storage allow; and by how much a page is made smaller when it was too large.
_PAGE_SIZE: Final = 1000
_SMALLER_PAGE: Final = 10


class _Page(Struct, frozen=True, rename="camel"):
    items: list[msgspec.Raw] = []
    next_page_token: str = ""


class _Named(Struct, frozen=True):
    name: str


_page_decoder: Final = msgspec.json.Decoder(_Page)
_name_decoder: Final = msgspec.json.Decoder(_Named)


async def list_pages(google: GoogleClient, call: GoogleCall, what: str) -> "AsyncGenerator[ListedPage, None]":
    """The pages of a list, each item as the bytes that came: most need no decoding. Large items come on small pages.

    RemoteRefused when there is no such list; RemoteUnavailable when a page token repeats.
    """
    from setpoint.clients.listed_page import PageTokens

    known = PageTokens(google.page_tokens)
    tokens = {""}
    token, size = "", _PAGE_SIZE
    while True:
        query = {**call.query, "maxResults": str(size), **({"pageToken": token} if token else {})}
        try:
            body = await google.get(replace(call, query=query))
            if body is None:
                raise RemoteRefused(f"{what} cannot be listed: the service says that there is no such list")
            page, token = known.page(body, partial(_decoded_page, body, what))
        except ResponseTooLarge:
            if size == 1:
                raise
            size //= _SMALLER_PAGE
            continue
        yield page
        if not token:
            return
        if token in tokens:
            raise RemoteUnavailable(f"{what}: the list leads back to a page that was there before")
        tokens.add(token)


def _decoded_page(body: bytes, what: str) -> tuple[Sequence[bytes], str]:
    page = decode_response(_page_decoder, body, what, MAX_LIST_VALUES)
    return page.items, page.next_page_token


def item_name(item: bytes, what: str) -> str:
    """The name of an item; RemoteUnavailable when it has none."""
    return decode_response(_name_decoder, item, what).name
