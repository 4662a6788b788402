"""A dashboard on a session, served on loopback in the loop of the test, and a browser's requests to it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

import setpoint
from setpoint.dashboard.access.sessions import OneTimeTokens
from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.actions import ACTIONS, SessionActions
from setpoint.dashboard.api.models import DashboardSource
from setpoint.dashboard.backend import Backend, open_backend
from setpoint.dashboard.server import Dashboard, DashboardOptions, serving
from setpoint.dashboard.stream import StreamLimits
from setpoint.runtime.limited_server import ListenAddress

WRITE: Final = {"X-Setpoint": "1", "Content-Type": "application/json"}
LOOPBACK: Final = ListenAddress("127.0.0.1", 0)
# Without waiting between batches: tests do not depend on time.
AT_ONCE: Final = StreamLimits(rows_seconds=0.0, summary_seconds=0.0)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: status, headers, and the body as text."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The code of the error."""
        found: str = self.body["error"]["code"]
        return found


@dataclass(slots=True)
class Page:
    """A dashboard, and a browser that talks to it."""

    url: str
    backend: Backend
    browser: aiohttp.ClientSession
    # The one-time tokens that were printed.
    tokens: list[str] = field(default_factory=list)

    async def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """The answer to a request; `path` is below the URL of the server."""
        data = None if body is None else json.dumps(body)
        async with self.browser.request(method, f"{self.url}{path}", data=data, headers=headers) as response:
            return Reply(response.status, response.headers.copy(), await response.text())

    async def get(self, path: str) -> Any:
        """The body of a successful answer of the API."""
        found = await self.send("GET", f"/api/v1{path}")
        assert found.status == 200, (path, found)
        return found.body

    async def post(self, path: str, body: object = None) -> Reply:
        """The answer to a POST to the API, as the page sends it."""
        return await self.send("POST", f"/api/v1{path}", {} if body is None else body, WRITE)

    async def sign_in(self) -> Reply:
        """Signs in by the newest token."""
        return await self.post("/login", {"token": self.tokens[-1]})


@asynccontextmanager
async def dashboard_on(
    session: setpoint.Session,
    *,
    is_signed_in: bool = True,
    options: DashboardOptions | None = None,
    limits: StreamLimits = AT_ONCE,
    upgrade_report: bytes | None = None,
) -> AsyncIterator[Page]:
    """The dashboard of a session, for the person at this machine."""
    tokens: list[str] = []
    source = DashboardSource(type="store", name="memory:")
    async with open_backend(session, source, limits=limits, upgrade_report=upgrade_report) as backend:
        sign_in = OneTimeTokens(LocalViewer(SessionActions(session)), tokens.append)
        dashboard = Dashboard(backend, sign_in, options or DashboardOptions(actions=ACTIONS))
        jar = aiohttp.CookieJar(unsafe=True)
        # Any number of streams at once.
        connector = aiohttp.TCPConnector(limit=0)
        browsing = aiohttp.ClientSession(cookie_jar=jar, connector=connector)
        async with serving(dashboard, LOOPBACK) as url, browsing as browser:
            sign_in.print_next()
            page = Page(url, backend, browser, tokens)
            if is_signed_in:
                assert (await page.sign_in()).status == 200
            yield page
