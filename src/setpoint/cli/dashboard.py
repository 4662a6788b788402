"""`setpoint dashboard`: serves the page of a store, a cluster or a recording on this machine, until Ctrl-C."""

import asyncio
import logging
import signal
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from setpoint.app import AppSettings, OpenedEngine, default_namespace, is_shared_store, store_file
from setpoint.app.cluster import cluster_namespaces, cluster_url, open_cluster_client
from setpoint.cli.request import CommandRequest, run_command
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.cluster_users import ClusterSignIn
from setpoint.dashboard.access.request_checks import is_loopback
from setpoint.dashboard.access.sessions import OneTimeTokens, SignIn
from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.actions import ACTIONS, SessionActions
from setpoint.dashboard.api.models import DashboardSource
from setpoint.dashboard.backend import open_backend
from setpoint.dashboard.histories import HistorySources
from setpoint.dashboard.peers import Peers
from setpoint.dashboard.process import LeasesInCluster, ProcessBeside, RunningProcess
from setpoint.dashboard.server import Dashboard, DashboardOptions, serving
from setpoint.dashboard.views.audit_history import AuditHistory
from setpoint.errors import UserError
from setpoint.library.controller import Controllers
from setpoint.library.outcome import ExitCode
from setpoint.library.session import Session, handed_over
from setpoint.library.session_engines import RecordedEngines, SessionEngines
from setpoint.runtime import logs
from setpoint.runtime.limited_server import ListenAddress, parse_listen_address

if TYPE_CHECKING:
    from setpoint.cli.commands.run import ServedPage

