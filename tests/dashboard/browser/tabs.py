"""A page of the dashboard in a real browser, as a user has it before them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.dashboard.browser.chromium import FLAGS, chromium
from tests.dashboard.browser.worlds import Served

DEADLINE: Final = 60_000.0
DESKTOP: Final = (1440, 900)
PHONE: Final = (390, 844)


@dataclass(slots=True)
class Tab:
    """A page that is signed in, with everything that its console and its network showed."""

    page: Page
    address: str
    troubles: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Notes what the console shows, and which addresses are asked for."""
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))

    def go(self, place: str) -> None:
        """Goes to a view by its part of the address after `#`."""
        self.page.goto(f"{self.address}/#{place}")

    def text(self, selector: str = "main") -> str:
        """The text that is to be seen."""
        return self.page.locator(selector).first.inner_text()

    def wait_for_text(self, text: str, selector: str = "main") -> None:
        """Until the text is to be seen."""
        self.page.locator(selector).get_by_text(text).first.wait_for()

    def exported(self) -> str:
        """The file that the view is saved as."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Export").click()
        return Path(download.value.path()).read_text(encoding="utf-8")

    def value(self, script: str, argument: Any = None) -> Any:
        """What a script says in the page."""
        return self.page.evaluate(script, argument)


class SharedBrowser:
    """One Chromium for all tests of the folder; a session of the page for each process that serves one."""

    def __init__(self) -> None:
        self._driver: Playwright = sync_playwright().start()
        self._browser: Browser = self._driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        expect.set_options(timeout=DEADLINE)
        self._sessions: dict[int, tuple[str, Any]] = {}

    @contextmanager
    def tab(self, served: Served, size: tuple[int, int] = DESKTOP, **options: Any) -> Iterator[Tab]:
        """A signed-in page at the overview, in a context of its own."""
        address, state = self._session(served)
        with self._context(size, storage_state=state, **options) as context:
            tab = Tab(context.new_page(), address)
            tab.watch()
            tab.go("/")
            yield tab

    @contextmanager
    def stranger(self, address: str, **options: Any) -> Iterator[Tab]:
        """A page without a session."""
        with self._context(DESKTOP, **options) as context:
            tab = Tab(context.new_page(), address)
            tab.watch()
            tab.page.goto(address)
            yield tab

    @contextmanager
    def file(self, path: Path) -> Iterator[Tab]:
        """A file in a browser without a network."""
        with self._context(DESKTOP, offline=True) as context:
            tab = Tab(context.new_page(), "")
            tab.watch()
            tab.page.goto(path.as_uri())
            yield tab

    @contextmanager
    def _context(self, size: tuple[int, int], **options: Any) -> Iterator[BrowserContext]:
        context = self._browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        context.set_default_timeout(DEADLINE)
        try:
            yield context
        finally:
            context.close()

    def _session(self, served: Served) -> tuple[str, Any]:
        """The address without a token, and the cookies of a session: the token is used once."""
        if id(served) not in self._sessions:
            url = served.url
            with self._context(DESKTOP) as context:
                page = context.new_page()
                page.goto(url)
                page.locator(".stream-live").wait_for()
                self._sessions[id(served)] = (url.partition("/#")[0], context.storage_state())
        return self._sessions[id(served)]

    def close(self) -> None:
        """Ends the browser and its driver: until then no event loop can be run in this thread."""
        self._browser.close()
        self._driver.stop()
