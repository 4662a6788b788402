"""Who executes a command's steps: this process, the process that owns the store, or the controllers in a cluster."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol

from rich.text import Text

from setpoint.app import StoreAccess, is_shared_store, open_engine, store_file
from setpoint.cli.controller_presence import cluster_has_controller
from setpoint.cli.manifests import LoadedManifest
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.outcome import ExitCode, worst_exit_code
from setpoint.cli.views.progress import ResourceProgress
from setpoint.clients.admin_api import AdminClient, ResourceName, connect_admin
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.follower import StatusFollower, step_records
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.owners.children import owners_of_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteUnavailable, StoreInUse, WriteConflict

# How often the other process is asked what keeps it.
_ERROR_POLL_SECONDS: Final = 1.0


class CommandTrigger(StrEnum):
    """The command that asks for a step, as the step's record shows it."""

    APPLY = "setpoint apply"
    RECONCILE = "setpoint reconcile"
    DELETE = "setpoint delete"


class Executor(Protocol):
    """What a command needs done. Whoever does it, it is told in the same words."""

    @property
    def engine(self) -> EngineContext:
        """To read from."""
        ...

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """Puts the manifests on record."""
        ...

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """Asks for the deletion."""
        ...

    async def settle(self, refs: Sequence[ResourceRef], trigger: CommandTrigger) -> ExitCode:
        """Shows how it goes on until everything is settled, blocked or failed; or, without waiting, the next step."""
        ...


@asynccontextmanager
async def executor_for(request: CommandRequest) -> AsyncIterator[Executor]:
    """Our own hands; when another process owns the store, its hands. StoreInUse when it does not take orders."""
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(open_engine(request.settings, StoreAccess.WRITE))
            hands: Executor = LocalExecutor(engine, request)
            if is_shared_store(request.settings):
                hands = ClusterExecutor(engine, request)
        except StoreInUse:
            file = store_file(request.settings)
            daemon = None if file is None else await connect_admin(file)
            if daemon is None:
                raise
            stack.push_async_callback(daemon.close)
            engine = await stack.enter_async_context(open_engine(request.settings, StoreAccess.READ))
            hands = DaemonExecutor(engine, request, daemon)
        yield hands


@dataclass(slots=True)
class LocalExecutor:
    """This process writes, and takes the steps."""

    engine: EngineContext
    request: CommandRequest
    # Those whose children were written: nobody else calls them.
    _owners: Sequence[ResourceRef] = ()

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Hands."""
        for manifest in manifests:
            await self.engine.store.apply(manifest.tree)
        self._owners = await owners_of_children([manifest.ref for manifest in manifests], self.engine)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        for ref in refs:
            await self.engine.store.delete(ref)

    async def settle(self, refs: Sequence[ResourceRef], trigger: CommandTrigger) -> ExitCode:
        """See Hands."""
        asked = trigger is CommandTrigger.RECONCILE
        # An owner goes before its children: what it puts back, or keeps, is what they are looked at for.
        all_refs = (*self._owners, *refs)
        owners = [one for one in await owners_of_children(all_refs, self.engine) if one in all_refs]
        refs = list(dict.fromkeys((*owners, *all_refs)))
        with ResourceProgress(self.request.console, refs) as progress:
            if self.request.wait:
                await StepRunner(self.engine, progress.hear, trigger.value, asked).until_done(
                    refs, self.request.seconds
                )
            else:
                for ref in refs:
                    progress.hear(ref, await step(ref, self.engine, trigger=trigger.value, asked=asked))
        return worst_exit_code(state.code for state in progress.states.values())


@dataclass(slots=True)
class DaemonExecutor:
    """Another process writes, and takes the steps; this one reads what becomes of them."""

    engine: EngineContext
    request: CommandRequest
    daemon: AdminClient
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Hands."""
        self._before = await step_records([manifest.ref for manifest in manifests], self.engine.store)
        await self.daemon.apply(manifest.tree for manifest in manifests)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        await self.daemon.delete(map(_daemon_name, refs))

    async def settle(self, refs: Sequence[ResourceRef], trigger: CommandTrigger) -> ExitCode:
        """See Hands. What ends with the other process is told."""
        if trigger is CommandTrigger.RECONCILE:
            self._before = await step_records(refs, self.engine.store)
            await self._look(refs)
        with ResourceProgress(self.request.console, refs) as progress:
            follow = StatusFollower(self.engine.store, progress.hear, self._look, self._before)
            is_there = await self._follow(follow, refs)
        code = worst_exit_code(state.code for state in progress.states.values())
        if not is_there and code is not ExitCode.DONE:
            self._say(
                "the running process ended before this was done: what was begun is on record, and the next goes on"
            )
        elif is_there:
            for ref in refs:
                if ref not in follow.outcomes:
                    self._say(f"{ref} was not heard of in time: the log of the running process says why")
        return code

    async def _follow(self, follow: StatusFollower, refs: Sequence[ResourceRef]) -> bool:
        """Whether the other process was there to the end."""
        until = follow.until_done if self.request.wait else follow.until_first_outcome
        following = asyncio.ensure_future(until(refs, self.request.seconds))
        ended = asyncio.ensure_future(self.daemon.wait_until_exit())
        troubles = asyncio.ensure_future(self._hear_troubles(follow))
        tasks = (following, ended, troubles)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in (following, troubles) if task.done()]
        is_there = bool(done) and not any(isinstance(task.exception(), RemoteUnavailable) for task in done)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if not is_there:
            await follow.refresh()
            return False
        for task in done:
            task.result()
        return True

    async def _hear_troubles(self, follow: StatusFollower) -> None:
        """Tells what no status does, until nothing is left to wait for."""
        while True:
            await self.engine.clock.sleep(_ERROR_POLL_SECONDS)
            by_name = {_daemon_name(ref): ref for ref in follow.left}
            for name, error in (await self.daemon.step_failures(by_name)).items():
                follow.record_error(by_name[name], error)
            if not follow.left:
                return

    def _say(self, text: str) -> None:
        self.request.console.print(Text(text, style="yellow"), soft_wrap=True)

    async def _look(self, refs: Sequence[ResourceRef]) -> None:
        await self.daemon.reconcile(map(_daemon_name, refs))


