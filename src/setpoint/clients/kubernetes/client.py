"""Client of an API server: calls succeed or raise one of our errors. Objects stay bytes; none is decoded here."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from multidict import CIMultiDict

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse, ResponseStream
from setpoint.clients.kubernetes.credentials import ClusterIdentity, KubeconfigCredentials
from setpoint.clients.kubernetes.errors import error_for_response, is_not_found, outcome_of
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import (
    ALL_OBJECTS,
    DEFAULT_WRITE,
    FIRST_PAGE,
    ApiWriteOptions,
    DeleteOptions,
    Endpoint,
    ObjectSelector,
    PageRequest,
    PatchType,
    Representation,
    with_query,
)
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import CallSlot, QuotaBudget, QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.core.values.json_types import Json
from setpoint.errors import RemoteExpired, RemoteUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Objects, each as the bytes that came: `bytes(item)`. While one is kept, so are all of its page: keep a copy.

    Objects of a kind that Kubernetes itself brings have no apiVersion and kind in a list. `token` leads to the next
    page; there is none after the last. A page that `is_first` begins the list, or begins it anew: what the pages
    before it said is void.
    """

    items: Sequence[Raw]
    resource_version: str
    token: str
    is_first: bool


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(name="continue", default="")


class _List(Struct, gc=False):
    metadata: _Metadata
    items: list[Raw] | None = None


_list_decoder: Final = msgspec.json.Decoder(_List)


def decode_page(body: bytes, what: object, *, is_first: bool) -> ObjectPage:
    """The page that came as an answer to `what`."""
    found = decode_response(_list_decoder, body, what)
    return ObjectPage(found.items or (), found.metadata.resource_version, found.metadata.token, is_first)


