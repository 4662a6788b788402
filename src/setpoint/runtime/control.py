"""What the process that owns a store does for others: it declares, deletes and looks at what they name.

Others read the store themselves. The steps are the controllers', as always; how they went is in the statuses.
"""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from setpoint import __version__
from setpoint.clients.daemon_messages import Hello
from setpoint.core.canonical import same
from setpoint.core.conditions import find_condition, from_data
from setpoint.engine.graph import in_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Need
from setpoint.engine.needs import needs_of
from setpoint.engine.plain import is_plain
from setpoint.engine.remembered import REQUESTED
from setpoint.engine.report import PAUSED
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.errors import ManifestInvalid, SetpointError, StoreInUse, WriteConflict
from setpoint.runtime.manager import Phase

# The resource that a manifest would make; what is wrong with it is raised, and nothing is written.
Rehearse = Callable[[Tree], Awaitable[Resource]]

# How often a writer may be overtaken by steps.
_TRIES: Final = 20


class Running(Protocol):
    """What the process shows of itself."""

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        ...

    def trouble_of(self, ref: ResourceRef) -> SetpointError | None:
        """Why the last step of `ref` stopped, when it is to be taken again."""
        ...


class Control:
    """The verbs. Each refuses once the process is stopping: nobody would take the steps."""

    def __init__(self, world: World, rehearse: Rehearse, running: Running) -> None:
        self.ended = asyncio.Event()
        self._world = world
        self._rehearse = rehearse
        self._running = running

    def hello(self) -> Hello:
        """Who answers."""
        return Hello(__version__, os.getpid(), self._running.phase.value)

    def troubles(self, refs: Iterable[ResourceRef]) -> Mapping[ResourceRef, SetpointError]:
        """Why those among them that are to be retried stopped."""
        found = {ref: self._running.trouble_of(ref) for ref in refs}
        return {ref: error for ref, error in found.items() if error is not None}

    async def apply(self, manifests: Sequence[Tree]) -> Sequence[ResourceRef]:
        """All are on record; or none is, and what is wrong is raised. What says nothing new is looked at as well."""
        self._require_running()
        drafts = await self._checked(manifests)
        for draft, manifest in zip(drafts, manifests, strict=True):
            await self._apply(draft, manifest)
        return [draft.ref for draft in drafts]

    async def delete(self, refs: Sequence[ResourceRef]) -> Sequence[ResourceRef]:
        """All are gone, or marked for deletion."""
        self._require_running()
        self._require_handled(refs)
        for ref in refs:
            await self._delete(ref)
        return refs

    async def look(self, refs: Sequence[ResourceRef]) -> Sequence[ResourceRef]:
        """Those that are there, each with a request for a look."""
        self._require_running()
        self._require_handled(refs)
        return [ref for ref in refs if await self._request(ref)]

    def _require_running(self) -> None:
        if self._running.phase in (Phase.DRAINING, Phase.ENDED):
            raise StoreInUse(f"process {os.getpid()} is stopping: run the command again when it has ended")

    def _require_handled(self, refs: Iterable[ResourceRef]) -> None:
        for ref in refs:
            if (ref.group, ref.kind) not in self._world.sorts and not is_plain(ref, self._world):
                handled = ", ".join(sorted(name for _, name in self._world.sorts))
                raise ManifestInvalid(
                    f"{ref}: the running process {os.getpid()} handles only {handled}; "
                    f"stop it, or start it with --kinds {ref.kind} as well"
                )

    async def _checked(self, manifests: Sequence[Tree]) -> Sequence[Resource]:
        """The resources that the manifests would make; what is wrong with any of them, or all together, is raised."""
        drafts: list[Resource] = []
        needs: dict[ResourceRef, Sequence[Need]] = {}
        for manifest in manifests:
            draft = await self._rehearse(manifest)
            if draft.ref in needs:
                raise ManifestInvalid(f"{draft.ref} is declared twice: keep one of them")
            drafts.append(draft)
            needs[draft.ref] = self._needs(draft)
            # There may be thousands, and others have to have their turn.
            await asyncio.sleep(0)
        in_order(needs)
        return drafts

    def _needs(self, draft: Resource) -> Sequence[Need]:
        self._require_handled((draft.ref,))
        if is_plain(draft.ref, self._world):
            return ()
        kind = self._world.sort_of(draft)
        check_manifest(draft, kind)
        return needs_of(draft, self._world.sorts)

    async def _apply(self, draft: Resource, manifest: Tree) -> None:
        ref = draft.ref
        before = await self._world.store.get(ref)
        if before is None or is_plain(ref, self._world) or not same(_body(before), _body(draft)):
            # Looked at anyway, and its generation tells the new status from the old one.
            await self._world.store.apply(manifest)
        elif before.is_deleting:
            # Whether that may still be said is for the store to judge, without a request in it.
            await self._world.store.apply(manifest)
            await self._request(ref)
        else:
            # In one write: a second one would cross the step that the first one brings about.
            await self._world.store.apply(_with_annotation(manifest, self._new_request()))

    async def _delete(self, ref: ResourceRef) -> None:
        before = await self._world.store.get(ref)
        left = await self._world.store.delete(ref)
        # Otherwise the deletion itself makes the status change.
        if left is not None and before is not None and (before.is_deleting or _was_paused(before)):
            await self._request(ref)

    def _new_request(self) -> str:
        return f"{self._world.clock.now()}/{secrets.token_hex(4)}"

    async def _request(self, ref: ResourceRef) -> bool:
        """Whether the request is on record: the resource may be gone."""
        text = self._new_request()
        for _ in range(_TRIES):
            resource = await self._world.store.get(ref)
            if resource is None:
                return False
            try:
                await self._world.store.annotate(resource, {REQUESTED: text})
            except WriteConflict:
                continue
            return True
        raise StoreInUse(f"{ref} is written again and again: run the command again later")


def _body(resource: Resource) -> Tree:
    """What makes a new generation when it changes."""
    return {name: value for name, value in resource.document.items() if name not in ("metadata", "status")}


def _with_annotation(manifest: Tree, request: str) -> Tree:
    metadata: Any = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), REQUESTED: request}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _was_paused(resource: Resource) -> bool:
    ready = find_condition(from_data(resource.status.get("conditions")), "Ready")
    return ready is not None and ready.reason == PAUSED.reason