def _daemon_name(ref: ResourceRef) -> ResourceName:
    return ResourceName(*ref)


_NO_CONTROLLER = (
    "nobody looks after this cluster: what was asked for is on record, and is done once somebody does: "
    "run `setpoint --store kubernetes run`, or `setpoint install`"
)


@dataclass(slots=True)
class ClusterExecutor:
    """This process writes what is declared; others take the steps, and their statuses are read."""

    engine: EngineContext
    request: CommandRequest
    _before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[LoadedManifest]) -> None:
        """See Hands."""
        self._before = await step_records([manifest.ref for manifest in manifests], self.engine.store)
        for manifest in manifests:
            before = await self.engine.store.get(manifest.ref)
            after = await self.engine.store.apply(manifest.tree)
            if before is not None and self._says_nothing_new(before, after):
                await self._look([after.ref])

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        for ref in refs:
            before = await self.engine.store.get(ref)
            left = await self.engine.store.delete(ref)
            if left is not None and before is not None and before.is_deleting:
                # It was to go already: its status may be of long ago.
                await self._look([ref])

    async def settle(self, refs: Sequence[ResourceRef], trigger: CommandTrigger) -> ExitCode:
        """See Hands."""
        if trigger is CommandTrigger.RECONCILE:
            self._before = await step_records(refs, self.engine.store)
            await self._look(refs)
        if not await cluster_has_controller(self.engine):
            self._say(_NO_CONTROLLER)
            return ExitCode.WAITING if refs else ExitCode.DONE
        with ResourceProgress(self.request.console, refs) as progress:
            follow = StatusFollower(self.engine.store, progress.hear, self._look, self._before)
            until = follow.until_done if self.request.wait else follow.until_first_outcome
            await until(refs, self.request.seconds)
        for ref in refs:
            if ref not in follow.outcomes:
                self._say(f"{ref} was not heard of in time: the log of the process that looks after it says why")
        return worst_exit_code(state.code for state in progress.states.values())

    def _says_nothing_new(self, before: Resource, after: Resource) -> bool:
        """Whether nobody can tell the status that it has from one that is still to come: then a look is asked for."""
        is_handled = (after.ref.group, after.ref.kind) in self.engine.resource_types
        return is_handled and (before.uid, before.generation) == (after.uid, after.generation)

    async def _look(self, refs: Sequence[ResourceRef]) -> None:
        """Asks for a look at each, as `kubectl annotate` would."""
        for ref in refs:
            while (resource := await self.engine.store.get(ref)) is not None:
                try:
                    await self.engine.store.annotate(resource, {RECONCILE_REQUESTED: datetime.now(UTC).isoformat()})
                except WriteConflict:
                    continue
                break

    def _say(self, text: str) -> None:
        self.request.console.print(Text(text, style="yellow"), soft_wrap=True)
