"""Hands in a cluster: commands write what people declare, and the process that runs there takes the steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.text import Text

from setpoint.cli.looked_after import seems_looked_after
from setpoint.cli.manifests import Manifest
from setpoint.cli.progress import Progress
from setpoint.cli.requests import Request
from setpoint.cli.states import Exit, worst
from setpoint.engine.follow import Follow, records_of
from setpoint.engine.remembered import REQUESTED
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.errors import WriteConflict

_NOBODY = (
    "nobody looks after this cluster: what was asked for is on record, and is done once somebody does: "
    "run `setpoint --store kubernetes run`, or `setpoint install`"
)


@dataclass(slots=True)
class ClusterHands:
    """This process writes what is declared; others take the steps, and their statuses are read."""

    world: World
    request: Request
    # Whether the steps that follow are asked for, as `setpoint reconcile` does.
    asks: str
    _before: Mapping[ResourceRef, Tree | None] = field(default_factory=dict)

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """See Hands."""
        self._before = await records_of([manifest.ref for manifest in manifests], self.world.store)
        for manifest in manifests:
            before = await self.world.store.get(manifest.ref)
            after = await self.world.store.apply(manifest.tree)
            if before is not None and self._says_nothing_new(before, after):
                await self._look([after.ref])

    async def delete(self, refs: Sequence[ResourceRef]) -> None:
        """See Hands."""
        for ref in refs:
            before = await self.world.store.get(ref)
            left = await self.world.store.delete(ref)
            if left is not None and before is not None and before.is_deleting:
                # It was to go already: its status may be of long ago.
                await self._look([ref])

    async def settle(self, refs: Sequence[ResourceRef], trigger: str) -> Exit:
        """See Hands."""
        if trigger == self.asks:
            self._before = await records_of(refs, self.world.store)
            await self._look(refs)
        if not await seems_looked_after(self.world):
            self._say(_NOBODY)
            return Exit.WAITING if refs else Exit.DONE
        with Progress(self.request.console, refs) as progress:
            follow = Follow(self.world.store, progress.hear, self._look, self._before)
            until = follow.until_done if self.request.wait else follow.until_heard_of
            await until(refs, self.request.seconds)
        for ref in refs:
            if ref not in follow.outcomes:
                self._say(f"{ref} was not heard of in time: the log of the process that looks after it says why")
        return worst(state.code for state in progress.states.values())

    def _says_nothing_new(self, before: Resource, after: Resource) -> bool:
        """Whether nobody can tell the status that it has from one that is still to come: then a look is asked for."""
        is_handled = (after.ref.group, after.ref.kind) in self.world.sorts
        return is_handled and (before.uid, before.generation) == (after.uid, after.generation)

    async def _look(self, refs: Sequence[ResourceRef]) -> None:
        """Asks for a look at each, as `kubectl annotate` would."""
        for ref in refs:
            while (resource := await self.world.store.get(ref)) is not None:
                try:
                    await self.world.store.annotate(resource, {REQUESTED: datetime.now(UTC).isoformat()})
                except WriteConflict:
                    continue
                break

    def _say(self, text: str) -> None:
        self.request.console.print(Text(text, style="yellow"), soft_wrap=True)
