"""`setpoint run`: the long-running controller process, its signals, metrics server and admin API."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from setpoint import __version__
from setpoint.app import AppSettings, OpenedEngine
from setpoint.cli.request import CommandRequest, duration_option, run_command
from setpoint.cli.views.process_snapshot import StepCounter
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import DEFAULT_NAMESPACE
from setpoint.engine.sets.declare import NO_SETS
from setpoint.engine.step.reports import StepReporter
from setpoint.errors import UserError
from setpoint.library.controller import ControllerOptions, Controllers, open_for_controllers
from setpoint.library.outcome import ExitCode
from setpoint.runtime import logs
from setpoint.runtime.audit_log import STANDARD_OUTPUT, AuditedRequests, AuditedSteps, AuditLog, append_after
from setpoint.runtime.manager import freeze_index
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.assignment import new_identity
from setpoint.runtime.step_history import HistoryReports, HistoryRequests
from setpoint.runtime.step_log import StepLog

if TYPE_CHECKING:
    from setpoint.cli.notifications import NotificationOptions
    from setpoint.cli.views.live_screen import LogBuffer
    from setpoint.library.sets.sync import NamedSource, SetSync, SyncOptions
    from setpoint.runtime.limited_server import ListenAddress

_log: Final = logging.getLogger(__name__)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `setpoint run`, checked as far as that is possible without a store."""

    kinds: tuple[str, ...]
    concurrency: int
    metrics: "ListenAddress | None"
    form: logs.LogFormat
    level: int
    grace: float
    live: bool
    shards: int
    identity: str
    audit: str | None
    dashboard: "ServedPage | None"
    allowed_addresses: tuple[str, ...]
    denied_addresses: tuple[str, ...]
    sets: "SetOptions | None" = None
    notifications: "NotificationOptions | None" = None

    @staticmethod
    def of(options: Mapping[str, Any]) -> "RunOptions":
        """The options of a command line; UserError for `--live` without a terminal."""
        metrics, live = options["metrics"], options["live"]
        if live and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UserError("--live draws on a terminal, and this is none: leave it out, and read the log instead")
        return RunOptions(
            tuple(word.strip() for word in options["kinds"].split(",") if word.strip()),
            options["concurrency"],
            None if metrics is None else _listen_address(metrics),
            logs.LogFormat(options["log_format"]),
            logs.LEVELS[options["log_level"]],
            duration_option("--grace", options["grace"]),
            live,
            options["shards"],
            new_identity(options["identity"] or socket.gethostname()),
            options["audit"],
            _served_page(options),
            options["allowed_addresses"],
            options["denied_addresses"],
            _set_options(options),
            _notification_options(options),
        )

    @property
    def controller(self) -> ControllerOptions:
        """What concerns the controllers."""
        return ControllerOptions(self.kinds, self.concurrency, self.grace, self.shards, self.identity)

    def applied_to(self, settings: AppSettings) -> AppSettings:
        """The settings of the process with these options."""
        return replace(
            settings,
            kinds=self.kinds,
            allowed_addresses=self.allowed_addresses,
            denied_addresses=self.denied_addresses,
        )


@dataclass(frozen=True, slots=True)
class ServedPage:
    """The dashboard that the process serves. `peers` are names of the processes of its cluster that serve it, too."""

    listen: "ListenAddress"
    allows_actions: bool
    has_plan: bool
    peers: "tuple[ListenAddress, ...]"
    # The file of `--audit`; None for standard output.
    audit: str | None


def _served_page(options: Mapping[str, Any]) -> ServedPage | None:
    """What `--dashboard` and the options beside it say; None without it. UserError for those alone."""
    if options["dashboard"] is None:
        given = {"--allow-actions": options["allow_actions"], "--no-plan": not options["plan"]}
        given["--dashboard-peers"] = options["dashboard_peers"]
        for option in (name for name, is_given in given.items() if is_given):
            raise UserError(f"{option} is for the page of --dashboard: add that, or leave it out")
        return None
    peers = tuple(map(_listen_address, options["dashboard_peers"]))
    if any(not one.host or not one.port for one in peers):
        raise UserError("--dashboard-peers: write HOST:PORT, such as setpoint-metrics.setpoint-system.svc:8081")
    audit = None if options["audit"] == STANDARD_OUTPUT else options["audit"]
    return ServedPage(_listen_address(options["dashboard"]), options["allow_actions"], options["plan"], peers, audit)


