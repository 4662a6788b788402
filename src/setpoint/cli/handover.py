"""Whose hands do the work: our own, or those of the process that owns the store already and takes orders."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
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
from setpoint.engine.child_edits import owners_of, still_owned
from setpoint.engine.follow import Follow, records_of
from setpoint.engine.reconcile import step
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.engine.run import Run
from setpoint.engine.scene import Stopped, World
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
    # Those whose children were written: nobody else calls them. They go first: what they put back, or keep, is what
    # their children are looked at for.
    _owners: Sequence[ResourceRef] = ()

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """See Hands."""
        for manifest in manifests:
            present = await self.world.store.get(manifest.ref)
            await self.world.store.apply(still_owned(manifest.tree, present))
        owners = await owners_of([manifest.ref for manifest in manifests], self.world.store)
        self._owners = [owner for owner in owners if (owner.group, owner.kind) in self.world.sorts]

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        for ref in refs:
            await self.world.store.delete(ref)

    async def settle(self, refs: Sequence[ResourceRef], trigger: str) -> Exit:
        """See Hands."""
        asked = trigger == RECONCILE
        first = self._owners if trigger == APPLY else await self._owners_among(refs) if asked else ()
        with Progress(self.request.console, dict.fromkeys((*first, *refs))) as progress:
            if self.request.wait:
                await self._until_done(first, refs, partial(Run, self.world, progress.hear, trigger, asked))
            else:
                for ref in dict.fromkeys((*first, *refs)):
                    progress.hear(ref, await step(ref, self.world, trigger=trigger, asked=asked))
        return worst(state.code for state in progress.states.values())

    async def _until_done(
        self, first: Sequence[ResourceRef], refs: Sequence[ResourceRef], begin: Callable[[], Run]
    ) -> None:
        """In two runs that share one time: the second is for those of whom the first heard nothing, or no end."""
        clock = self.world.clock
        end = clock.monotonic() + self.request.seconds
        heard = await begin().until_done(first, self.request.seconds) if first else {}
        left = [ref for ref in refs if ref not in heard or isinstance(heard[ref], Stopped)]
        await begin().until_done(left, max(0.0, end - clock.monotonic()))

    async def _owners_among(self, refs: Sequence[ResourceRef]) -> Sequence[ResourceRef]:
        return [owner for owner in await owners_of(refs, self.world.store) if owner in refs]


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
