"""A session: the engine on one store, for programs. START HERE: `Session`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from setpoint.app import AppSettings
from setpoint.core.values.durations import parse_duration_text
from setpoint.engine.context import EngineContext
from setpoint.errors import ManifestInvalid, StoreInUse, UserError
from setpoint.library.session_engines import SessionEngines, WriteTurns, for_one_call
from setpoint.library.session_reads import SessionReads, declared
from setpoint.library.targets import (
    Named,
    Selection,
)

# What a command that only reads the store does without is imported where it is used.
if TYPE_CHECKING:
    from setpoint.library.command_record import CommandObserver, CommandRecord, ReportedCommand
    from setpoint.library.controller import Controllers
    from setpoint.library.deletion import Deletion
    from setpoint.library.executors import Executor, SettleGoal
    from setpoint.library.inspection.live_import import ImportObserver, ImportQuery, LiveImport
    from setpoint.library.manifests.reading import ReadManifests
    from setpoint.library.results import CommandResult
    from setpoint.library.sets.scope import SetScope

# Seconds, or a text such as 90s, 5m, 1h30m.
Timeout: TypeAlias = float | str
FIVE_MINUTES: Final = 300.0


class Session(SessionReads):
    """The engine on one store: plans, applies, reconciles, deletes, lists and watches resources, and runs controllers.

    For one event loop, and closed by `async with` or `close`. Calls that write take turns. Any call can be cancelled:
    what was begun is on record, and a later call goes on.

        async with setpoint.open("memory:") as session:
            result = await session.apply(Path("manifests"))
            result.raise_for_failures()
    """

    def __init__(
        self,
        settings: AppSettings,
        namespace: str | None = None,
        *,
        owns_process: bool = False,
        engines: SessionEngines | None = None,
    ) -> None:
        """`owns_process`: the process does nothing else, so that a plan guards its threads against writes, too."""
        super().__init__(settings, namespace, owns_process=owns_process, engines=engines)
        self._turns = WriteTurns()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the store and all connections; watches end. Idempotent."""
        await self._engines.close()

    # --- Commands -----------------------------------------------------------------------------------------------------

    async def plan(
        self, *what: Named, scope: "SetScope | None" = None, observer: "CommandObserver | None" = None
    ) -> "CommandResult":
        """What an apply of the manifests would write, and why; or a reconcile of the named resources, or of all.

        Nothing is written, neither to the store nor to a service. Raises ManifestInvalid as `apply` does. With a
        `scope`, what an apply would prune, too.
        """
        from setpoint.library.command_record import ReportedCommand
        from setpoint.library.commands import plan_resources

        selection, record = self._select(what), _record(ReportedCommand.PLAN, observer)
        self._require_scope(scope, selection)
        async with self._engines.planning() as engine:
            await plan_resources(selection, engine, record, scope)
            return _result(record, engine)

    async def apply(
        self,
        *manifests: Named,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        scope: "SetScope | None" = None,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """Declares the manifests, and reconciles until every resource is settled, blocked or failed.

        A manifest is YAML or JSON text, a `pathlib.Path` of a file or folder, a map, a typed object, or a resource that
        was read before. ManifestInvalid when any of them is invalid: then nothing was declared. A resource that fails
        raises nothing, but see `CommandResult.raise_for_failures`. Without `wait`, one step of each is taken.

        With a `scope`, the manifests are all of a set, or of what has some labels: then what left it can be pruned.
        """
        from setpoint.engine.step.reconcile_request import CommandTrigger
        from setpoint.library.command_record import ReportedCommand
        from setpoint.library.commands import apply_manifests
        from setpoint.library.executors import SettleGoal

        selection, record = self._select(manifests), _record(ReportedCommand.APPLY, observer)
        if selection.read is None or selection.targets:
            named = ", ".join(map(str, selection.targets))
            raise ManifestInvalid(f"nothing to apply{f' in {named}' if named else ''}: hand over manifests")
        self._require_scope(scope, selection)
        goal = SettleGoal(CommandTrigger.APPLY, wait, _seconds(timeout))
        async with self._executing() as executor:
            if scope is None:
                await apply_manifests(selection.read, executor, goal, record)
            else:
                await _apply_scope(selection.read, scope, executor, goal, record)
            return _result(record, executor.engine)

    def _require_scope(self, scope: "SetScope | None", selection: Selection) -> None:
        """UserError for a scope in a cluster, or of resources that are only named."""
        if scope is not None and self._engines.is_shared:
            from setpoint.engine.sets.declare import NO_SETS

            raise UserError(NO_SETS)
        if scope is not None and (selection.read is None or selection.targets):
            raise ManifestInvalid("a set is all of its manifests: hand them over, and no KIND/NAME")

    async def reconcile(
        self,
        *what: Named,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """Reconciles declared resources now, without backoff: those that are named, or all of the namespace."""
        from setpoint.engine.step.reconcile_request import CommandTrigger
        from setpoint.library.command_record import ReportedCommand
        from setpoint.library.executors import SettleGoal

        goal = SettleGoal(CommandTrigger.RECONCILE, wait, _seconds(timeout))
        return await self._settle(self._select(what), goal, _record(ReportedCommand.RECONCILE, observer))

    async def wait(
        self, *what: Named, timeout: Timeout = FIVE_MINUTES, observer: "CommandObserver | None" = None
    ) -> "CommandResult":
        """Waits until the resources are settled, blocked, failed or gone, whichever process takes the steps.

        Where no controller runs for the store, this process takes them. A timeout raises nothing: `is_done` is False.
        """
        from setpoint.engine.step.reconcile_request import CommandTrigger
        from setpoint.library.command_record import ReportedCommand
        from setpoint.library.executors import SettleGoal

        goal = SettleGoal(CommandTrigger.WAIT, wait=True, seconds=_seconds(timeout))
        return await self._settle(self._select(what), goal, _record(ReportedCommand.WAIT, observer))

    async def _settle(self, selection: Selection, goal: "SettleGoal", record: "CommandRecord") -> "CommandResult":
        from setpoint.library.commands import reconcile_resources

        async with self._executing() as executor:
            await reconcile_resources(selection, executor, goal, record)
            return _result(record, executor.engine)

    async def delete(
        self,
        *what: Named,
        dry_run: bool = False,
        ignore_not_found: bool = False,
        wait: bool = True,
        timeout: Timeout = FIVE_MINUTES,
        observer: "CommandObserver | None" = None,
    ) -> "CommandResult":
        """Deletes resources and their live objects: dependants before what they need. Nothing is asked.

        UserError for a protected resource: then nothing was deleted. With `dry_run`, only says what would be deleted.
        """
        from setpoint.engine.step.reconcile_request import CommandTrigger
        from setpoint.library.command_record import ReportedCommand
        from setpoint.library.deletion import delete_resources, dry_run_deletion
        from setpoint.library.executors import SettleGoal

        selection, record = self._select(what), _record(ReportedCommand.DELETE, observer)
        if dry_run:
            async with self._engines.reading() as engine:
                await dry_run_deletion(selection, engine, record, ignore_not_found=ignore_not_found)
                return _result(record, engine)
        goal = SettleGoal(CommandTrigger.DELETE, wait, _seconds(timeout))
        async with self._executing() as executor:
            await delete_resources(selection, executor, goal, record, ignore_not_found=ignore_not_found)
            return _result(record, executor.engine)

    async def import_live(self, query: "ImportQuery", observer: "ImportObserver | None" = None) -> "LiveImport":
        """Manifests of live objects that no resource stands for, in the namespace of the session, each with its plan.

        Nothing is written, neither to the store nor to a service.
        """
        from setpoint.library.inspection.live_import import ImportObserver, import_live

        async with self._engines.planning() as engine:
            return await import_live(query, self.namespace, engine, observer or ImportObserver())

    async def preview_deletion(self, *what: Named) -> "Deletion":
        """What would go and what would stay, and what depends on it; UserError for a protected resource."""
        from setpoint.library.deletion import read_deletion

        async with self._engines.reading() as engine:
            return await read_deletion(self._select(what), engine)

    # --- Controllers --------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether `run` takes the steps of a store in memory or in a file."""
        return self._turns.are_handed_over

    async def run(
        self,
        *,
        stop: asyncio.Event | None = None,
        metrics: str | None = None,
        admin: bool = False,
        concurrency: int | None = None,
        shards: int = 1,
    ) -> None:
        """Runs the controllers in this process, as `setpoint run` does, until `stop` is set or the call is cancelled.

        Meanwhile other calls of this session hand over to them. `stop` lets running steps finish; a cancelled call
        cuts them short, and what was begun is on record. `metrics` is the address of the HTTP endpoints, such as
        `:8080`. With `admin`, commands of other processes are taken on a socket beside the file of the store.
        """
        from setpoint.library.controller import ControllerOptions, Controllers, linked, run_until_stopped_by
        from setpoint.runtime.limited_server import parse_listen_address
        from setpoint.runtime.manager import WORKERS_PER_KIND
        from setpoint.runtime.metrics.telemetry import Telemetry

        options = ControllerOptions(self.settings.kinds, concurrency or WORKERS_PER_KIND, shards=shards)
        address = None if metrics is None else parse_listen_address(metrics)
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(self._engines.running())
            telemetry = Telemetry([opened.budgets], opened.requests)
            if not self._engines.is_shared and await stack.enter_async_context(self._turns.taken()) is not None:
                raise UserError("this session runs the controllers already: wait for that call, or cancel it")
            controllers = Controllers.of(opened, self.settings, options, telemetry)
            link = await stack.enter_async_context(linked(controllers))
            if not self._engines.is_shared:
                await stack.enter_async_context(self._turns.handed_to(link))
            await stack.enter_async_context(controllers.serving(address))
            if admin:
                await stack.enter_async_context(controllers.serving_admin_api())
            await run_until_stopped_by(stop, controllers)

    @asynccontextmanager
    async def _executing(self) -> "AsyncIterator[Executor]":
        """What takes the steps: controllers of a cluster, of this session or of the owner of the file; or this process.

        StoreInUse when the owner of the store does not answer on its admin socket.
        """
        async with AsyncExitStack() as stack:
            yield await self._executor(stack)

    async def _executor(self, stack: AsyncExitStack) -> "Executor":
        from setpoint.library.executors import ClusterExecutor, DaemonExecutor, LocalExecutor

        try:
            engine = (await self._engines.writer()).engine
        except StoreInUse:
            from setpoint.clients.admin_api import connect_admin

            file = self._engines.file
            daemon = None if file is None else await connect_admin(file)
            if daemon is None:
                raise
            stack.push_async_callback(daemon.close)
            return DaemonExecutor(await stack.enter_async_context(self._engines.reading()), daemon)
        if self._engines.is_shared:
            return ClusterExecutor(engine)
        link = await stack.enter_async_context(self._turns.taken())
        return LocalExecutor(for_one_call(engine)) if link is None else DaemonExecutor(engine, link)


async def _apply_scope(
    read: "ReadManifests", scope: "SetScope", executor: "Executor", goal: "SettleGoal", record: "CommandRecord"
) -> None:
    from setpoint.library.commands import apply_set
    from setpoint.library.sets.scope import plan_scope

    planned = await plan_scope(read, scope, executor.engine)
    planned.warn(scope, record)
    await apply_set(planned, executor, goal, record, prunes=scope.prune)


@asynccontextmanager
async def handed_over(session: Session, controllers: "Controllers") -> AsyncIterator[None]:
    """Inside, calls of the session hand over to controllers of this process, which another caller runs on its store."""
    from setpoint.library.controller import linked

    async with linked(controllers) as link, session._turns.handed_to(link):
        yield


def _record(command: "ReportedCommand", observer: "CommandObserver | None") -> "CommandRecord":
    from setpoint.library.command_record import CommandObserver, CommandRecord

    record = CommandRecord(command, observer or CommandObserver())
    record.observer.begun(record)
    return record


def _result(record: "CommandRecord", engine: EngineContext) -> "CommandResult":
    from setpoint.library.results import results_of

    secrets = engine.secret_fields
    return results_of(record, {ref: declared(one, secrets) for ref, one in record.resources.items()})


def _seconds(timeout: Timeout) -> float:
    """The seconds of a timeout; ManifestInvalid for a text that is no duration."""
    return parse_duration_text(timeout) if isinstance(timeout, str) else float(timeout)
