"""The API server as its administrator, asked without the client of the product."""

import json
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import aiohttp

from setpoint.clients.sockets import SocketFactory
from tests.cluster.access import Access

Tree: TypeAlias = dict[str, Any]

_MERGE: Final = "application/merge-patch+json"
_NO_END: Final = aiohttp.ClientTimeout(total=None)


class Api:
    """Enter it to use it."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._sockets = SocketFactory()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._access.tls(), socket_factory=self._sockets)
        self._session = aiohttp.ClientSession(connector=connector, timeout=_NO_END)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()
        await self._sockets.close_all()

    async def get(self, path: str) -> Tree:
        """What is there; AssertionError for anything but an answer."""
        return await self._ask("GET", path)

    async def create(self, path: str, body: Tree) -> Tree:
        """The new object."""
        return await self._ask("POST", path, body, "application/json")

    async def change(self, path: str, patch: Tree) -> Tree:
        """The object after a merge patch."""
        return await self._ask("PATCH", path, patch, _MERGE)

    async def watch(self, path: str, since: str) -> AsyncIterator[Tree]:
        """Every change after a resource version, until the API server ends the watch."""
        assert self._session is not None
        url = f"{self._access.url}{path}?watch=true&resourceVersion={since}"
        async with self._session.get(url) as answer:
            async for line in answer.content:
                yield json.loads(line)

    async def _ask(self, method: str, path: str, body: Tree | None = None, content_type: str = "") -> Tree:
        assert self._session is not None
        headers = {"Content-Type": content_type} if content_type else {}
        data = None if body is None else json.dumps(body)
        url = f"{self._access.url}{path}"
        async with self._session.request(method, url, data=data, headers=headers) as answer:
            found: Tree = await answer.json()
            assert answer.status < 300, found
            return found
