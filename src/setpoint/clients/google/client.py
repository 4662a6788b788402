"""Client of Google's APIs: settings, credentials, calls, lists by page, and Cloud SQL's long-running operations."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol, TypeVar, assert_never
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import QUOTA_PROJECT_HEADER, GoogleCall, default_caller_key, initial_rate, quota_key
from setpoint.clients.google.calls import GoogleCall as Call
from setpoint.clients.google.calls import GoogleService as Service
from setpoint.clients.google.errors import error_for_response, is_not_found, outcome_of
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import QuotaBudget, QuotaBudgets
from setpoint.core.values.json_types import Json
from setpoint.errors import RemoteRefused, RemoteUnavailable, UserError

T = TypeVar("T")

AUTH_VARIABLE: Final = "SETPOINT_GCP_AUTH"
SQL_ENDPOINT_VARIABLE: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"
STORAGE_ENDPOINT_VARIABLE: Final = "STORAGE_EMULATOR_HOST"


class GoogleAuth(StrEnum):
    """Who we are: Application Default Credentials, or nobody."""

    DEFAULT = "default"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """Where the services are, and who we are to them."""

    sql: str = "https://sqladmin.googleapis.com"
    storage: str = "https://storage.googleapis.com"
    auth: GoogleAuth = GoogleAuth.DEFAULT

    def address(self, service: Service) -> str:
        """The address that the paths of `service` follow."""
        match service:
            case Service.SQL:
                return self.sql
            case Service.STORAGE:
                return self.storage
            case _:
                assert_never(service)


def settings_from(environment: Mapping[str, str]) -> GoogleSettings:
    """The settings in an environment: the only place where their names are known."""
    known = GoogleSettings()
    word = environment.get(AUTH_VARIABLE) or GoogleAuth.DEFAULT.value
    if word not in tuple(GoogleAuth):
        raise UserError(f"{AUTH_VARIABLE} is {word!r}: write {' or '.join(GoogleAuth)}")
    return GoogleSettings(
        _endpoint(environment, SQL_ENDPOINT_VARIABLE, Service.SQL) or known.sql,
        _endpoint(environment, STORAGE_ENDPOINT_VARIABLE, Service.STORAGE) or known.storage,
        GoogleAuth(word),
    )


def _endpoint(environment: Mapping[str, str], name: str, service: Service) -> str:
    """The address under `name`, in every form that Google's own tools take: with or without scheme, slash, version."""
    text = environment.get(name, "").strip()
    if not text:
        return ""
    if "://" not in text:
        text = f"http://{text}"
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise UserError(f"{name} is {text!r}: write an address such as http://localhost:8080")
    return text.rstrip("/").removesuffix(service.value)


class GoogleCredentials(Protocol):
    """What proves who we are."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers to send. `refused` are those that Google would not take: newer ones are fetched."""
        ...


