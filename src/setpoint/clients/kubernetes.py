"""A cluster's API server: calls that succeed, or raise one of our errors. Objects are bytes: none is decoded here."""

import re
from collections.abc import AsyncIterator, Mapping
from copy import copy
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import msgspec
from multidict import CIMultiDict

from setpoint.clients.budgets import Budgets, Charge
from setpoint.clients.callers import Caller, caller
from setpoint.clients.endings import ANSWERED
from setpoint.clients.gate import Budget, Turn
from setpoint.clients.http import Answer, HttpClient, Request, Stream
from setpoint.clients.kube_connection import Connection
from setpoint.clients.kube_credentials import Identity, KubeCredentials
from setpoint.clients.kube_endpoints import (
    EVERYTHING,
    FIRST_PAGE,
    PLAINLY,
    Deletion,
    Endpoint,
    Form,
    Paging,
    Patch,
    Selection,
    Write,
    with_query,
)
from setpoint.clients.kube_errors import ending_of, is_absence, refusal
from setpoint.clients.kube_pages import Page, page_in
from setpoint.clients.rate import Pace
from setpoint.core.values import Json
from setpoint.errors import RemoteExpired, RemoteUnavailable

# A tree, or what is encoded already: `msgspec.Raw(body)`.
Body: TypeAlias = Json | msgspec.Raw | msgspec.Struct

# An API server shares out its own time among those who call; these are for one that does not.
READS: Final = Pace(start=500, burst=1000, ceiling=5000, growth=50)
WRITES: Final = Pace(start=300, burst=600, ceiling=2000, growth=50)
_JSON: Final = "application/json"
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class Credentials(Protocol):
    """What proves who we are."""

    async def identity(self, refused: Identity | None = None) -> Identity:
        """Who we are. `refused` is what the API server would not take: another one, or the same if there is none."""
        ...


