"""The shop: a small REST service that keeps widgets, in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from tests.cli.programs import DEADLINE

TOKEN: Final = "shop-token-of-this-test"


class Shop:
    """The widgets by name, the requests so far, and what is wrong with the next ones."""

    def __init__(self) -> None:
        self.widgets: dict[str, dict[str, Any]] = {}
        self.passwords: dict[str, str] = {}
        self.stickers: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.tokens = {TOKEN}
        self.address = ""
        # The statuses, with headers, that the next requests are answered with.
        self.failures: list[tuple[int, dict[str, str]]] = []
        # Called after each write, before its answer is sent.
        self.after_write: Callable[[], None] = lambda: None
        self._made = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._closing = ExitStack()

    def clear(self) -> None:
        """An empty shop."""
        self.widgets, self.passwords, self.stickers, self.requests, self.failures = {}, {}, {}, [], []
        self.tokens, self.after_write = {TOKEN}, lambda: None

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The requests that were no reads."""
        return [one for one in self.requests if one[0] != "GET"]

    def __enter__(self) -> Self:
        self._thread.start()
        self.address = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(DEADLINE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(DEADLINE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    async def _start(self) -> str:
        app = web.Application(middlewares=[self._guarded])
        app.router.add_post("/widgets", self._post)
        app.router.add_get("/widgets", self._list)
        app.router.add_get("/widgets/{name}", self._get)
        app.router.add_put("/widgets/{name}", self._put)
        app.router.add_delete("/widgets/{name}", self._delete)
        app.router.add_get("/stickers", self._all_stickers)
        app.router.add_route("*", "/stickers/{name}", self._sticker)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}"

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        if self.failures:
            status, headers = self.failures.pop(0)
            return web.json_response({"error": {"message": "the shop is closed"}}, status=status, headers=headers)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return web.json_response({"message": "who are you?"}, status=401)
        response: web.StreamResponse = await handler(request)
        if request.method != "GET":
            # Not in this loop: other requests go on.
            await asyncio.get_running_loop().run_in_executor(None, self.after_write)
        return response

    async def _get(self, request: web.Request) -> web.Response:
        found = self.widgets.get(request.match_info["name"])
        return _not_there() if found is None else web.json_response(found)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"items": list(self.widgets.values())})

    async def _post(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["name"] in self.widgets:
            return web.json_response({"message": "there is one already"}, status=409)
        self._made += 1
        return self._keep(body["name"], body, f"S-{self._made}", 201)

    async def _put(self, request: web.Request) -> web.Response:
        name, body = request.match_info["name"], await request.json()
        before = self.widgets.get(name)
        return _not_there() if before is None else self._keep(name, body, before["serial"], 200)

    async def _delete(self, request: web.Request) -> web.Response:
        found = self.widgets.pop(request.match_info["name"], None)
        return _not_there() if found is None else web.Response(status=204)

    async def _all_stickers(self, request: web.Request) -> web.Response:
        return web.json_response(self.stickers)

    async def _sticker(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.method == "PUT":
            self.stickers[name] = await request.json()
        elif name not in self.stickers:
            return _not_there()
        return web.json_response(self.stickers.pop(name) if request.method == "DELETE" else self.stickers[name])

    def _keep(self, name: str, body: dict[str, Any], serial: str, status: int) -> web.Response:
        if "password" in body:
            self.passwords[name] = body.pop("password")
        self.widgets[name] = {"colour": "grey", **body, "name": name, "serial": serial}
        return web.json_response(self.widgets[name], status=status)


def _not_there() -> web.Response:
    return web.json_response({"message": "there is no such widget"}, status=404)