class AnonymousCredentials:
    """Nobody in particular: for local servers."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """None at all."""
        return {}


def credentials_for(settings: GoogleSettings) -> GoogleCredentials:
    """The credentials that the settings name."""
    match settings.auth:
        case GoogleAuth.ANONYMOUS:
            return AnonymousCredentials()
        case GoogleAuth.DEFAULT:
            # Loaded when it is needed: it brings a cryptographic library with it.
            from setpoint.clients.google.tokens import TokenCredentials

            return TokenCredentials()
        case _:
            assert_never(settings.auth)


class GoogleClient:
    """Calls that succeed, or raise one of our errors. Each waits for its turn within `budgets`.

    `close` lets go of the connections.
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

    async def get(self, call: Call) -> bytes | None:
        """The object, as the bytes that came; None when the service says that there is no such thing."""
        request, answer = await self._send("GET", call)
        return None if is_not_found(answer) else _require_success(request, answer)

    async def post(self, call: Call, body: Json = None) -> bytes:
        """What the service answers to a new object, or to an order."""
        return _require_success(*await self._send("POST", call, body))

    async def put(self, call: Call, body: Json) -> bytes:
        """What the service answers to a whole object."""
        return _require_success(*await self._send("PUT", call, body))

    async def patch(self, call: Call, body: Json) -> bytes:
        """What the service answers to a part of an object."""
        return _require_success(*await self._send("PATCH", call, body))

    async def delete(self, call: Call) -> bytes | None:
        """What the service answers; None when there was no such thing."""
        request, answer = await self._send("DELETE", call)
        return None if is_not_found(answer) else _require_success(request, answer)

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._http.close()

    async def _send(self, method: str, call: Call, body: Json = None) -> tuple[HttpRequest, HttpResponse]:
        url = self._settings.address(call.service) + call.path
        credentials = self._credentials_for(url)
        identity = await credentials.headers()
        request = _request(method, url, identity, body)
        answer = await self._in_turn(call, request)
        if answer.status == 401 and identity:
            request = _request(method, url, await credentials.headers(refused=identity), body)
            answer = await self._in_turn(call, request)
        return request, answer

    async def _in_turn(self, call: Call, request: HttpRequest) -> HttpResponse:
        budget = self._budget_for(call, request)
        with await budget.limiter.acquire(
            budget, current_caller.get() or Caller(default_caller_key(call)), request
        ) as slot:
            answer = await self._http.send(request)
            slot.outcome = outcome_of(answer)
        return answer

    def _budget_for(self, call: Call, request: HttpRequest) -> QuotaBudget:
        charge = quota_key(request.method, call, request.headers.get(QUOTA_PROJECT_HEADER))
        found = self.budgets.find(charge)
        if found is not None:
            return found
        address = self._settings.address(call.service)
        return self.budgets.make(charge, initial_rate(request.method, call, address), address)

    def _credentials_for(self, url: str) -> GoogleCredentials:
        if not url.startswith("https://"):
            # A token goes nowhere where others can read it, and a local server has no use for one.
            return AnonymousCredentials()
        if self._credentials is None:
            self._credentials = credentials_for(self._settings)
        return self._credentials


def _request(method: str, url: str, identity: Mapping[str, str], body: Json) -> HttpRequest:
    if body is None:
        return HttpRequest(method, url, identity)
    return HttpRequest(method, url, {**identity, "Content-Type": "application/json"}, msgspec.json.encode(body))


def _require_success(request: HttpRequest, answer: HttpResponse) -> bytes:
    if 200 <= answer.status < 300:
        return answer.body
    raise error_for_response(request, request.method, answer, datetime.now(UTC))


def decode_response(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    """The body as its type; RemoteUnavailable when it is not: nothing can be concluded from such an answer."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {error}") from error


class _OperationError(Struct):
    code: str = ""
    message: str = ""


class _OperationErrors(Struct):
    errors: list[_OperationError] = []


class SqlOperation(Struct, rename="camel"):
    """An operation, cut to what decides how to go on."""

    name: str
    status: str
    operation_type: str = ""
    target_id: str = ""
    error: _OperationErrors | None = None

    @property
    def is_done(self) -> bool:
        """Whether the work is over and done; RemoteRefused when it is over and failed."""
        if self.status != "DONE":
            return False
        if self.error is not None:
            told = "; ".join(f"{one.code}: {one.message}" for one in self.error.errors) or "it does not say why"
            raise RemoteRefused(f"operation {self.operation_type} on {self.target_id} failed: {told}")
        return True


_operation_decoder: Final = msgspec.json.Decoder(SqlOperation)


def sql_operation(body: bytes) -> SqlOperation:
    """The operation in an answer."""
    return decode_response(_operation_decoder, body, "an operation")


# The most that Cloud SQL and Cloud Storage give.
_PAGE_SIZE: Final = "1000"


class _Page(Struct, frozen=True, rename="camel"):
    items: list[msgspec.Raw] = []
    next_page_token: str = ""


class _Named(Struct, frozen=True):
    name: str


_page_decoder: Final = msgspec.json.Decoder(_Page)
_name_decoder: Final = msgspec.json.Decoder(_Named)


async def list_pages(google: GoogleClient, call: GoogleCall, what: str) -> AsyncGenerator[Sequence[bytes], None]:
    """Everything that the list `call` gives. RemoteRefused when there is no such list; it never goes on for ever."""
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