class KubernetesClient:
    """Each call waits for its turn within `budgets`. `close` lets go of the connections."""

    def __init__(
        self,
        connection: Connection,
        credentials: Credentials | None = None,
        http: HttpClient | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self.connection = connection
        self.http = http or HttpClient(connection.proxy)
        self.budgets = budgets or Budgets()
        self._credentials = credentials or KubeCredentials(connection)
        self._reads = self._budget("reads", READS)
        self._writes = self._budget("writes", WRITES)
        self._urgent: Budget | None = None

    def at_once(self) -> "KubernetesClient":
        """The same for calls that do not wait for a turn: those by which one shows that one is there.

        Were they to wait until a cluster that has too much to do wants to hear of us again, it would be too late.
        """
        other = copy(self)
        other._urgent = self._budget("leases", WRITES)
        return other

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def get(self, endpoint: Endpoint, form: Form = Form.WHOLE, *, cached: bool = False) -> bytes | None:
        """The object, as the bytes that came; None when the API server says that there is no such thing.

        What is `cached` there comes sooner, and may be of a moment ago.
        """
        path = endpoint.object_path()
        target = f"{path}?resourceVersion=0" if cached else path
        request, answer = await self._send("GET", target, {"Accept": form.value})
        return None if is_absence(answer, endpoint.name) else _succeeded(request, answer)

    async def list(self, endpoint: Endpoint, selection: Selection = EVERYTHING, paging: Paging = FIRST_PAGE) -> Page:
        """One page; RemoteExpired when the one before was too long ago."""
        target = with_query(endpoint.collection_path(), selection.query() | paging.query())
        request, answer = await self._send("GET", target, {"Accept": selection.form.of_lists})
        return page_in(_succeeded(request, answer), request, is_first=not paging.token)

    async def pages(
        self, endpoint: Endpoint, selection: Selection = EVERYTHING, size: int = FIRST_PAGE.size
    ) -> AsyncIterator[Page]:
        """All pages, as of one moment. When that is too long ago it begins anew, with all on one page."""
        page = await self.list(endpoint, selection, Paging(size))
        yield page
        while page.token:
            try:
                page = await self.list(endpoint, selection, Paging(size, page.token))
            except RemoteExpired:
                page = await self.list(endpoint, selection, Paging(0))
            yield page

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, endpoint: Endpoint, body: Body, options: Write = PLAINLY) -> bytes:
        """The object as it was made; AlreadyExists when its name is taken."""
        return await self._write("POST", with_query(endpoint.collection_path(), options.query()), body, _JSON)

    async def replace(self, endpoint: Endpoint, body: Body, options: Write = PLAINLY) -> bytes:
        """The object as it is now; RemoteConflict when it is gone, or has another resource version than `body`."""
        return await self._write("PUT", with_query(endpoint.object_path(), options.query()), body, _JSON)

    async def patch(self, endpoint: Endpoint, body: Body, meaning: Patch, options: Write = PLAINLY) -> bytes:
        """The object as it is now; RemoteConflict when it is gone."""
        target = with_query(endpoint.object_path(), options.query())
        return await self._write("PATCH", target, body, meaning.value)

    async def apply(self, endpoint: Endpoint, body: Body, options: Write = PLAINLY, *, force: bool = False) -> bytes:
        """The object with the fields of `body`, made if need be; HeldByOthers when some belong to somebody else.

        With `force` those become ours.
        """
        query = options.query() | ({"force": "true"} if force else {})
        return await self._write("PATCH", with_query(endpoint.object_path(), query), body, Patch.APPLY.value)

    async def delete(self, endpoint: Endpoint, options: Deletion | None = None) -> bytes | None:
        """What the API server answers: the object, when it is still there for a while; None when there was none.

        RemoteConflict when it is another one than `options` mean.
        """
        headers = {"Accept": _JSON, "Content-Type": _JSON}
        body = msgspec.json.encode((options or Deletion()).body())
        request, answer = await self._send("DELETE", endpoint.object_path(), headers, body)
        return None if is_absence(answer, endpoint.name) else _succeeded(request, answer)

    # --- Anything else ------------------------------------------------------------------------------------------------

    async def read(self, path: str, headers: Mapping[str, str]) -> Answer:
        """A good answer, and what came with it."""
        request, answer = await self._send("GET", path, headers)
        _succeeded(request, answer)
        return answer

    async def open(self, target: str, form: Form, silence: float) -> Stream:
        """A good answer as it begins; its end comes after `silence` seconds without a byte at the latest."""
        identity = await self._credentials.identity()
        request = self._request("GET", target, identity, {"Accept": form.value})
        opened = await self._open(request, silence)
        if opened.status == 401:
            again = await self._credentials.identity(refused=identity)
            if again is not identity:
                request = self._request("GET", target, again, {"Accept": form.value})
                opened = await self._open(request, silence)
        if isinstance(opened, Answer):
            raise refusal(request, opened)
        return opened

    async def close(self) -> None:
        """Lets go of the connections."""
        await self.http.close()

    # --- Sending ------------------------------------------------------------------------------------------------------

    async def _write(self, method: str, target: str, body: Body, content_type: str) -> bytes:
        headers = {"Accept": _JSON, "Content-Type": content_type}
        encoded = msgspec.json.encode(body)
        if content_type == Patch.APPLY.value:
            encoded = _as_yaml(encoded)
        return _succeeded(*await self._send(method, target, headers, encoded))

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[Request, Answer]:
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
        self, method: str, target: str, identity: Identity, headers: Mapping[str, str], body: bytes | None = None
    ) -> Request:
        both = CIMultiDict(identity.headers)
        both.update(headers)
        return Request(method, self.connection.server + target, both, body, tls=identity.tls)

    async def _in_turn(self, request: Request) -> Answer:
        with await self._turn(request) as turn:
            answer = await self.http.send(request)
            turn.ending = ending_of(answer)
        return answer

    async def _turn(self, request: Request) -> Turn:
        if self._urgent is not None:
            return self._urgent.gate.turn_at_once(self._urgent, _caller_of(request), request)
        budget = self._reads if request.method == "GET" else self._writes
        return await budget.gate.turn(budget, _caller_of(request), request)

    async def _open(self, request: Request, silence: float) -> Stream | Answer:
        """The turn is over when a good answer begins: it may go on for ever. Any other is read to its end."""
        budget = self._reads
        with await budget.gate.turn(budget, _caller_of(request), request) as turn:
            stream = await self.http.open(request, silence)
            if stream.status == 200:
                turn.ending = ANSWERED
                return stream
            try:
                answer = await stream.whole()
            finally:
                stream.close()
            turn.ending = ending_of(answer)
            return answer

    def _budget(self, quota: str, pace: Pace) -> Budget:
        charge = Charge(f"kubernetes {urlsplit(self.connection.server).netloc}", "", quota)
        return self.budgets.find(charge) or self.budgets.make(charge, pace, self.connection.server)


def _as_yaml(encoded: bytes) -> bytes:
    """JSON that a reader of YAML takes for the same: it does not have some characters, and breaks lines at others."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()


def _caller_of(request: Request) -> Caller:
    return caller.get() or Caller(request.url)


def _succeeded(request: Request, answer: Answer) -> bytes:
    if not 200 <= answer.status < 300:
        raise refusal(request, answer)
    if "json" not in answer.headers.get("Content-Type", ""):
        raise RemoteUnavailable(
            f"{request}: the answer is not what it should be: it is no JSON, but another server's page"
        )
    return answer.body
