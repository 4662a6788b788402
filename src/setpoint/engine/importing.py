"""Bringing an export into a store, so that the next step there goes on where the last one elsewhere left off.

Everything is checked before anything is written. What is written is the same however often it is written: whoever is
killed in between runs the import again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from setpoint.core.canonical import same
from setpoint.engine.exports import Export, ExportedObject, ExportedResource, Item
from setpoint.engine.graph import in_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Need, target_of
from setpoint.engine.moving import ENGINE_ANNOTATIONS, arriving, manifest_of, own_annotations, settled_in
from setpoint.engine.needs import needs_of
from setpoint.engine.passage import Crossing, crossing_for
from setpoint.engine.plain import is_plain
from setpoint.engine.ports import Store
from setpoint.engine.remembered import Remembered
from setpoint.engine.report import listed
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.engine.scene import FINALIZER, MANAGEMENT, World
from setpoint.errors import ManifestInvalid, NotReady, UserError

# What an apply would come to, or raise; nothing is written.
Rehearse: TypeAlias = Callable[[Tree], Awaitable[Resource]]


class There(Enum):
    """What an import finds in the place of a resource."""

    NOTHING = "nothing"
    # The same, or what an earlier run of this import left behind.
    OURS = "ours"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A resource that is here now: whether anything was written, and what to know before its next step."""

    ref: ResourceRef
    is_new: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is there, and in which state; no state for nothing."""

    there: There
    revision: Revision | None


async def checked(export: Export, world: World, rehearse: Rehearse, *, overwrite: bool = False) -> "Import":
    """The import, when nothing stands in its way; UserError for whatever does. Nothing is written.

    `overwrite`: what is there and says something else gives way.
    """
    check = _Check(export, world, rehearse)
    needs = {item.ref: check.needs(item) for item in export.resources}
    order = in_order(needs)
    await check.require_needs(needs)
    found = {item.ref: await check.find(item) for item in export.items}
    others = [str(ref) for ref, finding in found.items() if finding.there is There.OTHER]
    if others and not overwrite:
        raise UserError(
            f"{listed(others)}: here already, and not as in the export; nothing was written. "
            "Leave it out of the export, or give up what is here with --overwrite"
        )
    by_ref = {item.ref: item for item in export.resources}
    return Import(check.crossings, [by_ref[ref] for ref in order], found)


@dataclass(frozen=True, slots=True)
class _Check:
    """What is looked at before anything is written."""

    export: Export
    world: World
    rehearse: Rehearse

    @property
    def crossings(self) -> "_Crossings":
        return _Crossings(self.world, {one.ref: one for one in self.export.objects})

    def needs(self, item: ExportedResource) -> Sequence[Need]:
        """What the spec refers to; ManifestInvalid for one that cannot be taken here."""
        try:
            kind = self.world.sort_of(item.resource)
            check_manifest(item.resource, kind)
            return needs_of(item.resource, self.world.sorts)
        except UserError as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error

    async def require_needs(self, needs: Mapping[ResourceRef, Sequence[Need]]) -> None:
        """UserError for what a resource had at hand where it comes from, and would not have here."""
        here = {item.ref for item in self.export.items}
        had = [item.ref for item in self.export.resources if item.facts.intent is not None]
        targets = dict.fromkeys(target_of(need) for ref in had for need in needs[ref])
        missing = [str(one) for one in targets if one not in here and await self.world.store.get(one) is None]
        if missing:
            raise UserError(
                f"{listed(missing)}: referred to, and neither in the export nor in this store. Put it there first, or "
                "export it, too: Secrets with --with-secrets"
            )

    async def find(self, item: Item) -> Finding:
        """What is in its place; ManifestInvalid where it cannot be put there, whatever gives way."""
        present = await self.world.store.get(item.ref)
        try:
            if isinstance(item, ExportedObject):
                there = await self._object(item, present)
            else:
                there = await self._resource(item, present)
        except (UserError, NotReady) as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error
        return Finding(there, None if present is None else present.revision)

    async def _object(self, item: ExportedObject, present: Resource | None) -> There:
        if not is_plain(item.ref, self.world):
            raise ManifestInvalid(f"{item.ref}: no kind {item.ref.kind} is known here: leave it out of the export")
        if present is not None and _holds(present, item.resource):
            return There.OURS
        await self.rehearse(manifest_of(item.resource))
        return There.NOTHING if present is None else There.OTHER

    async def _resource(self, item: ExportedResource, present: Resource | None) -> There:
        if present is None:
            await self.rehearse(manifest_of(item.resource))
            return There.NOTHING
        # What is being deleted takes no manifest any more: then the one that it had is the one to compare with.
        declared = item.resource if present.is_deleting else await self.rehearse(manifest_of(item.resource))
        if _says_the_same(present, declared, item) and await self._is_left_by_us(present, item):
            return There.OURS
        _require_replaceable(present, item)
        return There.OTHER

    async def _is_left_by_us(self, present: Resource, item: ExportedResource) -> bool:
        """Whether its status is none, or what an import writes: nobody has a memory of its own here."""
        generation = present.generation
        crossing = await self.crossings.of(item, present)
        written: tuple[Tree, ...] = ({}, arriving(item, generation), settled_in(item, generation, crossing.passage))
        return any(same(present.status, one) for one in written)


@dataclass(frozen=True, slots=True)
class _Crossings:
    """The way of each resource into a store."""

    world: World
    objects: Mapping[ResourceRef, ExportedObject]

    async def of(self, item: ExportedResource, there: Resource) -> Crossing:
        return await crossing_for(item, there, self.objects, self.world)


@dataclass(frozen=True, slots=True)
class Import:
    """An import that nothing stands in the way of."""

    crossings: _Crossings
    order: Sequence[ExportedResource]
    found: Mapping[ResourceRef, Finding]

    async def bring_in(self) -> tuple[Arrival, ...]:
        """Everything is there: plain objects first, then each resource after those it needs."""
        for one in self.crossings.objects.values():
            if self.found[one.ref].there is not There.OURS:
                await self._store.apply(manifest_of(one.resource))
        for item in self.order:
            await self._put(item)
        # Only now everything is here that another may refer to.
        return tuple([await self._settle(item) for item in self.order])

    async def _put(self, item: ExportedResource) -> None:
        """The resource as its author wrote it, held as it was, its status not yet in the terms of this store."""
        store, found = self._store, self.found[item.ref].there
        there = await (self._present(item.ref) if found is There.OURS else store.apply(manifest_of(item.resource)))
        if FINALIZER in item.resource.finalizers and FINALIZER not in there.finalizers:
            held = await store.set_finalizers(there, (*there.finalizers, FINALIZER))
            assert held is not None
            there = held
        if found is There.OTHER or not there.status:
            await store.update_status(there, arriving(item, there.generation))

    async def _settle(self, item: ExportedResource) -> Arrival:
        """The resource with its memory in the terms of this store; a deletion that was asked for is asked for here."""
        store, there = self._store, await self._present(item.ref)
        crossing = await self.crossings.of(item, there)
        there = await store.annotate(there, own_annotations(item, crossing.passage))
        there = await store.update_status(there, settled_in(item, there.generation, crossing.passage))
        if item.facts.deleting and not there.is_deleting:
            await store.delete(item.ref)
        return Arrival(item.ref, self.found[item.ref].revision != there.revision, crossing.remarks)

    async def _present(self, ref: ResourceRef) -> Resource:
        found = await self._store.get(ref)
        if found is None:
            raise UserError(f"{ref} was deleted during the import: run it again")
        return found

    @property
    def _store(self) -> Store:
        return self.crossings.world.store


def _holds(present: Resource, wanted_object: Resource) -> bool:
    """Whether every value of an exported object is there: of a ConfigMap or Secret each key, of any other the whole."""
    there, wanted = present.document.get("data"), wanted_object.document.get("data")
    if "data" not in wanted_object.document:
        return present.author_digest == wanted_object.author_digest
    there = there if isinstance(there, dict) else {}
    return not isinstance(wanted, dict) or same({key: there.get(key) for key in wanted}, wanted)


def _says_the_same(present: Resource, declared: Resource, item: ExportedResource) -> bool:
    """Whether an apply would change nothing, and nobody else has said how far steps may go."""
    return (
        present.author_digest == declared.author_digest
        and present.labels == declared.labels
        and _authors(present) == _authors(declared)
        and present.annotations.get(MANAGEMENT) == item.resource.annotations.get(MANAGEMENT)
        and present.is_deleting <= item.facts.deleting
    )


def _authors(resource: Resource) -> Mapping[str, str]:
    return {name: text for name, text in resource.annotations.items() if name not in ENGINE_ANNOTATIONS}


def _require_replaceable(present: Resource, item: ExportedResource) -> None:
    """UserError for what must not be forgotten, whoever asks for it: an object would be left behind."""
    if present.is_deleting:
        raise NotReady(f"{item.ref} is being deleted here: wait until it is gone")
    here, there = Remembered.of(present).location, Remembered.of(item.resource).location
    if here is not None and here != there:
        raise UserError(
            f"{item.ref} stands for {here} here, and for {there or 'nothing yet'} in the export: leave it out of the "
            "export, or let go of the one that is here"
        )
