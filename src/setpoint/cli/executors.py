"""Which process executes a command's steps: this one, the one that owns the store, or the controllers in a cluster."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field
from datetime import UTC, datetime
from typing import Final, Protocol

from setpoint.app import StoreAccess, is_shared_store, open_engine, store_file
from setpoint.cli.command_report import CommandReport
from setpoint.cli.manifests import LoadedManifest
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.outcome import ExitCode
from setpoint.clients.admin_api import AdminClient, ResourceName, connect_admin
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.follower import StatusFollower, step_records
from setpoint.engine.drivers.observe_together import step_together
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.owners.children import owners_of_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.reconcile_request import CommandTrigger, request_text
from setpoint.errors import RemoteRefused, RemoteUnavailable, StoreError, StoreInUse, WriteConflict
from setpoint.runtime.sharding.assignment import has_members

# How often errors that no status shows are polled from the controller process.
_ERROR_POLL_SECONDS: Final = 1.0
_NO_CONTROLLER: Final = (
    "no controller is running for this cluster: the request is on record, and is executed once one is: "
    "run `setpoint --store kubernetes run`, or `setpoint install`"
)


class Executor(Protocol):
    """Executes the steps of a command, and shows the progress: the same output, whichever process takes them."""

    @property
    def engine(self) -> EngineContext:
        """The engine context of the store, for reading."""
        ...

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """Declares the manifests in the store."""
        ...

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """Marks the resources for deletion."""
        ...

    async def settle(
        self, refs: Sequence[ResourceRef], trigger: CommandTrigger, report: CommandReport, seconds: float
    ) -> None:
        """Shows the progress until every resource is settled, blocked or failed; without `--wait`, of one step each.

        It returns after so many seconds, done or not.
        """
        ...


@asynccontextmanager
async def executor_for(request: CommandRequest) -> AsyncIterator[Executor]:
    """This process, the controllers of a cluster, or the process that owns the store.

    StoreInUse when the owner of the store does not answer on its admin socket.
    """
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(open_engine(request.settings, StoreAccess.WRITE))
            executor: Executor = LocalExecutor(engine, request)
            if is_shared_store(request.settings):
                executor = ClusterExecutor(engine, request)
        except StoreInUse:
            file = store_file(request.settings)
            daemon = None if file is None else await connect_admin(file)
            if daemon is None:
                raise
            stack.push_async_callback(daemon.close)
            engine = await stack.enter_async_context(open_engine(request.settings, StoreAccess.READ))
            executor = DaemonExecutor(engine, request, daemon)
        yield executor


@dataclass(slots=True)
class LocalExecutor:
    """This process writes to the store, and takes the steps."""

    engine: EngineContext
    request: CommandRequest
    # What was applied, as it was then.
    _applied: Mapping[ResourceRef, Resource] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        applied = [await self.engine.store.apply(manifest.tree) for manifest in manifests]
        self._applied = {one.ref: one for one in applied}

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        for ref in refs:
            await self.engine.store.delete(ref)

    async def settle(
        self, refs: Sequence[ResourceRef], trigger: CommandTrigger, report: CommandReport, seconds: float
    ) -> None:
        """See Executor."""
        requested = trigger is CommandTrigger.RECONCILE
        refs = await self._with_owners_first(refs)
        progress = report.progress
        progress.expect(refs)
        if trigger is CommandTrigger.APPLY:
            self.engine = await step_together(refs, self.engine)
        if self.request.wait:
            await StepRunner(self.engine, progress.show, trigger.value, requested).until_done(refs, seconds)
        else:
            for ref in refs:
                progress.show(ref, await step(ref, self.engine, trigger=trigger.value, requested=requested))

    async def _with_owners_first(self, refs: Sequence[ResourceRef]) -> Sequence[ResourceRef]:
        """With the owners of children that were applied: without a watch, they are reconciled from here.

        An owner is reconciled before its children: it may write to them.
        """
        all_refs = list(dict.fromkeys((*owners_of_children(self._applied.values(), self.engine), *refs)))
        unread = [ref for ref in all_refs if ref not in self._applied]
        read = await self.engine.store.get_many(unread)
        first = owners_of_children((*self._applied.values(), *read), self.engine)
        return list(dict.fromkeys((*(one for one in first if one in all_refs), *all_refs)))


@dataclass(slots=True)
class DaemonExecutor:
    """The process that owns the store writes, and takes the steps; this one follows the statuses."""

    engine: EngineContext
    request: CommandRequest
    daemon: AdminClient
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    _trigger: CommandTrigger = CommandTrigger.RECONCILE

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        self._before = await step_records([manifest.ref for manifest in manifests], self.engine.store)
        await self.daemon.apply(manifest.tree for manifest in manifests)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        await self.daemon.delete(map(_daemon_name, refs))

    async def settle(
        self, refs: Sequence[ResourceRef], trigger: CommandTrigger, report: CommandReport, seconds: float
    ) -> None:
        """See Executor. When the other process exits first, the output says so."""
        self._trigger = trigger
        if trigger is CommandTrigger.RECONCILE:
            self._before = await step_records(refs, self.engine.store)
            await self._request_reconcile(refs)
        progress = report.progress
        progress.expect(refs)
        follow = StatusFollower(self.engine.store, progress.show, self._request_reconcile, self._before)
        is_alive = await self._follow(follow, refs, seconds)
        if not is_alive and any(progress.states[ref].code is not ExitCode.DONE for ref in refs):
            report.warn(
                "the running process ended before this was done: what was begun is on record, and the next goes on"
            )
        elif is_alive:
            for ref in refs:
                if ref not in follow.outcomes:
                    report.warn(f"{ref} had no step in time: the log of the running process says why")

    async def _follow(self, follow: StatusFollower, refs: Sequence[ResourceRef], seconds: float) -> bool:
        """Follows the statuses to the end; False when the other process exited before that."""
        until = follow.until_done if self.request.wait else follow.until_first_outcome
        following = asyncio.ensure_future(until(refs, seconds))
        ended = asyncio.ensure_future(self.daemon.wait_until_exit())
        errors = asyncio.ensure_future(self._poll_errors(follow))
        tasks = (following, ended, errors)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in (following, errors) if task.done()]
        is_alive = bool(done) and not any(isinstance(task.exception(), RemoteUnavailable) for task in done)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if not is_alive:
            await follow.refresh()
            return False
        for task in done:
            task.result()
        return True

    async def _poll_errors(self, follow: StatusFollower) -> None:
        """Passes on the errors that no status shows, until nothing is left to wait for."""
        while True:
            await self.engine.clock.sleep(_ERROR_POLL_SECONDS)
            by_name = {_daemon_name(ref): ref for ref in follow.left}
            for name, error in (await self.daemon.step_failures(by_name)).items():
                follow.record_error(by_name[name], error)
            if not follow.left:
                return

    async def _request_reconcile(self, refs: Sequence[ResourceRef]) -> None:
        await self.daemon.reconcile(map(_daemon_name, refs), self._trigger.value)


def _daemon_name(ref: ResourceRef) -> ResourceName:
    return ResourceName(*ref)


@dataclass(slots=True)
class ClusterExecutor:
    """This process declares resources in a cluster; the controllers there take the steps. It follows the statuses."""

    engine: EngineContext
    request: CommandRequest
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    _trigger: CommandTrigger = CommandTrigger.APPLY

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        self._before = await step_records([manifest.ref for manifest in manifests], self.engine.store)
        for manifest in manifests:
            before = await self.engine.store.get(manifest.ref)
            after = await self.engine.store.apply(manifest.tree)
            if before is not None and self._keeps_generation(before, after):
                await self._request_reconcile([after.ref])

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        self._trigger = CommandTrigger.DELETE
        for ref in refs:
            before = await self.engine.store.get(ref)
            left = await self.engine.store.delete(ref)
            if left is not None and before is not None and before.is_deleting:
                # Its deletion was requested before: the status on record may be old.
                await self._request_reconcile([ref])

    async def settle(
        self, refs: Sequence[ResourceRef], trigger: CommandTrigger, report: CommandReport, seconds: float
    ) -> None:
        """See Executor."""
        self._trigger = trigger
        report.progress.expect(refs)
        if trigger is CommandTrigger.RECONCILE:
            self._before = await step_records(refs, self.engine.store)
            await self._request_reconcile(refs)
        if not await cluster_has_controller(self.engine):
            report.warn(_NO_CONTROLLER)
            return
        follow = StatusFollower(self.engine.store, report.progress.show, self._request_reconcile, self._before)
        until = follow.until_done if self.request.wait else follow.until_first_outcome
        await until(refs, seconds)
        for ref in refs:
            if ref not in follow.outcomes:
                report.warn(f"{ref} had no step in time: the log of its controller says why")

    def _keeps_generation(self, before: Resource, after: Resource) -> bool:
        """Whether the apply changed nothing that the status shows: then a step is requested by annotation."""
        is_handled = (after.ref.group, after.ref.kind) in self.engine.resource_types
        return is_handled and (before.uid, before.generation) == (after.uid, after.generation)

    async def _request_reconcile(self, refs: Sequence[ResourceRef]) -> None:
        """Requests a step for each by annotation, as `kubectl annotate` would."""
        for ref in refs:
            while (resource := await self.engine.store.get(ref)) is not None:
                text = request_text(datetime.now(UTC).isoformat(), self._trigger)
                try:
                    await self.engine.store.annotate(resource, {RECONCILE_REQUESTED: text})
                except WriteConflict:
                    continue
                break


# --- Whether a controller is running ----------------------------------------------------------------------------------


async def has_local_daemon(request: CommandRequest) -> bool:
    """Whether a `setpoint run` process owns the store in a file."""
    file = store_file(request.settings)
    daemon = None if file is None or not file.exists() else await connect_admin(file)
    if daemon is None:
        return False
    await daemon.close()
    return True


async def has_controller(request: CommandRequest, engine: EngineContext) -> bool:
    """Whether a controller is running for a store of any type; StoreError when a cluster cannot be read."""
    if is_shared_store(request.settings):
        return await has_members(engine.store, engine.clock.now())
    return await has_local_daemon(request)


async def cluster_has_controller(engine: EngineContext) -> bool:
    """Whether a controller is running for a cluster. A user without the right to see leases assumes that one is."""
    try:
        return await has_members(engine.store, engine.clock.now())
    except StoreError as error:
        if not isinstance(error.__cause__, RemoteRefused):
            raise
        return True


async def is_resynced(request: CommandRequest) -> bool:
    """Whether the resources of the store are resynced by a controller, as far as this user can see."""
    if not is_shared_store(request.settings):
        return await has_local_daemon(request)
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        return await cluster_has_controller(engine)