@dataclass(frozen=True, slots=True)
class SetOptions:
    """The sets that the process keeps as folders and repositories have them."""

    sources: "Sequence[NamedSource]"
    sync: "SyncOptions"


def _set_options(options: Mapping[str, Any]) -> SetOptions | None:
    """What `-f` and `--git` name; None without either. UserError for a store that keeps no sets."""
    if not (options["folders"] or options["repositories"]):
        for option in ("set_name", "adopt", "allow_empty"):
            if options[option]:
                raise UserError(f"--{option.split('_name')[0].replace('_', '-')} is for the sets of -f and --git")
        return None
    from setpoint.library.sets.sync import SyncOptions, named_sources

    if options["store"] is not None and options["store"].startswith("kubernetes"):
        raise UserError(NO_SETS)
    sources = named_sources(options["folders"], options["repositories"], options["set_name"])
    poll, namespace = duration_option("--poll", options["poll"]), options["namespace"] or DEFAULT_NAMESPACE
    return SetOptions(sources, SyncOptions(poll, namespace, options["adopt"], options["allow_empty"]))


def _notification_options(options: Mapping[str, Any]) -> "NotificationOptions | None":
    """Who is told of problems; None without a receiver. UserError for a wrong address."""
    if not (options["notify"] or os.environ.get("SETPOINT_NOTIFY", "").strip()):
        if options["notify_secret_file"] is not None:
            raise UserError("--notify-secret-file is for the messages of --notify")
        return None
    from setpoint.cli.notifications import NotificationOptions

    return NotificationOptions.of(options["notify"], options["notify_secret_file"], os.environ)


def run_until_stopped(options: dict[str, Any]) -> int:
    """The exit code: 0 after a graceful shutdown, 1 after an error, 128 plus the number of a second signal."""
    return run_command(lambda request: _run(request, RunOptions.of(options)), options)


async def _run(request: CommandRequest, run_options: RunOptions) -> int:
    log_buffer = _new_log_buffer() if run_options.live and sys.stderr.isatty() else None
    form = (
        logs.LogFormat.HUMAN if log_buffer is not None and run_options.form is logs.LogFormat.AUTO else run_options.form
    )
    logs.configure(form, run_options.level, log_buffer or sys.stderr)
    try:
        with _audit_log(request.settings, run_options) as audit_log:

            def recorded(client: str) -> HistoryRequests:
                return HistoryRequests(None if audit_log is None else AuditedRequests(client, audit_log))

            async with open_for_controllers(run_options.applied_to(request.settings), recorded) as opened:
                reporter = HistoryReports(reporter_for(audit_log, run_options), request.settings.clock.now)
                process = ControllerProcess.of(opened, request, run_options, reporter)
                if process.sync is not None:
                    await process.sync.check()
                return await _run_until_signal(process, run_options)
    finally:
        if log_buffer is not None:
            sys.stderr.writelines(log_buffer.lines)


# The HTTP server takes 16 MB, and the live screen 2 MB: each is imported by a process that uses it.
def _listen_address(text: str) -> "ListenAddress":
    from setpoint.runtime.limited_server import parse_listen_address

    return parse_listen_address(text)


def _new_log_buffer() -> "LogBuffer":
    from setpoint.cli.views.live_screen import LogBuffer

    return LogBuffer()


@contextmanager
def _audit_log(settings: AppSettings, run_options: RunOptions) -> Iterator[AuditLog | None]:
    """The audit log, if one is asked for, with a line for the beginning and the end of the process."""
    if run_options.audit is None:
        yield None
        return
    log = AuditLog(run_options.audit, settings.clock.now)
    try:
        append_after(log, "started", {"process": run_options.identity, "version": __version__})
        yield log
        append_after(log, "ended", {"process": run_options.identity})
    finally:
        log.close()


