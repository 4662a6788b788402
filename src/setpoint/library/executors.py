"""Which process executes a command's steps: this one, the one that owns the store, or the controllers in a cluster."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from setpoint.app import AppSettings, is_shared_store, store_file
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.observe_together import step_together
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.owners.children import owners_of_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.resource_set import SetDeclaration
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.reconcile_request import CommandTrigger, request_text
from setpoint.errors import RemoteRefused, RemoteUnavailable, SetpointError, StoreError, WriteConflict
from setpoint.library.command_record import CommandRecord
from setpoint.library.manifests.reading import LoadedManifest, in_namespace
from setpoint.library.outcome import ExitCode

# Imported where another process takes the steps.
if TYPE_CHECKING:
    from setpoint.clients.admin_api import DeclareRequest, ResourceName
    from setpoint.engine.drivers.follower import StatusFollower

# How often errors that no status shows are polled from the controller process.
_ERROR_POLL_SECONDS: Final = 1.0
# Commands that declare nothing: what was done before they began does not count.
_READS_BEFORE: Final = (CommandTrigger.RECONCILE, CommandTrigger.WAIT)
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

    async def declare(self, declaration: SetDeclaration) -> None:
        """Declares the manifests of a set in the store: all of it, or nothing."""
        ...

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """Marks the resources for deletion."""
        ...

    async def settle(self, refs: Sequence[ResourceRef], goal: "SettleGoal", record: CommandRecord) -> None:
        """Adds outcomes to the record until every resource is settled, blocked or failed; or one step each has."""
        ...


@dataclass(frozen=True, slots=True)
class SettleGoal:
    """For which command steps are taken, whether until each resource is done, and for how many seconds at most."""

    trigger: CommandTrigger
    wait: bool
    seconds: float


class ControllerLink(Protocol):
    """The way to the controllers that hold a store in a file: of another process, or of this one."""

    async def apply(self, manifests: Iterable[JsonObject]) -> None:
        """Stores all manifests, or none."""
        ...

    async def declare(self, request: "DeclareRequest") -> None:
        """Stores the manifests of sets, and their records: all of it, or nothing."""
        ...

    async def delete(self, names: Iterable["ResourceName"]) -> None:
        """Removes resources, or marks them for deletion."""
        ...

    async def reconcile(self, names: Iterable["ResourceName"], command: str = "") -> None:
        """Requests a reconcile of each for `command`."""
        ...

    async def step_failures(self, names: Iterable["ResourceName"]) -> "Mapping[ResourceName, SetpointError]":
        """The errors of last steps that are to be retried, and are not in the status."""
        ...

    async def wait_until_exit(self) -> None:
        """Returns when the controllers have ended."""
        ...


@dataclass(slots=True)
class LocalExecutor:
    """This process writes to the store, and takes the steps."""

    engine: EngineContext
    # What was applied, as it was then.
    _applied: Mapping[ResourceRef, Resource] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        applied = [await self.engine.store.apply(manifest.tree) for manifest in manifests]
        self._applied = {one.ref: one for one in applied}

    async def declare(self, declaration: SetDeclaration) -> None:
        """See Executor."""
        from setpoint.engine.sets.declare import declare

        declared = await declare(declaration, self.engine.store, self.engine.clock)
        self._applied = {one.ref: one for one in declared.resources}

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        self._applied = {}
        for ref in refs:
            await self.engine.store.delete(ref)

    async def settle(self, refs: Sequence[ResourceRef], goal: SettleGoal, record: CommandRecord) -> None:
        """See Executor."""
        trigger, requested = goal.trigger.value, goal.trigger is CommandTrigger.RECONCILE
        refs = await self._with_owners_first(refs)
        record.expect(refs)
        if goal.trigger is CommandTrigger.APPLY:
            self.engine = await step_together(refs, self.engine)
        if goal.wait:
            await StepRunner(self.engine, record.add_outcome, trigger, requested).until_done(refs, goal.seconds)
        else:
            for ref in refs:
                record.add_outcome(ref, await step(ref, self.engine, trigger=trigger, requested=requested))

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
    daemon: ControllerLink
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    _trigger: CommandTrigger = CommandTrigger.RECONCILE

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        self._before = await _step_records([manifest.ref for manifest in manifests], self.engine)
        await self.daemon.apply(manifest.tree for manifest in manifests)

    async def declare(self, declaration: SetDeclaration) -> None:
        """See Executor."""
        refs = [Resource(in_namespace(member.manifest)).ref for member in declaration.members]
        self._before = await _step_records(refs, self.engine)
        await self.daemon.declare(_declare_request(declaration))

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        await self.daemon.delete(map(_daemon_name, refs))

    async def settle(self, refs: Sequence[ResourceRef], goal: SettleGoal, record: CommandRecord) -> None:
        """See Executor. When the other process exits first, a warning says so."""
        self._trigger = goal.trigger
        if goal.trigger in _READS_BEFORE:
            self._before = await _step_records(refs, self.engine)
        if goal.trigger is CommandTrigger.RECONCILE:
            await self._request_reconcile(refs)
        record.expect(refs)
        from setpoint.engine.drivers.follower import StatusFollower

        follow = StatusFollower(self.engine.store, record.add_outcome, self._request_reconcile, self._before)
        is_alive = await self._follow(follow, refs, goal)
        if not is_alive and any(record.states[ref].code is not ExitCode.DONE for ref in refs):
            record.warn(
                "the running process ended before this was done: what was begun is on record, and the next goes on"
            )
        elif is_alive:
            for ref in refs:
                if ref not in follow.outcomes:
                    record.warn(f"{ref} had no step in time: the log of the running process says why")

    async def _follow(self, follow: "StatusFollower", refs: Sequence[ResourceRef], goal: SettleGoal) -> bool:
        """Follows the statuses to the end; False when the other process exited before that."""
        until = follow.until_done if goal.wait else follow.until_first_outcome
        following = asyncio.ensure_future(until(refs, goal.seconds))
        ended = asyncio.ensure_future(self.daemon.wait_until_exit())
        errors = asyncio.ensure_future(self._poll_errors(follow))
        tasks = (following, ended, errors)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done = [task for task in (following, errors) if task.done()]
            is_alive = bool(done) and not any(isinstance(task.exception(), RemoteUnavailable) for task in done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not is_alive:
            await follow.refresh()
            return False
        for task in done:
            task.result()
        return True

    async def _poll_errors(self, follow: "StatusFollower") -> None:
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


async def _step_records(refs: Iterable[ResourceRef], engine: EngineContext) -> Mapping[ResourceRef, JsonObject | None]:
    from setpoint.engine.drivers.follower import step_records

    return await step_records(refs, engine.store)


def _daemon_name(ref: ResourceRef) -> "ResourceName":
    from setpoint.clients.admin_api import ResourceName

    return ResourceName(*ref)


def _declare_request(declaration: SetDeclaration) -> "DeclareRequest":
    import msgspec

    from setpoint.clients.admin_api import DeclaredMember, DeclareRequest, LeavingMember

    return DeclareRequest(
        tuple(
            DeclaredMember(msgspec.Raw(canonical(one.manifest)), one.set_name, one.source, one.seen)
            for one in declaration.members
        ),
        tuple(LeavingMember(_daemon_name(ref), name) for ref, name in declaration.leaving),
        tuple(LeavingMember(_daemon_name(ref), name) for ref, name in declaration.released),
        tuple(msgspec.Raw(msgspec.json.encode(one)) for one in declaration.records),
    )


@dataclass(slots=True)
class ClusterExecutor:
    """This process declares resources in a cluster; the controllers there take the steps. It follows the statuses."""

    engine: EngineContext
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    _trigger: CommandTrigger = CommandTrigger.APPLY

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Executor."""
        self._before = await _step_records([manifest.ref for manifest in manifests], self.engine)
        for manifest in manifests:
            before = await self.engine.store.get(manifest.ref)
            after = await self.engine.store.apply(manifest.tree)
            if before is not None and self._keeps_generation(before, after):
                await self._request_reconcile([after.ref])

    async def declare(self, declaration: SetDeclaration) -> None:
        """See Executor. UserError: a cluster keeps no sets."""
        from setpoint.engine.sets.declare import declare

        await declare(declaration, self.engine.store, self.engine.clock)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Executor."""
        self._trigger = CommandTrigger.DELETE
        for ref in refs:
            before = await self.engine.store.get(ref)
            left = await self.engine.store.delete(ref)
            if left is not None and before is not None and before.is_deleting:
                # Its deletion was requested before: the status on record may be old.
                await self._request_reconcile([ref])

    async def settle(self, refs: Sequence[ResourceRef], goal: SettleGoal, record: CommandRecord) -> None:
        """See Executor."""
        self._trigger = goal.trigger
        record.expect(refs)
        if goal.trigger in _READS_BEFORE:
            self._before = await _step_records(refs, self.engine)
        if goal.trigger is CommandTrigger.RECONCILE:
            await self._request_reconcile(refs)
        if not await cluster_has_controller(self.engine):
            record.warn(_NO_CONTROLLER)
            return
        from setpoint.engine.drivers.follower import StatusFollower

        follow = StatusFollower(self.engine.store, record.add_outcome, self._request_reconcile, self._before)
        until = follow.until_done if goal.wait else follow.until_first_outcome
        await until(refs, goal.seconds)
        for ref in refs:
            if ref not in follow.outcomes:
                record.warn(f"{ref} had no step in time: the log of its controller says why")

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


async def has_local_daemon(settings: AppSettings) -> bool:
    """Whether a `setpoint run` process owns the store in a file."""
    from setpoint.clients.admin_api import connect_admin

    file = store_file(settings)
    daemon = None if file is None or not file.exists() else await connect_admin(file)
    if daemon is None:
        return False
    await daemon.close()
    return True


async def has_controller(settings: AppSettings, engine: EngineContext) -> bool:
    """Whether a controller is running for a store of any type; StoreError when a cluster cannot be read."""
    if is_shared_store(settings):
        from setpoint.runtime.sharding.assignment import has_members

        return await has_members(engine.store, engine.clock.now())
    return await has_local_daemon(settings)


async def cluster_has_controller(engine: EngineContext) -> bool:
    """Whether a controller is running for a cluster. A user without the right to see leases assumes that one is."""
    from setpoint.runtime.sharding.assignment import has_members

    try:
        return await has_members(engine.store, engine.clock.now())
    except StoreError as error:
        if not isinstance(error.__cause__, RemoteRefused):
            raise
        return True
