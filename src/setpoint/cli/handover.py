"""Whose hands do the work: our own, or those of the process that owns the store already and takes orders."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from rich.text import Text

from setpoint.app import Access, file_of, is_shared, open_world
from setpoint.cli.cluster_hands import ClusterHands
from setpoint.cli.manifests import Manifest
from setpoint.cli.progress import Progress
from setpoint.cli.requests import Request
from setpoint.cli.states import Exit, worst
from setpoint.clients.daemon import Daemon, reach
from setpoint.clients.daemon_messages import Name
from setpoint.engine.follow import Follow, records_of
from setpoint.engine.reconcile import step
from setpoint.engine.relatives import owners_of
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.engine.run import Run
from setpoint.engine.scene import World
from setpoint.errors import RemoteUnavailable, StoreInUse

# How often the other process is asked what keeps it.
_TROUBLES_SECONDS: Final = 1.0
APPLY, RECONCILE, DELETE = "setpoint apply", "setpoint reconcile", "setpoint delete"


class Hands(Protocol):
    """What a command needs done. Whoever does it, it is told in the same words."""

    @property
    def world(self) -> World:
        """To read from."""
        ...

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """Puts the manifests on record."""
        ...

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """Asks for the deletion."""
        ...

    async def settle(self, refs: Sequence[ResourceRef], trigger: str) -> Exit:
        """Shows how it goes on until everything is settled, blocked or failed; or, without waiting, the next step."""
        ...


@asynccontextmanager
async def hands_for(request: Request) -> AsyncIterator[Hands]:
    """Our own hands; when another process owns the store, its hands. StoreInUse when it does not take orders."""
    async with AsyncExitStack() as stack:
        try:
            world = await stack.enter_async_context(open_world(request.settings, Access.WRITE))
            hands: Hands = OwnHands(world, request)
            if is_shared(request.settings):
                hands = ClusterHands(world, request, RECONCILE)
        except StoreInUse:
            file = file_of(request.settings)
            daemon = None if file is None else await reach(file)
            if daemon is None:
                raise
            stack.push_async_callback(daemon.close)
            world = await stack.enter_async_context(open_world(request.settings, Access.READ))
            hands = LentHands(world, request, daemon)
        yield hands


@dataclass(slots=True)
class OwnHands:
    """This process writes, and takes the steps."""

    world: World
    request: Request
    # Those whose children were written: nobody else calls them.
    _owners: Sequence[ResourceRef] = ()

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """See Hands."""
        for manifest in manifests:
            await self.world.store.apply(manifest.tree)
        self._owners = await owners_of([manifest.ref for manifest in manifests], self.world)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        for ref in refs:
            await self.world.store.delete(ref)

    async def settle(self, refs: Sequence[ResourceRef], trigger: str) -> Exit:
        """See Hands."""
        asked = trigger == RECONCILE
        # An owner goes before its children: what it puts back, or keeps, is what they are looked at for.
        all_refs = (*self._owners, *refs)
        owners = [one for one in await owners_of(all_refs, self.world) if one in all_refs]
        refs = list(dict.fromkeys((*owners, *all_refs)))
        with Progress(self.request.console, refs) as progress:
            if self.request.wait:
                await Run(self.world, progress.hear, trigger, asked).until_done(refs, self.request.seconds)
            else:
                for ref in refs:
                    progress.hear(ref, await step(ref, self.world, trigger=trigger, asked=asked))
        return worst(state.code for state in progress.states.values())


@dataclass(slots=True)
class LentHands:
    """Another process writes, and takes the steps; this one reads what becomes of them."""

    world: World
    request: Request
    daemon: Daemon
    _before: Mapping[ResourceRef, Tree | None] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """See Hands."""
        self._before = await records_of([manifest.ref for manifest in manifests], self.world.store)
        await self.daemon.apply(manifest.tree for manifest in manifests)

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        await self.daemon.delete(map(_name, refs))

    async def settle(self, refs: Sequence[ResourceRef], trigger: str) -> Exit:
        """See Hands. What ends with the other process is told."""
        if trigger == RECONCILE:
            self._before = await records_of(refs, self.world.store)
            await self._look(refs)
        with Progress(self.request.console, refs) as progress:
            follow = Follow(self.world.store, progress.hear, self._look, self._before)
            is_there = await self._follow(follow, refs)
        code = worst(state.code for state in progress.states.values())
        if not is_there and code is not Exit.DONE:
            self._say(
                "the running process ended before this was done: what was begun is on record, and the next goes on"
            )
        elif is_there:
            for ref in refs:
                if ref not in follow.outcomes:
                    self._say(f"{ref} was not heard of in time: the log of the running process says why")
        return code

    async def _follow(self, follow: Follow, refs: Sequence[ResourceRef]) -> bool:
        """Whether the other process was there to the end."""
        until = follow.until_done if self.request.wait else follow.until_heard_of
        following = asyncio.ensure_future(until(refs, self.request.seconds))
        ended = asyncio.ensure_future(self.daemon.until_it_ends())
        troubles = asyncio.ensure_future(self._hear_troubles(follow))
        tasks = (following, ended, troubles)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in (following, troubles) if task.done()]
        is_there = bool(done) and not any(isinstance(task.exception(), RemoteUnavailable) for task in done)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if not is_there:
            await follow.catch_up()
            return False
        for task in done:
            task.result()
        return True

    async def _hear_troubles(self, follow: Follow) -> None:
        """Tells what no status does, until nothing is left to wait for."""
        while True:
            await self.world.clock.sleep(_TROUBLES_SECONDS)
            by_name = {_name(ref): ref for ref in follow.left}
            for name, error in (await self.daemon.troubles(by_name)).items():
                follow.hear_trouble(by_name[name], error)
            if not follow.left:
                return

    def _say(self, text: str) -> None:
        self.request.console.print(Text(text, style="yellow"), soft_wrap=True)

    async def _look(self, refs: Sequence[ResourceRef]) -> None:
        await self.daemon.look(map(_name, refs))


def _name(ref: ResourceRef) -> Name:
    return Name(*ref)