def decode_response(decoder: "msgspec.json.Decoder[T]", body: bytes | Raw, what: object) -> T:
    """The body as its type; RemoteUnavailable when it is not: nothing can be concluded from such an answer."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {error}") from error


# A tree, or what is encoded already: `msgspec.Raw(body)`.
RequestBody: TypeAlias = Json | msgspec.Raw | msgspec.Struct

# An API server shares out its own time among those who call; these are for one that does not.
READ_RATE: Final = AimdSettings(start=500, burst=1000, ceiling=5000, growth=50)
WRITE_RATE: Final = AimdSettings(start=300, burst=600, ceiling=2000, growth=50)
_JSON: Final = "application/json"
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class KubernetesCredentials(Protocol):
    """What proves who we are."""

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        """Who we are. `refused` is what the API server would not take: another one, or the same if there is none."""
        ...


class KubernetesClient:
    """Each call waits for its turn within `budgets`. `close` lets go of the connections."""

    def __init__(
        self,
        connection: ClusterConnection,
        credentials: KubernetesCredentials | None = None,
        http: HttpClient | None = None,
        budgets: QuotaBudgets | None = None,
    ) -> None:
        self.connection = connection
        self.http = http or HttpClient(connection.proxy)
        self.budgets = budgets or QuotaBudgets()
        self._credentials = credentials or KubeconfigCredentials(connection)
        self._reads = self._budget("reads", READ_RATE)
        self._writes = self._budget("writes", WRITE_RATE)
        self._urgent: QuotaBudget | None = None

    def at_once(self) -> "KubernetesClient":
        """The same for calls that do not wait for a turn: those by which one shows that one is there.

        Were they to wait until a cluster that has too much to do wants to hear of us again, it would be too late.
        """
        other = copy(self)
        other._urgent = self._budget("leases", WRITE_RATE)
        return other

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def get(
        self, endpoint: Endpoint, form: Representation = Representation.WHOLE, *, cached: bool = False
    ) -> bytes | None:
        """The object, as the bytes that came; None when the API server says that there is no such thing.

        What is `cached` there comes sooner, and may be of a moment ago.
        """
        path = endpoint.object_path()
        target = f"{path}?resourceVersion=0" if cached else path
        request, answer = await self._send("GET", target, {"Accept": form.value})
        return None if is_not_found(answer, endpoint.name) else _require_success(request, answer)

    async def list(
        self, endpoint: Endpoint, selection: ObjectSelector = ALL_OBJECTS, paging: PageRequest = FIRST_PAGE
    ) -> ObjectPage:
        """One page; RemoteExpired when the one before was too long ago."""
        target = with_query(endpoint.collection_path(), selection.query() | paging.query())
        request, answer = await self._send("GET", target, {"Accept": selection.form.for_lists})
        return decode_page(_require_success(request, answer), request, is_first=not paging.token)

    async def pages(
        self, endpoint: Endpoint, selection: ObjectSelector = ALL_OBJECTS, size: int = FIRST_PAGE.size
    ) -> AsyncIterator[ObjectPage]:
        """All pages, as of one moment. When that is too long ago it begins anew, with all on one page."""
        page = await self.list(endpoint, selection, PageRequest(size))
        yield page
        while page.token:
            try:
                page = await self.list(endpoint, selection, PageRequest(size, page.token))
            except RemoteExpired:
                page = await self.list(endpoint, selection, PageRequest(0))
            yield page

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE) -> bytes:
        """The object as it was made; AlreadyExists when its name is taken."""
        return await self._write("POST", with_query(endpoint.collection_path(), options.query()), body, _JSON)

    async def replace(self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE) -> bytes:
        """The object as it is now; RemoteConflict when it is gone, or has another resource version than `body`."""
        return await self._write("PUT", with_query(endpoint.object_path(), options.query()), body, _JSON)

    async def patch(
        self, endpoint: Endpoint, body: RequestBody, meaning: PatchType, options: ApiWriteOptions = DEFAULT_WRITE
    ) -> bytes:
        """The object as it is now; RemoteConflict when it is gone."""
        target = with_query(endpoint.object_path(), options.query())
        return await self._write("PATCH", target, body, meaning.value)

    async def apply(
        self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE, *, force: bool = False
    ) -> bytes:
        """The object with the fields of `body`, made if need be; HeldByOthers when some belong to somebody else.

        With `force` those become ours.
        """
        query = options.query() | ({"force": "true"} if force else {})
        return await self._write("PATCH", with_query(endpoint.object_path(), query), body, PatchType.APPLY.value)

    async def delete(self, endpoint: Endpoint, options: DeleteOptions | None = None) -> bytes | None:
        """What the API server answers: the object, when it is still there for a while; None when there was none.

        RemoteConflict when it is another one than `options` mean.
        """
        headers = {"Accept": _JSON, "Content-Type": _JSON}
        body = msgspec.json.encode((options or DeleteOptions()).body())
        request, answer = await self._send("DELETE", endpoint.object_path(), headers, body)
        return None if is_not_found(answer, endpoint.name) else _require_success(request, answer)

    # --- Anything else ------------------------------------------------------------------------------------------------

    async def read(self, path: str, headers: Mapping[str, str]) -> HttpResponse:
        """A good answer, and what came with it."""
        request, answer = await self._send("GET", path, headers)
        _require_success(request, answer)
        return answer

    async def open(self, target: str, form: Representation, idle_timeout: float) -> ResponseStream:
        """A good answer as it begins; its end comes after `silence` seconds without a byte at the latest."""
        identity = await self._credentials.identity()
        request = self._request("GET", target, identity, {"Accept": form.value})
        opened = await self._open(request, idle_timeout)
        if opened.status == 401:
            again = await self._credentials.identity(refused=identity)
            if again is not identity:
                request = self._request("GET", target, again, {"Accept": form.value})
                opened = await self._open(request, idle_timeout)
        if isinstance(opened, HttpResponse):
            raise error_for_response(request, opened)
        return opened

    async def close(self) -> None:
        """Lets go of the connections."""
        await self.http.close()

    # --- Sending ------------------------------------------------------------------------------------------------------

    async def _write(self, method: str, target: str, body: RequestBody, content_type: str) -> bytes:
        headers = {"Accept": _JSON, "Content-Type": content_type}
        encoded = msgspec.json.encode(body)
        if content_type == PatchType.APPLY.value:
            encoded = _yaml_safe(encoded)
        return _require_success(*await self._send(method, target, headers, encoded))

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[HttpRequest, HttpResponse]:
        identity = await self._credentials.identity()
        request = self._request(method, target, identity, headers, body)
        answer = await self._in_turn(request)
        if answer.status == 401:
            again = await self._credentials.identity(refused=identity)
            if again is not identity:
                request = self._request(method, target, again, headers, body)
                answer = await self._in_turn(request)
        return request, answer

    def _request(
        self, method: str, target: str, identity: ClusterIdentity, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpRequest:
        both = CIMultiDict(identity.headers)
        both.update(headers)
        return HttpRequest(method, self.connection.server + target, both, body, tls=identity.tls)

    async def _in_turn(self, request: HttpRequest) -> HttpResponse:
        with await self._turn(request) as slot:
            answer = await self.http.send(request)
            slot.outcome = outcome_of(answer)
        return answer

    async def _turn(self, request: HttpRequest) -> CallSlot:
        if self._urgent is not None:
            return self._urgent.limiter.acquire_now(self._urgent, _caller_of(request), request)
        budget = self._reads if request.method == "GET" else self._writes
        return await budget.limiter.acquire(budget, _caller_of(request), request)

    async def _open(self, request: HttpRequest, idle_timeout: float) -> ResponseStream | HttpResponse:
        """The turn is over when a good answer begins: it may go on for ever. Any other is read to its end."""
        budget = self._reads
        with await budget.limiter.acquire(budget, _caller_of(request), request) as slot:
            stream = await self.http.open(request, idle_timeout)
            if stream.status == 200:
                slot.outcome = RESPONDED
                return stream
            try:
                answer = await stream.whole()
            finally:
                stream.close()
            slot.outcome = outcome_of(answer)
            return answer

    def _budget(self, quota: str, pace: AimdSettings) -> QuotaBudget:
        charge = QuotaKey(f"kubernetes {urlsplit(self.connection.server).netloc}", "", quota)
        return self.budgets.find(charge) or self.budgets.make(charge, pace, self.connection.server)


def _yaml_safe(encoded: bytes) -> bytes:
    """JSON that a reader of YAML takes for the same: it does not have some characters, and breaks lines at others."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()


def _caller_of(request: HttpRequest) -> Caller:
    return current_caller.get() or Caller(request.url)


def _require_success(request: HttpRequest, answer: HttpResponse) -> bytes:
    if not 200 <= answer.status < 300:
        raise error_for_response(request, answer)
    if "json" not in answer.headers.get("Content-Type", ""):
        raise RemoteUnavailable(
            f"{request}: the answer is not what it should be: it is no JSON, but another server's page"
        )
    return answer.body