def reporter_for(audit_log: AuditLog | None, run_options: RunOptions) -> StepReporter:
    """Takes the reports of steps: the log, and the audit log if there is one."""
    return StepLog() if audit_log is None else AuditedSteps(audit_log, StepLog(), run_options.identity)


async def _run_until_signal(process: "ControllerProcess", run_options: RunOptions) -> int:
    """The exit code. The first signal starts a graceful shutdown, the second ends the process at once."""
    task = asyncio.current_task()
    assert task is not None
    controllers = process.controllers
    with _signal_handlers(controllers.manager.stop, task.cancel) as received:
        try:
            async with (
                controllers.serving(run_options.metrics),
                controllers.serving_admin_api(),
                process.drawn(run_options),
                process.serving_dashboard(run_options),
                process.notifying(run_options),
            ):
                await process.run()
        except asyncio.CancelledError:
            if len(received) < 2:
                raise
            _log.warning("ended at once")
            return 128 + received[1]
    _log.info("ended")
    return ExitCode.DONE


@contextmanager
def _signal_handlers(first: Callable[[], object], second: Callable[[], object]) -> Iterator[Sequence[int]]:
    """The signals received so far. After the block a signal has its default effect again."""
    loop, received = asyncio.get_running_loop(), list[int]()

    def receive(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            first()
        else:
            second()

    for number in _SIGNALS:
        loop.add_signal_handler(number, receive, number)
    try:
        yield received
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


@dataclass(frozen=True, slots=True)
class ControllerProcess:
    """The controller process: the controllers, and what the live screen shows."""

    opened: OpenedEngine
    request: CommandRequest
    controllers: Controllers
    steps: StepCounter
    # What keeps the sets of folders and repositories.
    sync: "SetSync | None" = None

    @staticmethod
    def of(
        opened: OpenedEngine, request: CommandRequest, run_options: RunOptions, reporter: StepReporter
    ) -> "ControllerProcess":
        """A process that is ready to run."""
        telemetry = Telemetry([opened.budgets], opened.requests)
        steps = StepCounter(telemetry, telemetry.stateless)
        controllers = Controllers.of(
            opened, request.settings, run_options.controller, telemetry, metrics=steps, reporter=reporter
        )
        sync = None
        if run_options.sets is not None:
            from setpoint.library.sets.sync import SetSync

            sync = SetSync(run_options.sets.sources, controllers.manager.engine, run_options.sets.sync)
            telemetry.watch_sources(sync.figures)
        return ControllerProcess(opened, request, controllers, steps, sync)

    async def run(self) -> None:
        """Runs the controllers; returns after a graceful shutdown."""
        beside = [asyncio.create_task(freeze_index(self.controllers.manager))]
        if self.sync is not None:
            beside.append(asyncio.create_task(self._keep_sets(self.sync)))
        try:
            await self.controllers.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _keep_sets(self, sync: "SetSync") -> None:
        await self.controllers.manager.synced()
        await sync.run()

    @asynccontextmanager
    async def serving_dashboard(self, run_options: RunOptions) -> AsyncIterator[None]:
        """Serves the dashboard, with `--dashboard`."""
        if run_options.dashboard is None:
            yield
            return
        from setpoint.cli.dashboard import served_beside

        steps = self.steps
        async with served_beside(self.controllers, self.opened, run_options.dashboard, lambda: steps.all):
            yield

    @asynccontextmanager
    async def notifying(self, run_options: RunOptions) -> AsyncIterator[None]:
        """Tells receivers of problems, with `--notify`."""
        if run_options.notifications is None:
            yield
            return
        from setpoint.cli.notifications import notifying

        async with notifying(self.controllers, self.opened.engine.store, run_options.notifications):
            yield

    @asynccontextmanager
    async def drawn(self, run_options: RunOptions) -> AsyncIterator[None]:
        """Draws the live screen, with `--live`."""
        if not run_options.live:
            yield
            return
        from setpoint.cli.views.live_screen import live_screen

        async with live_screen(self.request.console, self.controllers.manager, self.steps, self.opened.budgets):
            yield