_log: Final = logging.getLogger(__name__)
_FILES: Final = ("recording", "upgrade_report")
# A larger report is not read.
_MAX_REPORT_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The options of `setpoint dashboard`."""

    listen: ListenAddress
    opens: bool
    recording: Path | None
    upgrade_report: Path | None
    has_plan: bool
    allows_actions: bool

    @staticmethod
    def of(options: dict[str, Any]) -> "PageOptions":
        """The options of a command line; UserError for an address that others reach."""
        listen = parse_listen_address(options["listen"])
        require_loopback("--listen", listen)
        recording, report = (None if options[one] is None else Path(options[one]) for one in _FILES)
        if recording is not None and options["allow_actions"]:
            raise UserError("--allow-actions: nothing can be done to a recording; leave one of the two out")
        return PageOptions(listen, options["open"], recording, report, options["plan"], options["allow_actions"])


def serve_dashboard(options: dict[str, Any]) -> int:
    """The exit code of `setpoint dashboard`."""
    return run_command(lambda request: _serve(request, PageOptions.of(options)), options)


async def _serve(request: CommandRequest, options: PageOptions) -> ExitCode:
    logs.configure(logs.LogFormat.AUTO, logging.WARNING, sys.stderr)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(_opened(request, options))
        report = None if options.upgrade_report is None else _read_report(options.upgrade_report)
        process = await stack.enter_async_context(_processes(request, session, _source(request, options)))
        backend = await stack.enter_async_context(
            open_backend(session, _source(request, options), process=process, upgrade_report=report)
        )
        # Before the page is opened: it is what this process is for.
        backend.fleet.begin()
        page = _Page(request, options)
        tokens = OneTimeTokens(LocalViewer(_acting(session, stack)), page.print_url)
        actions = ACTIONS if options.allows_actions else ()
        dashboard = Dashboard(backend, tokens, DashboardOptions(actions=actions, has_plan=options.has_plan))
        page.address = await stack.enter_async_context(serving(dashboard, options.listen))
        tokens.print_next()
        async with _until_signal() as stopped:
            await stopped.wait()
    return ExitCode.DONE


# --- Beside controllers -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def served_beside(
    controllers: Controllers, opened: OpenedEngine, page: "ServedPage", steps: Callable[[], int]
) -> AsyncIterator[None]:
    """Serves the dashboard of controllers of this process: for users of the cluster, or on this machine alone."""
    settings, actions = controllers.settings, ACTIONS if page.allows_actions else ()
    peers = Peers(page.peers) if page.peers else None
    process = RunningProcess(controllers.manager, opened, steps, peers)
    async with AsyncExitStack() as stack:
        if peers is not None:
            stack.push_async_callback(peers.close)
        if opened.shared:
            # A store of its own: only the watch of the controllers keeps their cache complete.
            engines = SessionEngines(settings, plans_for_tenants=True)
            session = await stack.enter_async_context(Session(settings, engines=engines))
            client = open_cluster_client(settings)
            stack.push_async_callback(client.close)
            sign_in: SignIn = ClusterSignIn(
                client, settings.clock, partial(open_cluster_client, settings), cluster_namespaces(settings)[1]
            )
            options = DashboardOptions(hosts=None, actions=actions, has_plan=page.has_plan)
        else:
            require_loopback("--dashboard", page.listen)
            if page.peers:
                raise UserError("--dashboard-peers is for processes of a cluster, and this store has one process alone")
            session = Session(settings, engines=SessionEngines(settings, opened=opened))
            await stack.enter_async_context(handed_over(session, controllers))
            viewer = LocalViewer(_acting(session, stack))
            sign_in = OneTimeTokens(viewer, lambda token: _print_url(dashboard, token))
            options = DashboardOptions(actions=actions, has_plan=page.has_plan)
        source = _source_of(settings)
        beside = HistorySources(None if page.audit is None else AuditHistory(Path(page.audit)), peers)
        backend = await stack.enter_async_context(
            open_backend(session, source, process=process, running=opened, beside=beside)
        )
        dashboard = Dashboard(backend, sign_in, options)
        address = await stack.enter_async_context(serving(dashboard, page.listen))
        _log.info("dashboard", extra={"address": address})
        if isinstance(sign_in, OneTimeTokens):
            sign_in.print_next()
        yield


def _acting(session: Session, stack: AsyncExitStack) -> SessionActions:
    """The actions of a session, which end before it."""
    actions = SessionActions(session)
    stack.push_async_callback(actions.close)
    return actions


def _print_url(dashboard: Dashboard, token: str) -> None:
    """On standard error, not in the log: logs are kept, and read by others."""
    sys.stderr.write(f"The dashboard, for one browser: {dashboard.server.address}/#token={token}\n")
    sys.stderr.flush()


def require_loopback(option: str, listen: ListenAddress) -> None:
    """UserError for an address that other machines reach."""
    if not is_loopback(listen.host):
        raise UserError(
            f"{option} {listen}: other machines reach that; write 127.0.0.1:PORT, and reach it from elsewhere by "
            "`ssh -L`"
        )


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


@asynccontextmanager
async def _opened(request: CommandRequest, options: PageOptions) -> AsyncIterator[Session]:
    """A session on the store, or on the recording."""
    namespace = request.namespace or default_namespace(request.settings)
    if options.recording is None:
        _require_store(request)
        # Requests are answered while a plan is made: the threads of the process are not its own.
        engines = SessionEngines(request.settings)
    else:
        engines = RecordedEngines(request.settings, options.recording)
    async with Session(request.settings, namespace, engines=engines) as session:
        yield session


@asynccontextmanager
async def _processes(
    request: CommandRequest, session: Session, source: DashboardSource
) -> AsyncIterator[LeasesInCluster | ProcessBeside | None]:
    """The processes of the cluster that the page is about, by the user's own rights; or the one that holds the file."""
    if source.type != "cluster":
        file = store_file(request.settings) if source.type == "store" else None
        yield None if file is None else ProcessBeside(file)
        return
    async with session.reading() as engine:
        yield LeasesInCluster(engine.store, engine.clock)


def _read_report(path: Path) -> bytes:
    """The report as it is; UserError for a file that is none."""
    try:
        report = path.read_bytes() if path.stat().st_size <= _MAX_REPORT_BYTES else b""
        found = orjson.loads(report)
    except (OSError, orjson.JSONDecodeError) as error:
        raise UserError(f"--upgrade-report {path}: {error}: write one by `setpoint verify-upgrade -o json`") from error
    if not isinstance(found, dict):
        raise UserError(f"--upgrade-report {path} is no report: write one by `setpoint verify-upgrade -o json`")
    return report


def _source(request: CommandRequest, options: PageOptions) -> DashboardSource:
    if options.recording is not None:
        return DashboardSource(type="recording", name=options.recording.name)
    return _source_of(request.settings)


def _source_of(settings: AppSettings) -> DashboardSource:
    if is_shared_store(settings):
        return DashboardSource(type="cluster", name=cluster_url(settings))
    return DashboardSource(type="store", name=settings.store)


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
