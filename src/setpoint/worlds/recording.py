"""From a world that was looked at to one that can be kept: values that nobody may see have stand-ins in it.

A stand-in changes the digests that a value went into. Where a memory speaks of a value as it is, it speaks of its
stand-in from then on; where it speaks of an earlier one, it still does: everything that moved has moved here, too.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from setpoint.core.cookie import Cookie
from setpoint.core.values import Json
from setpoint.engine.moving import Passage, in_new_terms
from setpoint.engine.remembered import COOKIE, COOKIE_ANNOTATION, Remembered
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.engine.standing import Standing, standing_of
from setpoint.errors import SetpointError
from setpoint.worlds.files import Header, RecordedWorld
from setpoint.worlds.snapshot import Snapshot
from setpoint.worlds.survey import AT_ONCE
from setpoint.worlds.tape import Tape
from setpoint.worlds.veil import Veil


async def standings(refs: Iterable[ResourceRef], world: World) -> Mapping[ResourceRef, Standing]:
    """How each of them stands, of whom that can be told."""
    turns, found = asyncio.Semaphore(AT_ONCE), dict[ResourceRef, Standing]()

    async def look(ref: ResourceRef) -> None:
        async with turns:
            resource = await world.store.get(ref)
            if resource is not None:
                # What cannot be told here says why in the preview.
                with suppress(SetpointError):
                    found[ref] = await standing_of(resource, world)

    await asyncio.gather(*map(look, refs))
    return found


def veiled(header: Header, seen: Snapshot, tape: Tape, veil: Veil) -> RecordedWorld:
    """What was seen, under the veil; memories speak of what is under it."""
    resources = tuple(Resource(_tree(veil.over(dict(one.document)))) for one in seen.resources.values())
    return RecordedWorld(header, resources, frozenset(seen.besides), frozenset(seen.absent), tape.veiled())


def in_terms_of_the_veil(
    recorded: RecordedWorld, before: Mapping[ResourceRef, Standing], after: Mapping[ResourceRef, Standing]
) -> RecordedWorld:
    """The world with memories that speak of stand-ins, by how each resource stands without them and with them."""
    resources = (
        _carried(one, _passage(before[one.ref], after[one.ref])) if one.ref in before and one.ref in after else one
        for one in recorded.resources
    )
    return replace(recorded, resources=tuple(resources))


def _passage(before: Standing, after: Standing) -> Passage:
    versions = {(name, old): after.versions[name] for name, old in before.versions.items() if name in after.versions}
    pairs = ((before.live, after.live), (before.body, after.body))
    lives = {old: new for old, new in pairs if old is not None and new is not None}
    return Passage({before.intent: after.intent}, versions, lives)


def _carried(resource: Resource, passage: Passage) -> Resource:
    memory = in_new_terms(Remembered.of(resource), passage)
    document = dict(resource.document)
    if "status" in document:
        document["status"] = memory.into(resource.status, with_cookie=COOKIE in resource.status)
    cookie = Cookie.parse(resource.annotations.get(COOKIE_ANNOTATION))
    if cookie is not None:
        annotations = {**resource.annotations, COOKIE_ANNOTATION: str(passage.cookie(cookie))}
        document["metadata"] = {**_tree(document["metadata"]), "annotations": annotations}
    return Resource(document)


def _tree(value: Json) -> Tree:
    assert isinstance(value, Mapping)
    return value
