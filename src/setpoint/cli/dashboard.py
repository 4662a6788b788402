"""`setpoint dashboard`: serves the page of a store, a cluster or a recording on this machine, until Ctrl-C."""

import asyncio
import signal
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from setpoint.app import is_shared_store, store_file
from setpoint.cli.request import CommandRequest, open_session, run_command
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.request_checks import is_loopback
from setpoint.dashboard.access.sessions import OneTimeTokens
from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.api.models import Source
from setpoint.dashboard.backend import open_backend
from setpoint.dashboard.server import Dashboard, DashboardOptions, serving
from setpoint.errors import UserError
from setpoint.library.outcome import ExitCode
from setpoint.runtime.limited_server import ListenAddress, parse_listen_address


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The options of `setpoint dashboard`."""

    listen: ListenAddress
    opens: bool

    @staticmethod
    def of(options: dict[str, Any]) -> "PageOptions":
        """The options of a command line; UserError for an address that others reach."""
        listen = parse_listen_address(options["listen"])
        if not is_loopback(listen.host):
            raise UserError(
                f"--listen {options['listen']}: other machines reach that; write 127.0.0.1:PORT, and reach it from "
                "elsewhere by `ssh -L`"
            )
        return PageOptions(listen, options["open"])


def serve_dashboard(options: dict[str, Any]) -> int:
    """The exit code of `setpoint dashboard`."""
    return run_command(lambda request: _serve(request, PageOptions.of(options)), options)


async def _serve(request: CommandRequest, options: PageOptions) -> ExitCode:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(open_session(request))
        _require_store(request)
        backend = await stack.enter_async_context(open_backend(session, _source(request)))
        page = _Page(request, options)
        tokens = OneTimeTokens(LocalViewer(), page.print_url)
        dashboard = Dashboard(backend, tokens, DashboardOptions())
        page.address = await stack.enter_async_context(serving(dashboard, options.listen))
        tokens.print_next()
        async with _until_signal() as stopped:
            await stopped.wait()
    return ExitCode.DONE


@dataclass(slots=True)
class _Page:
    """Prints the URL of each new token, and opens the first."""

    request: CommandRequest
    options: PageOptions
    address: str = ""
    is_printed: bool = False

    def print_url(self, token: str) -> None:
        url = f"{self.address}/#token={token}"
        text = "Once that is used, for another browser" if self.is_printed else "The dashboard, until Ctrl-C"
        self.request.console.out(f"{text}: {url}")
        if self.options.opens and not self.is_printed and self.request.console.is_terminal:
            webbrowser.open(url)
        self.is_printed = True


def _source(request: CommandRequest) -> Source:
    is_cluster = is_shared_store(request.settings)
    return Source(type="cluster" if is_cluster else "store", name=request.settings.store)


def _require_store(request: CommandRequest) -> None:
    file = store_file(request.settings)
    if file is not None and not file.exists():
        raise UserError(f"there is no store at {file}: apply something first, or name another store by --store")


@asynccontextmanager
async def _until_signal() -> AsyncIterator[asyncio.Event]:
    """Set by the first SIGTERM or Ctrl-C; a second one ends the process at once."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        stopped.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    yield stopped
