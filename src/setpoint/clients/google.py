"""Google's services: where they are, who we are to them, and what their answers mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol, TypeVar, assert_never
from urllib.parse import urlsplit

import msgspec

from setpoint.clients.budgets import Budgets
from setpoint.clients.callers import Caller, caller
from setpoint.clients.gate import Budget
from setpoint.clients.google_calls import Call as Call
from setpoint.clients.google_calls import Service as Service
from setpoint.clients.google_errors import ending_of, is_absence, refusal
from setpoint.clients.google_quotas import QUOTA_PROJECT, charge_for, pace_for, subject_of
from setpoint.clients.http import Answer, HttpClient, Request
from setpoint.core.values import Json
from setpoint.errors import RemoteUnavailable, UserError

T = TypeVar("T")

AUTH: Final = "SETPOINT_GCP_AUTH"
SQL_ENDPOINT: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"
STORAGE_ENDPOINT: Final = "STORAGE_EMULATOR_HOST"


class Auth(StrEnum):
    """Who we are: Application Default Credentials, or nobody."""

    DEFAULT = "default"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """Where the services are, and who we are to them."""

    sql: str = "https://sqladmin.googleapis.com"
    storage: str = "https://storage.googleapis.com"
    auth: Auth = Auth.DEFAULT

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
    word = environment.get(AUTH) or Auth.DEFAULT.value
    if word not in tuple(Auth):
        raise UserError(f"{AUTH} is {word!r}: write {' or '.join(Auth)}")
    return GoogleSettings(
        _address(environment, SQL_ENDPOINT, Service.SQL) or known.sql,
        _address(environment, STORAGE_ENDPOINT, Service.STORAGE) or known.storage,
        Auth(word),
    )


def _address(environment: Mapping[str, str], name: str, service: Service) -> str:
    """The address under `name`, in every form that Google's own tools take: with or without scheme, slash, version."""
    text = environment.get(name, "").strip()
    if not text:
        return ""
    if "://" not in text:
        text = f"http://{text}"
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise UserError(f"{name} is {text!r}: write an address such as http://localhost:8080")
    return text.rstrip("/").removesuffix(service.value)


class Credentials(Protocol):
    """What proves who we are."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers to send. `refused` are those that Google would not take: newer ones are fetched."""
        ...


class Anonymous:
    """Nobody in particular: for local servers."""

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """None at all."""
        return {}


def credentials_for(settings: GoogleSettings) -> Credentials:
    """The credentials that the settings name."""
    match settings.auth:
        case Auth.ANONYMOUS:
            return Anonymous()
        case Auth.DEFAULT:
            # Loaded when it is needed: it brings a cryptographic library with it.
            from setpoint.clients.google_auth import TokenCredentials

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
        credentials: Credentials | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self.budgets = budgets or Budgets()
        self._http = http
        self._settings = settings
        self._credentials = credentials

    async def get(self, call: Call) -> bytes | None:
        """The object, as the bytes that came; None when the service says that there is no such thing."""
        request, answer = await self._send("GET", call)
        return None if is_absence(answer) else _succeeded(request, answer)

    async def post(self, call: Call, body: Json = None) -> bytes:
        """What the service answers to a new object, or to an order."""
        return _succeeded(*await self._send("POST", call, body))

    async def put(self, call: Call, body: Json) -> bytes:
        """What the service answers to a whole object."""
        return _succeeded(*await self._send("PUT", call, body))

    async def patch(self, call: Call, body: Json) -> bytes:
        """What the service answers to a part of an object."""
        return _succeeded(*await self._send("PATCH", call, body))

    async def delete(self, call: Call) -> bytes | None:
        """What the service answers; None when there was no such thing."""
        request, answer = await self._send("DELETE", call)
        return None if is_absence(answer) else _succeeded(request, answer)

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._http.close()

    async def _send(self, method: str, call: Call, body: Json = None) -> tuple[Request, Answer]:
        url = self._settings.address(call.service) + call.path
        credentials = self._credentials_for(url)
        identity = await credentials.headers()
        request = _request(method, url, identity, body)
        answer = await self._in_turn(call, request)
        if answer.status == 401 and identity:
            request = _request(method, url, await credentials.headers(refused=identity), body)
            answer = await self._in_turn(call, request)
        return request, answer

    async def _in_turn(self, call: Call, request: Request) -> Answer:
        budget = self._budget_for(call, request)
        with await budget.gate.turn(budget, caller.get() or Caller(subject_of(call)), request) as turn:
            answer = await self._http.send(request)
            turn.ending = ending_of(answer)
        return answer

    def _budget_for(self, call: Call, request: Request) -> Budget:
        charge = charge_for(request.method, call, request.headers.get(QUOTA_PROJECT))
        found = self.budgets.find(charge)
        if found is not None:
            return found
        address = self._settings.address(call.service)
        return self.budgets.make(charge, pace_for(request.method, call, address), address)

    def _credentials_for(self, url: str) -> Credentials:
        if not url.startswith("https://"):
            # A token goes nowhere where others can read it, and a local server has no use for one.
            return Anonymous()
        if self._credentials is None:
            self._credentials = credentials_for(self._settings)
        return self._credentials


def _request(method: str, url: str, identity: Mapping[str, str], body: Json) -> Request:
    if body is None:
        return Request(method, url, identity)
    return Request(method, url, {**identity, "Content-Type": "application/json"}, msgspec.json.encode(body))


def _succeeded(request: Request, answer: Answer) -> bytes:
    if 200 <= answer.status < 300:
        return answer.body
    raise refusal(request, request.method, answer, datetime.now(UTC))


def decoded(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    """The body as its type; RemoteUnavailable when it is not: nothing can be concluded from such an answer."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {error}") from error
