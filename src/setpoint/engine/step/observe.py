"""Observes the live object, and skips decoding and planning when it is byte for byte what the cookie was made from."""

from typing import Any

from setpoint.core.values.canonical import same
from setpoint.engine.context import KindStepContext, Management
from setpoint.engine.idle_cache import IdleEntry, ListedObject, state_digest
from setpoint.engine.kind import Intent, LiveObservation, Present, Reconciliation, Unchanged
from setpoint.engine.references import OUTPUT, is_ready
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState, outputs_in


async def observe_unless_unchanged(intent: Intent, context: KindStepContext) -> LiveObservation | Unchanged:
    """The live object; Unmoved when it is as it was when the cookie was made, and everything else is, too."""
    known = context.state.body if _is_settled(intent, context) else None
    return await context.kind.observe(intent.location, known)


def is_listed_unchanged(intent: Intent, context: KindStepContext) -> bool:
    """Whether a listing showed the live object, and nothing is left to do or to say about what it showed."""
    listed_objects, cookie = context.engine.listed_objects, context.state.cookie
    shown = None if listed_objects is None else listed_objects.take(context.resource.ref)
    if shown is None or cookie is None or not _is_settled(intent, context):
        return False
    return shown == ListedObject(intent.location, state_digest(cookie.live, outputs_in(context.resource.status)))


def _is_settled(intent: Intent, context: KindStepContext) -> bool:
    """Whether nothing is left to do or to say if the live object has not changed."""
    memory, cookie = context.state, context.state.cookie
    return (
        cookie is not None
        and cookie.intent == intent.digest
        and memory.location == intent.location
        and memory.attempt is None
        and memory.creating is None
        and not memory.contests.fields
        and not context.asked
        and context.kind.reconciliation is Reconciliation.STATEFUL
        and context.management is Management.FULL
        and is_ready(context.resource)
        and _is_output_settled(context.resource)
    )


def _is_output_settled(resource: Resource) -> bool:
    """Whether what others get is settled: a read that failed leaves it unknown, though nothing has moved."""
    match resource.status.get(OUTPUT, {"state": "null"}):
        case {"state": "null" | "known"}:
            return True
        case _:
            return False


def body_digest_to_keep(context: KindStepContext, after: StoredState, look: Present[Any]) -> str | None:
    """The digest of the bytes to remember. Bytes that changed without anybody noticing are not worth a write."""
    if after.cookie is None:
        return None
    # What others are offered comes from more than the look.
    shown = {name: value for name, value in outputs_in(context.resource.status).items() if name != OUTPUT}
    is_same = after.cookie == context.state.cookie and same(look.outputs, shown)
    return context.state.body if is_same else look.body


def cache_as_idle(context: KindStepContext, intent: Intent, body: str | None, until: float) -> None:
    """Remembered by this process, so that the next step need not read what has not changed."""
    idle_cache, resource, memory = context.engine.idle_cache, context.resource, context.state
    if idle_cache is None or body is None or memory.cookie is None or memory.location != intent.location:
        return
    dependencies = tuple(intent.resolved.seen.items())
    state = state_digest(memory.cookie.live, outputs_in(resource.status))
    idle_cache.keep(resource.ref, IdleEntry(resource.revision, dependencies, memory.location, body, state, until))
