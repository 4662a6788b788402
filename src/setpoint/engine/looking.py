"""A look that remembers what it saw: the very bytes of the last time need no decoding, and mean nothing to do."""

from typing import Any

from setpoint.core.canonical import same
from setpoint.engine.kind import Intent, Look, Present, Reconciliation, Unmoved
from setpoint.engine.references import is_ready
from setpoint.engine.remembered import Remembered, outputs_in
from setpoint.engine.rest import Rest
from setpoint.engine.scene import Management, Scene


async def look_for(intent: Intent, scene: Scene) -> Look | Unmoved:
    """The live object; Unmoved when it is as it was when the cookie was made, and everything else is, too."""
    known = scene.remembered.body if _is_settled(intent, scene) else None
    return await scene.kind.observe(intent.location, known)


def _is_settled(intent: Intent, scene: Scene) -> bool:
    """Whether nothing is left to do or to say if the live object has not changed."""
    memory, cookie = scene.remembered, scene.remembered.cookie
    return (
        cookie is not None
        and cookie.intent == intent.digest
        and memory.location == intent.location
        and memory.attempt is None
        and not memory.contests.fields
        and not scene.asked
        and scene.kind.reconciliation is Reconciliation.STATEFUL
        and scene.management is Management.FULL
        and is_ready(scene.resource)
    )


def body_to_keep(scene: Scene, after: Remembered, look: Present[Any]) -> str | None:
    """The digest of the bytes to remember. Bytes that changed without anybody noticing are not worth a write."""
    if after.cookie is None:
        return None
    is_same = after.cookie == scene.remembered.cookie and same(look.outputs, outputs_in(scene.resource.status))
    return scene.remembered.body if is_same else look.body


def rest(scene: Scene, intent: Intent, body: str | None, until: float) -> None:
    """Remembered by this process, so that the next step need not read what has not changed."""
    rests, resource = scene.world.rests, scene.resource
    if rests is not None and body is not None:
        needs = tuple(intent.resolved.seen.items())
        rests.keep(resource.ref, Rest(resource.revision, needs, intent.location, body, until))
