"""Client of an API server: calls succeed or raise one of our errors. Objects stay bytes; none is decoded here."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from copy import copy
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from setpoint.clients.authentication import send_authenticated
from setpoint.clients.foreign_errors import LONGEST_REASON, foreign_text
from setpoint.clients.http import (
    DEFAULT_LIMITS,
    HttpClient,
    HttpInterceptor,
    HttpRequest,
    HttpResponse,
    send_retried,
)
from setpoint.clients.http_transport import HeldBytes, HttpLimits, ResponseStream
from setpoint.clients.kubernetes.credentials import ClusterIdentity, KubeconfigCredentials
from setpoint.clients.kubernetes.errors import error_for_response, is_not_found, outcome_of, status_alone
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
    write_query,
    yaml_safe,
)
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED
from setpoint.clients.ratelimit.fair_queue import Caller, current_caller
from setpoint.clients.ratelimit.limiter import CallSlot, QuotaBudget, QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.clients.sockets import AddressPolicy
from setpoint.clients.transport.messages import Headers
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_limits import decode_cut, excess_of_values
from setpoint.core.values.json_types import Json
from setpoint.errors import RemoteError, RemoteExpired, RemoteUnavailable, ResponseTooLarge


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """A page of a list. Items are views of the response: a reference to one keeps the whole page, so copy it.

    Objects of built-in kinds have no apiVersion and kind in a list. `token` continues the list; it is empty on the
    last page. A page that `is_first` begins the list, or begins it again: the pages before it are void. The next page
    is requested with the same `size`: it may be less than was asked for, where the objects are large.
    """

    items: Sequence[Raw]
    resource_version: str
    token: str
    is_first: bool
    size: int = 0

    @property
    def next_page(self) -> PageRequest:
        """The request of the page after this one."""
        return PageRequest(self.size, self.token)


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(name="continue", default="")


class _List(Struct, gc=False):
    metadata: _Metadata
    items: list[Raw] | None = None


_list_decoder: Final = msgspec.json.Decoder(_List)


def decode_page(body: bytes, what: object, paging: PageRequest) -> ObjectPage:
    """The page in the response to `what`. An object that is nested too deeply is cut, so that the others are read."""
    # A page of one object may hold what one object may; an API server sends no more objects than it is asked for.
    excess = excess_of_values(body) if paging.size == 1 else ""
    if excess:
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: it {excess}")
    try:
        found = decode_cut(_list_decoder.decode, body)
    except UNDECODABLE as error:
        why = foreign_text(str(error), longest=LONGEST_REASON)
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {why}") from error
    metadata = found.metadata
    return ObjectPage(found.items or (), metadata.resource_version, metadata.token, not paging.token, paging.size)


# A JSON value, or one that is encoded already: `msgspec.Raw(body)`.
RequestBody: TypeAlias = Json | msgspec.Raw | msgspec.Struct

# For API servers without priority and fairness of their own.
READ_RATE: Final = AimdSettings(start=500, burst=1000, ceiling=5000, growth=50)
WRITE_RATE: Final = AimdSettings(start=300, burst=600, ceiling=2000, growth=50)
# By so much a page is made smaller when it was too large.
_SMALLER_PAGE: Final = 4
_JSON: Final = "application/json"
_WRITE_HEADERS: Final = {
    content_type: {"Accept": _JSON, "Content-Type": content_type}
    for content_type in (_JSON, *(one.value for one in PatchType))
}


def route_of(connection: ClusterConnection) -> tuple[str | None, AddressPolicy | None]:
    """The proxy, and where connections may lead, None for anywhere: what clients share that share connections."""
    addresses = connection.addresses
    return connection.proxy, addresses and addresses.for_host(urlsplit(connection.server).hostname or "")


def http_client_for(
    connection: ClusterConnection,
    interceptor: HttpInterceptor | None = None,
    limits: HttpLimits = DEFAULT_LIMITS,
    held: HeldBytes | None = None,
) -> HttpClient:
    """The HTTP client for a connection."""
    proxy, addresses = route_of(connection)
    return HttpClient(proxy, interceptor, addresses=addresses, limits=limits, held=held)


class KubernetesCredentials(Protocol):
    """Authenticates requests."""

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        """The identity to send. `refused` was answered with 401: another one, or the same if there is no other."""
        ...


class KubernetesClient:
    """Calls that succeed, or raise one of our errors. Each is rate-limited. `close` closes the connections.

    `budget_scope` is whose calls these are, by connection and credentials: clients of one API server share their call
    budgets and their breaker within a scope only. The scope of the process itself is empty.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        credentials: KubernetesCredentials | None = None,
        http: HttpClient | None = None,
        budgets: QuotaBudgets | None = None,
        *,
        budget_scope: str = "",
    ) -> None:
        self.connection = connection
        self.http = http or http_client_for(connection)
        self.budgets = budgets or QuotaBudgets()
        self._budget_scope = budget_scope
        self._credentials = credentials or KubeconfigCredentials(connection)
        self._impersonated = ""
        # The headers of writes, by their content type, for the identity that was used last.
        self._prepared: tuple[ClusterIdentity | None, dict[str, Headers]] = (None, {})
        self._reads = self._budget("reads", READ_RATE)
        self._writes = self._budget("writes", WRITE_RATE)
        self._urgent: QuotaBudget | None = None

    def acting_as(self, user: str) -> "KubernetesClient":
        """The same client on behalf of another user, by impersonation; with call budgets of its own."""
        other = self.in_scope(user)
        other._impersonated = user
        other._prepared = (None, {})
        return other

    def in_scope(self, budget_scope: str) -> "KubernetesClient":
        """The same client and connections, with the call budgets of another scope."""
        other = copy(self)
        other._budget_scope = budget_scope
        other._reads, other._writes = other._budget("reads", READ_RATE), other._budget("writes", WRITE_RATE)
        return other

    def unthrottled(self) -> "KubernetesClient":
        """The same client without rate limiting: for renewals of leases, which expire if they wait for an API server
        that throttles."""
        other = copy(self)
        other._urgent = self._budget("leases", WRITE_RATE)
        return other

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def get(
        self, endpoint: Endpoint, representation: Representation = Representation.WHOLE, *, cached: bool = False
    ) -> bytes | None:
        """The object, as the bytes that came; None when the API server says that it does not exist.

        `cached`: from the cache of the API server, which is faster and may be a moment old.
        """
        path = endpoint.object_path()
        target = f"{path}?resourceVersion=0" if cached else path
        request, response = await self._send("GET", target, {"Accept": representation.value})
        return None if is_not_found(response, endpoint.name) else _require_success(request, response)

    async def list(
        self, endpoint: Endpoint, selector: ObjectSelector = ALL_OBJECTS, paging: PageRequest = FIRST_PAGE
    ) -> ObjectPage:
        """One page, smaller than asked for where it would be too large; RemoteExpired when its token has expired."""
        while True:
            target = with_query(endpoint.collection_path(), selector.query() | paging.query())
            try:
                request, response = await self._send("GET", target, {"Accept": selector.representation.for_lists})
            except ResponseTooLarge:
                if paging.size == 1:
                    raise
                paging = replace(paging, size=max((paging.size or FIRST_PAGE.size) // _SMALLER_PAGE, 1))
            else:
                return decode_page(_require_success(request, response), request, paging)

    async def pages(
        self, endpoint: Endpoint, selector: ObjectSelector = ALL_OBJECTS, size: int = FIRST_PAGE.size
    ) -> AsyncIterator[ObjectPage]:
        """All pages of one consistent list. When its token expires it begins again, with everything on one page."""
        page = await self.list(endpoint, selector, PageRequest(size))
        yield page
        while page.token:
            try:
                page = await self.list(endpoint, selector, page.next_page)
            except RemoteExpired:
                page = await self.list(endpoint, selector, PageRequest(0))
            yield page

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE) -> bytes:
        """The created object; AlreadyExists when its name is taken."""
        return await self._write("POST", f"{endpoint.collection_path()}?{write_query(options)}", body, _JSON)

    async def replace(self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE) -> bytes:
        """The replaced object; RemoteConflict when it is gone, or has another resource version than `body`."""
        return await self._write("PUT", f"{endpoint.object_path()}?{write_query(options)}", body, _JSON)

    async def patch(
        self, endpoint: Endpoint, body: RequestBody, patch_type: PatchType, options: ApiWriteOptions = DEFAULT_WRITE
    ) -> bytes:
        """The patched object; RemoteConflict when it is gone."""
        return await self._write("PATCH", f"{endpoint.object_path()}?{write_query(options)}", body, patch_type.value)

    async def apply(
        self, endpoint: Endpoint, body: RequestBody, options: ApiWriteOptions = DEFAULT_WRITE, *, force: bool = False
    ) -> bytes:
        """Server-side apply: the object with the fields of `body`, created if it does not exist.

        HeldByOthers when another field manager owns some of them; `force` takes these over.
        """
        target = f"{endpoint.object_path()}?{write_query(options, force=force)}"
        return await self._write("PATCH", target, body, PatchType.APPLY.value)

    async def delete(self, endpoint: Endpoint, options: DeleteOptions | None = None) -> bytes | None:
        """The response: the object, if finalizers or its grace period keep it for a while; None when it did not exist.

        RemoteConflict when the preconditions of `options` do not hold.
        """
        headers = _WRITE_HEADERS[_JSON]
        body = msgspec.json.encode((options or DeleteOptions()).body())
        request, response = await self._send("DELETE", endpoint.object_path(), headers, body)
        return None if is_not_found(response, endpoint.name) else _require_success(request, response)

    async def headers(self) -> Mapping[str, str]:
        """The headers that authenticate this client."""
        return (await self._credentials.identity()).headers

    # --- Anything else ------------------------------------------------------------------------------------------------

    async def read(self, path: str, headers: Mapping[str, str]) -> HttpResponse:
        """A successful response to a GET of any path, such as a discovery document."""
        request, response = await self._send("GET", path, headers)
        _require_success(request, response)
        return response

    async def open(self, target: str, representation: Representation, idle_timeout: float) -> ResponseStream:
        """A successful response as a stream; it ends after `idle_timeout` seconds without a byte at the latest."""
        headers = {"Accept": representation.value}

        def open_stream(identity: ClusterIdentity) -> Awaitable[ResponseStream | HttpResponse]:
            return self._open(self._request("GET", target, identity, headers), idle_timeout)

        opened = await send_authenticated(self._credentials.identity, open_stream)
        if isinstance(opened, HttpResponse):
            raise error_for_response(HttpRequest("GET", self.connection.server + target), opened)
        return opened

    async def close(self) -> None:
        """Closes the connections."""
        await self.http.close()

    # --- Sending ------------------------------------------------------------------------------------------------------

    async def _write(self, method: str, target: str, body: RequestBody, content_type: str) -> bytes:
        headers = _WRITE_HEADERS[content_type]
        encoded = msgspec.json.encode(body)
        if content_type == PatchType.APPLY.value:
            encoded = yaml_safe(encoded)
        return _require_success(*await self._send(method, target, headers, encoded))

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[HttpRequest, HttpResponse]:
        sent: list[HttpRequest] = []

        def send(identity: ClusterIdentity) -> Awaitable[HttpResponse]:
            sent.append(self._request(method, target, identity, headers, body))
            return send_retried(self._send_limited, sent[-1], outcome_of)

        try:
            response = await send_authenticated(self._credentials.identity, send)
        except RemoteError as error:
            if not sent:
                self.http.report_unsent(HttpRequest(method, self.connection.server + target, headers, body), error)
            raise
        return sent[-1], response

    def _request(
        self, method: str, target: str, identity: ClusterIdentity, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpRequest:
        sent = self._headers_with(identity, headers)
        return HttpRequest(method, self.connection.server + target, sent, body, tls=identity.tls)

    def _headers_with(self, identity: ClusterIdentity, headers: Mapping[str, str]) -> Headers:
        """The headers of a request; those of writes are made once for each identity."""
        if self._prepared[0] is not identity:
            self._prepared = identity, {}
        prepared = self._prepared[1]
        kind = headers.get("Content-Type", "")
        found = prepared.get(kind) if headers is _WRITE_HEADERS.get(kind) else None
        if found is None:
            own = Headers.of(identity.headers)
            if self._impersonated:
                # Nothing that a kubeconfig says about impersonation is left: groups follow from the user.
                own = own.without("Impersonate-").replaced({"Impersonate-User": self._impersonated})
            found = own.replaced(headers)
            if headers is _WRITE_HEADERS.get(kind):
                prepared[kind] = found
        return found

    async def _send_limited(self, request: HttpRequest) -> HttpResponse:
        with await self._slot(request) as slot:
            response = self._permitted(await self.http.send(request))
            slot.outcome = outcome_of(response)
        return response

    def _permitted(self, response: HttpResponse) -> HttpResponse:
        """What may be used of a response: of an error of a server that a tenant named, not its body."""
        is_foreign = self.connection.addresses is not None and not 200 <= response.status < 300
        return status_alone(response) if is_foreign else response

    async def _slot(self, request: HttpRequest) -> CallSlot:
        if self._urgent is not None:
            return self._urgent.limiter.acquire_now(self._urgent, _caller_of(request), request)
        budget = self._reads if request.method == "GET" else self._writes
        return await budget.limiter.acquire(budget, _caller_of(request), request)

    async def _open(self, request: HttpRequest, idle_timeout: float) -> ResponseStream | HttpResponse:
        """A stream; its slot is released when it begins, since it may never end. An error response is read whole."""
        budget = self._reads
        with await budget.limiter.acquire(budget, _caller_of(request), request) as slot:
            stream = await self.http.open(request, idle_timeout)
            if stream.status == 200:
                slot.outcome = RESPONDED
                return stream
            try:
                response = self._permitted(HttpResponse(stream.status, stream.headers, await stream.whole()))
            finally:
                stream.close()
            slot.outcome = outcome_of(response)
            return response

    def _budget(self, quota: str, settings: AimdSettings) -> QuotaBudget:
        service = f"kubernetes {urlsplit(self.connection.server).netloc} {self._budget_scope}".rstrip()
        key = QuotaKey(service, "", quota)
        return self.budgets.find(key) or self.budgets.make(key, settings, self.connection.server)


def _caller_of(request: HttpRequest) -> Caller:
    return current_caller.get() or Caller(request.url)


def _require_success(request: HttpRequest, response: HttpResponse) -> bytes:
    if not 200 <= response.status < 300:
        raise error_for_response(request, response)
    # The list of OpenAPI documents comes as plain text. Headers are decoded when they are looked at.
    if not response.body.startswith(b"{") and "json" not in response.headers.get("Content-Type", ""):
        raise RemoteUnavailable(
            f"{request}: the answer is not what it should be: it is no JSON, but another server's page"
        )
    return response.body
