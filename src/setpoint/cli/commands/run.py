"""`setpoint run`: the long-running controller process, its signals, metrics server and admin API."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final

from setpoint import __version__
from setpoint.app import (
    AppSettings,
    ClientWiring,
    OpenedEngine,
    StoreAccess,
    dry_run_apply,
    open_app,
    select_kinds,
    store_file,
)
from setpoint.cli.request import CommandRequest, duration_option, run_command
from setpoint.cli.views.live_screen import LogBuffer, live_screen
from setpoint.cli.views.outcome import ExitCode
from setpoint.cli.views.process_snapshot import StepCounter
from setpoint.clients.admin_api import prepare_socket, remove_socket
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import stateless_kinds
from setpoint.engine.resource import Resource
from setpoint.engine.step.reports import StepReporter
from setpoint.errors import Bug, UserError
from setpoint.runtime import logs
from setpoint.runtime.admin_api import AdminApi, admin_routes
from setpoint.runtime.audit_log import AuditedRequests, AuditedSteps, AuditLog, append_after
from setpoint.runtime.manager import Manager, freeze_index
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.server import HttpServer, ListenAddress, parse_listen_address
from setpoint.runtime.sharding.assignment import new_identity
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.step_log import StepLog

_log: Final = logging.getLogger(__name__)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `setpoint run`, checked as far as that is possible without a store."""

    kinds: tuple[str, ...]
    concurrency: int
    metrics: ListenAddress | None
    form: logs.LogFormat
    level: int
    grace: float
    live: bool
    shards: int
    identity: str
    audit: str | None
    allowed_addresses: tuple[str, ...]
    denied_addresses: tuple[str, ...]

    @staticmethod
    def of(options: Mapping[str, Any]) -> "RunOptions":
        """The options of a command line; UserError for `--live` without a terminal."""
        metrics, live = options["metrics"], options["live"]
        if live and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UserError("--live draws on a terminal, and this is none: leave it out, and read the log instead")
        return RunOptions(
            tuple(word.strip() for word in options["kinds"].split(",") if word.strip()),
            options["concurrency"],
            None if metrics is None else parse_listen_address(metrics),
            logs.LogFormat(options["log_format"]),
            logs.LEVELS[options["log_level"]],
            duration_option("--grace", options["grace"]),
            live,
            options["shards"],
            new_identity(options["identity"] or socket.gethostname()),
            options["audit"],
            options["allowed_addresses"],
            options["denied_addresses"],
        )

    def applied_to(self, settings: AppSettings) -> AppSettings:
        """The settings of the process with these options."""
        return replace(
            settings,
            kinds=self.kinds,
            allowed_addresses=self.allowed_addresses,
            denied_addresses=self.denied_addresses,
        )


def run_until_stopped(options: dict[str, Any]) -> int:
    """The exit code: 0 after a graceful shutdown, 1 after an error, 128 plus the number of a second signal."""
    return run_command(lambda request: _run(request, RunOptions.of(options)), options)


async def _run(request: CommandRequest, run_options: RunOptions) -> int:
    log_buffer = LogBuffer() if run_options.live and sys.stderr.isatty() else None
    form = (
        logs.LogFormat.HUMAN if log_buffer is not None and run_options.form is logs.LogFormat.AUTO else run_options.form
    )
    logs.configure(form, run_options.level, log_buffer or sys.stderr)
    try:
        with _audit_log(request.settings, run_options) as audit_log:
            wiring = ClientWiring(lambda client: None if audit_log is None else AuditedRequests(client, audit_log))
            async with open_app(run_options.applied_to(request.settings), StoreAccess.RUN, wiring) as opened:
                process = ControllerProcess.of(opened, request, run_options, reporter_for(audit_log, run_options))
                return await _run_until_signal(process, run_options)
    finally:
        if log_buffer is not None:
            sys.stderr.writelines(log_buffer.lines)


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
    with _signal_handlers(process.manager.stop, task.cancel) as received:
        try:
            async with process.serving(run_options.metrics), process.serving_admin_api(), process.drawn(run_options):
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
    """The controller process: manager, telemetry, and what the live screen shows."""

    opened: OpenedEngine
    request: CommandRequest
    manager: Manager
    telemetry: Telemetry
    steps: StepCounter

    @staticmethod
    def of(
        opened: OpenedEngine, request: CommandRequest, run_options: RunOptions, reporter: StepReporter
    ) -> "ControllerProcess":
        """A process that is ready to run."""
        telemetry = Telemetry([opened.budgets], opened.requests)
        names = select_kinds(run_options.kinds, opened.engine.resource_types)
        # Only those that are reconciled here are loaded.
        kinds = {name: opened.engine.kinds[name] for name in opened.engine.kinds if name in names}
        owners = {name: opened.engine.owners[name] for name in opened.engine.owners if name in names}
        steps = StepCounter(telemetry, stateless=stateless_kinds(kinds.values()))
        engine = replace(opened.engine, kinds=kinds, owners=owners, metrics=steps, reporter=reporter)
        manager = Manager(
            engine, telemetry, run_options.grace, run_options.concurrency, replica_for(opened, run_options)
        )
        telemetry.watch(manager)
        return ControllerProcess(opened, request, manager, telemetry, steps)

    async def run(self) -> None:
        """Runs the controllers; returns after a graceful shutdown."""
        freezing = asyncio.create_task(freeze_index(self.manager))
        try:
            await self.manager.run()
        except BaseExceptionGroup as group:
            _log.exception("process broke")
            raise Bug("the process broke: a bug of ours; the log has its traceback") from group
        finally:
            freezing.cancel()

    @asynccontextmanager
    async def serving(self, address: ListenAddress | None) -> AsyncIterator[None]:
        """Serves health and metrics at `address`, if there is one."""
        server = HttpServer(self.manager, self.telemetry)
        if address is not None:
            await server.start(*address)
        try:
            yield
        finally:
            await server.close()

    @asynccontextmanager
    async def serving_admin_api(self) -> AsyncIterator[None]:
        """Serves the admin API on a socket beside the store's file, for other commands, if the store has a file."""
        file = store_file(self.request.settings)
        if file is None:
            yield
            return
        admin_api = AdminApi(self.manager.engine, self._dry_run, self.manager)
        server = HttpServer(self.manager, self.telemetry, admin_routes(admin_api))
        try:
            await server.start_unix(prepare_socket(file, self.request.settings.environment))
            yield
        finally:
            admin_api.ended.set()
            remove_socket(file)
            await server.close()

    @asynccontextmanager
    async def drawn(self, run_options: RunOptions) -> AsyncIterator[None]:
        """Draws the live screen, with `--live`."""
        if not run_options.live:
            yield
            return
        async with live_screen(self.request.console, self.manager, self.steps, self.opened.budgets):
            yield

    async def _dry_run(self, manifest: JsonObject) -> Resource:
        return await dry_run_apply(manifest, self.manager.engine)


def replica_for(opened: OpenedEngine, run_options: RunOptions) -> ControllerReplica | None:
    """This process as one replica of several; None for a store that allows a single process."""
    if opened.shared:
        return ControllerReplica(opened.engine.store, opened.engine.clock, run_options.identity, run_options.shards)
    if run_options.shards > 1:
        raise UserError(
            f"--shards {run_options.shards}: one process at a time writes to this store, and handles every resource; "
            "leave it out, or keep the resources in a cluster"
        )
    return None
