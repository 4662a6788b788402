"""Moving from Config Connector: what taking over would write, and the hand-over of one namespace.

Its resources are ours by group, kind and meaning. Its controller stops first, ours begins second; never both. Once it
is uninstalled, nothing of it is left that holds anything.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from setpoint.app import Access, Settings, is_shared, open_world
from setpoint.clients.callers import calling_for
from setpoint.clients.config_connector import ConfigConnector, Controller
from setpoint.clients.kube_config import connection_from
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.adoption import Adoption, adoption_of
from setpoint.engine.exporting import exported, resume
from setpoint.engine.moving import manifest_of
from setpoint.engine.previews import Previewed
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import DEFENDER, DELETION_POLICY, FINALIZER, World
from setpoint.errors import UserError
from setpoint.previewing import open_preview
from setpoint.stores.kubernetes.definitions import plural_of
from setpoint.worlds.survey import AT_ONCE, looked_after

_GROUPS: Final = ".cnrm.cloud.google.com"
_ABANDON: Final = "abandon"
# Whether it was us who said so, and not the author.
_MARK: Final = "setpoint.dev/abandoned-by-migration"


@dataclass(frozen=True, slots=True)
class Source:
    """Where Config Connector is: a cluster, and one namespace of it or all."""

    context: str | None
    namespace: str | None

    def settings(self, settings: Settings) -> Settings:
        """The same settings with its cluster as the store."""
        where = "kubernetes" if self.context is None else f"kubernetes://{self.context}"
        return replace(settings, store=where if self.namespace is None else f"{where}?namespace={self.namespace}")


@dataclass(frozen=True, slots=True)
class Adoptions:
    """What taking over comes to for each resource, and what was tried to be written meanwhile."""

    each: tuple[Adoption, ...]
    blocked: tuple[str, ...] = ()

    @property
    def loud(self) -> tuple[Adoption, ...]:
        """Those that cannot be taken over without a write."""
        return tuple(one for one in self.each if not one.is_quiet)


async def previewed(source: Source, settings: Settings, heard: Callable[[Previewed], None]) -> Adoptions:
    """What taking over everything in `source` would write; nothing is."""
    async with open_preview(source.settings(settings)) as seen:
        turns = asyncio.Semaphore(AT_ONCE)

        async def look(ref: ResourceRef) -> Adoption:
            async with turns:
                with calling_for(ref, failed=False):
                    found = await adoption_of(ref, seen.world)
            heard(found.found)
            return found

        refs = [ref for ref in await looked_after(seen.world) if _is_theirs(ref)]
        each = await asyncio.gather(*map(look, refs))
        return Adoptions(tuple(each), tuple(sorted(set(map(str, seen.blocks.writes)))))


@asynccontextmanager
async def _config_connector(source: Source, settings: Settings) -> AsyncIterator[ConfigConnector]:
    client = KubernetesClient(connection_from(settings.environment, source.context))
    try:
        yield ConfigConnector(client)
    finally:
        await client.close()


async def controller_of(source: Source, settings: Settings) -> Controller:
    """What their controller does in the namespace."""
    assert source.namespace is not None
    async with _config_connector(source, settings) as theirs:
        return await theirs.controller(source.namespace)


async def stop_theirs(source: Source, settings: Settings) -> Controller:
    """Has their controller do nothing any more in the namespace; UserError when it cannot be told to.

    What it did before is returned. Where the resources are to be kept elsewhere, their deletion means nothing from
    then on: they are abandoned first.
    """
    assert source.namespace is not None
    async with _config_connector(source, settings) as theirs:
        before = await theirs.controller(source.namespace)
        if before is Controller.EVERYWHERE:
            raise UserError(
                f"one controller of Config Connector works for the whole cluster, and cannot be paused for "
                f"{source.namespace} alone: switch it to namespaced mode first, then hand over"
            )
        if not is_same_place(source, settings):
            await _abandon(source, settings)
        if before is Controller.WORKS:
            await theirs.pause(source.namespace)
            if await theirs.controller(source.namespace) is not Controller.PAUSED:
                raise UserError(
                    f"Config Connector goes on in {source.namespace}, though it was told to pause: somebody puts its "
                    "ConfigConnectorContext back; pause it there, then hand over"
                )
        return before


def is_same_place(source: Source, settings: Settings) -> bool:
    """Whether the resources stay where they are: in the cluster that is our store, too."""
    theirs = source.settings(settings).store.partition("?")[0]
    return is_shared(settings) and settings.store.partition("?")[0] == theirs


async def _abandon(source: Source, settings: Settings) -> None:
    """Whoever deletes one of theirs from now on leaves the object alone."""
    async with open_world(source.settings(settings), Access.WRITE) as world:
        for one in await _resources(world):
            if one.annotations.get(DELETION_POLICY) != _ABANDON:
                await world.store.annotate(one, {DELETION_POLICY: _ABANDON, _MARK: "true"})


async def require_room(source: Source, settings: Settings) -> None:
    """UserError for what our store has already, and otherwise; and for what is being deleted in either place.

    That is before anything is stopped: whoever has stopped would never end a deletion.
    """
    async with open_world(source.settings(settings), Access.READ) as world:
        theirs = await _resources(world)
    if is_same_place(source, settings):
        return
    async with open_world(settings, Access.READ) as ours:
        for one in theirs:
            await _require_same(manifest_of(_as_it_was(one)), ours)


async def begin_ours(source: Source, settings: Settings) -> Sequence[ResourceRef]:
    """Declares in our store what was declared there, with the Secrets that it refers to; both can run twice.

    What an export of ours paused, on the way back to them, goes on.
    """
    if is_same_place(source, settings):
        async with open_world(source.settings(settings), Access.WRITE) as world:
            found = await _resources(world)
            for one in found:
                await resume(one, world.store)
            return [one.ref for one in found]
    async with open_world(source.settings(settings), Access.READ) as world:
        objects, resources = await exported(await _resources(world), world)
    async with open_world(settings, Access.WRITE) as ours:
        for one in (*(item.resource for item in objects), *(item.resource for item in resources)):
            await _declare(one, ours)
    return [item.ref for item in resources]


async def finish(source: Source, settings: Settings) -> Sequence[ResourceRef]:
    """Has nothing of theirs hold any resource in the namespace, once they are gone; can run twice.

    Where the resources are kept elsewhere by now, theirs are removed, and nothing else is: their objects are ours.
    """
    assert source.namespace is not None
    async with (
        _config_connector(source, settings) as theirs,
        open_world(source.settings(settings), Access.WRITE) as world,
    ):
        if await theirs.controller(source.namespace) is not Controller.NOBODY:
            raise UserError(
                f"Config Connector is still there for {source.namespace}: uninstall it first, and keep its "
                "CustomResourceDefinitions, for they are ours by now; then finish"
            )
        held = [one for one in await _all_resources(world) if {DEFENDER, FINALIZER} & set(one.finalizers)]
        await _require_kinds(held, theirs, world)
        if is_same_place(source, settings):
            return await _freed(held, world)
        async with open_world(settings, Access.READ) as ours:
            await _require_declared(held, ours)
        return await _removed(held, world)


async def _require_kinds(held: Sequence[Resource], theirs: ConfigConnector, world: World) -> None:
    """UserError while a kind is being deleted: what holds its resources is all that saves their objects."""
    for key in sorted({(one.ref.group, one.ref.kind) for one in held}):
        definition = f"{plural_of(world.kinds[key])}.{key[0]}"
        if await theirs.is_leaving(definition):
            raise UserError(
                f"the CustomResourceDefinition {definition} is being deleted, and with it every {key[1]}. So that no "
                f"object is deleted, annotate them with {DELETION_POLICY}: {_ABANDON}; then take {DEFENDER} off by hand"
            )


async def _require_declared(held: Sequence[Resource], ours: World) -> None:
    for one in held:
        if await ours.store.get(one.ref) is None:
            raise UserError(f"{one.ref} is not declared in our store: hand over first, then finish")


async def _freed(held: Sequence[Resource], world: World) -> Sequence[ResourceRef]:
    defended = [one for one in held if DEFENDER in one.finalizers]
    for one in defended:
        await world.store.set_finalizers(one, tuple(name for name in one.finalizers if name != DEFENDER))
    return [one.ref for one in defended]


async def _removed(held: Sequence[Resource], world: World) -> Sequence[ResourceRef]:
    for one in held:
        # Its own end takes place here: nobody there is left to ask.
        rest = tuple(name for name in one.finalizers if name not in (DEFENDER, FINALIZER))
        if await world.store.set_finalizers(one, rest) is not None:
            await world.store.delete(one.ref)
    return [one.ref for one in held]


async def _declare(resource: Resource, ours: World) -> None:
    manifest = manifest_of(_as_it_was(resource))
    await _require_same(manifest, ours)
    await resume(await ours.store.apply(manifest), ours.store)


async def _require_same(manifest: Tree, ours: World) -> None:
    new = Resource(manifest)
    there = await ours.store.get(new.ref)
    if there is not None and there.is_deleting:
        raise UserError(f"{new.ref} is being deleted here: wait until it is gone, or name a store, then hand over")
    if there is not None and there.author_digest != new.author_digest:
        raise UserError(f"{new.ref} is declared here already, and otherwise: delete one of the two, or name a store")


def _as_it_was(resource: Resource) -> Resource:
    """Without what was put on it so that its deletion there means nothing."""
    metadata = resource.document["metadata"]
    assert isinstance(metadata, dict)
    ours = (_MARK, DELETION_POLICY) if _MARK in resource.annotations else ()
    said = {name: text for name, text in resource.annotations.items() if name not in ours}
    return Resource({**resource.document, "metadata": {**metadata, "annotations": said}})


async def _all_resources(world: World) -> list[Resource]:
    listing = await world.store.list()
    return [one for one in listing.resources if _is_theirs(one.ref) and (one.ref.group, one.ref.kind) in world.kinds]


def _is_theirs(ref: ResourceRef) -> bool:
    return ref.group.endswith(_GROUPS)


async def _resources(world: World) -> list[Resource]:
    found = await _all_resources(world)
    going = [str(one.ref) for one in found if one.is_deleting]
    if going:
        raise UserError(f"{going[0]} is being deleted there: wait until it is gone, then hand over")
    return found
