"""A look that remembers what it saw: the very bytes of the last time need no decoding, and mean nothing to do."""

from typing import Any

from setpoint.core.canonical import same
from setpoint.engine.kind import Intent, Look, Present, Reconciliation, Unmoved
from setpoint.engine.references import OUTPUT, is_ready
from setpoint.engine.remembered import Remembered, outputs_in
from setpoint.engine.resource import Resource
from setpoint.engine.rest import Rest, state_of
from setpoint.engine.scene import Management, Scene
from setpoint.engine.sightings import Sighting


async def look_for(intent: Intent, scene: Scene) -> Look | Unmoved:
    """The live object; Unmoved when it is as it was when the cookie was made, and everything else is, too."""
    known = scene.remembered.body if _is_settled(intent, scene) else None
    return await scene.kind.observe(intent.location, known)


def is_shown(intent: Intent, scene: Scene) -> bool:
    """Whether a listing showed the live object, and nothing is left to do or to say about what it showed."""
    sightings, cookie = scene.world.sightings, scene.remembered.cookie
    shown = None if sightings is None else sightings.take(scene.resource.ref)
    if shown is None or cookie is None or not _is_settled(intent, scene):
        return False
    return shown == Sighting(intent.location, state_of(cookie.live, outputs_in(scene.resource.status)))


def _is_settled(intent: Intent, scene: Scene) -> bool:
    """Whether nothing is left to do or to say if the live object has not changed."""
    memory, cookie = scene.remembered, scene.remembered.cookie
    return (
        cookie is not None
        and cookie.intent == intent.digest
        and memory.location == intent.location
        and memory.attempt is None
        and memory.creating is None
        and not memory.contests.fields
        and not scene.asked
        and scene.kind.reconciliation is Reconciliation.STATEFUL
        and scene.management is Management.FULL
        and is_ready(scene.resource)
        and _is_offered(scene.resource)
    )


def _is_offered(resource: Resource) -> bool:
    """Whether what others get is settled: a read that failed leaves it unknown, though nothing has moved."""
    match resource.status.get(OUTPUT, {"state": "null"}):
        case {"state": "null" | "known"}:
            return True
        case _:
            return False


def body_to_keep(scene: Scene, after: Remembered, look: Present[Any]) -> str | None:
    """The digest of the bytes to remember. Bytes that changed without anybody noticing are not worth a write."""
    if after.cookie is None:
        return None
    # What others are offered comes from more than the look.
    shown = {name: value for name, value in outputs_in(scene.resource.status).items() if name != OUTPUT}
    is_same = after.cookie == scene.remembered.cookie and same(look.outputs, shown)
    return scene.remembered.body if is_same else look.body


def rest(scene: Scene, intent: Intent, body: str | None, until: float) -> None:
    """Remembered by this process, so that the next step need not read what has not changed."""
    rests, resource, memory = scene.world.rests, scene.resource, scene.remembered
    if rests is None or body is None or memory.cookie is None or memory.location != intent.location:
        return
    needs = tuple(intent.resolved.seen.items())
    state = state_of(memory.cookie.live, outputs_in(resource.status))
    rests.keep(resource.ref, Rest(resource.revision, needs, memory.location, body, state, until))
