"""Owners and what belongs to them: whose children somebody edited; and what an owner cannot do without elsewhere."""

from collections.abc import Iterable, Iterator
from typing import Final

from setpoint.core.children import Contents
from setpoint.core.owners import Ownership, ownership
from setpoint.engine.family import Family, look_at_family
from setpoint.engine.owner import Owner
from setpoint.engine.plain import is_plain
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import World
from setpoint.errors import NotReady, UserError

# Any other is made anew from what the owner says, or from its sources.
_PEOPLES: Final = (Contents.MERGED, Contents.ONCE)


async def owners_of(refs: Iterable[ResourceRef], world: World) -> tuple[ResourceRef, ...]:
    """Those that are looked after here, and whose children these are: an edit of a child is theirs to judge."""
    found = [await world.store.get(ref) for ref in refs]
    owners = dict.fromkeys(one.controller for one in found if one is not None)
    return tuple(owner for owner in owners if owner is not None and (owner.group, owner.kind) in world.owners)


async def plain_relatives(resource: Resource, world: World) -> tuple[Resource, ...]:
    """Of an owner, its plain children that are more than what it generates, and the plain objects that it reads.

    None of what is in no namespace: that is a cluster's own. None of a resource that stands for one object.
    """
    owner = world.owners.get((resource.ref.group, resource.ref.kind))
    if owner is None:
        return ()
    try:
        family = await look_at_family(resource, owner, world.store)
        sources = [await world.store.get(ref) for ref in owner.sources(resource) if _is_in_namespace(ref, owner)]
    except (NotReady, UserError):
        # Its status says what is wrong with it.
        return ()
    found = {one.ref: one for one in (*_kept_children(family), *sources) if one is not None}
    return tuple(one for ref, one in found.items() if is_plain(ref, world))


def _kept_children(family: Family) -> Iterator[Resource]:
    for child in family.generated.children:
        live = family.live.get(child.key)
        if live is None or child.contents not in _PEOPLES:
            continue
        if ownership(live.document, family.owner.document) is not Ownership.ANOTHERS:
            yield live


def _is_in_namespace(ref: ResourceRef, owner: Owner) -> bool:
    kinds = {(one.group, one.kind): one for one in (*owner.makes, *owner.reads)}
    return kinds[ref.group, ref.kind].is_namespaced
