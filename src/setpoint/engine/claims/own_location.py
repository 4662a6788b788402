"""Locations of objects whose ids their service makes.

Such an object is created by a location that names a search for it, which is on record before. As soon as the object was
seen, the location of its own takes the place of the search. A process that is killed in between leaves the search: the
next step finds the object by it, or creates it.
"""

from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.engine.capabilities import SupportsServiceIds
from setpoint.engine.claims.claim import require_claim
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, observe_decoded


@dataclass(frozen=True, slots=True)
class ObservedAtLocation:
    """An observation, with the intent and the context at the location of what was observed."""

    context: KindStepContext
    intent: Intent
    observed: LiveObservation


async def located(context: KindStepContext, intent: Intent, observed: LiveObservation) -> ObservedAtLocation:
    """The observation at the location of its own; for an object that is gone, that of the search for a new one.

    ManagementConflict when an object that was searched for is another resource's.
    """
    if isinstance(observed, Absent):
        return await _to_be_created(context, intent, observed)
    found = at_own_location(context, intent, observed)
    if found.intent is not intent:
        await require_claim(found.context, found.intent.location, observed)
    return found


async def _to_be_created(context: KindStepContext, intent: Intent, observed: Absent) -> ObservedAtLocation:
    kind = context.kind
    if not isinstance(kind, SupportsServiceIds):
        return ObservedAtLocation(context, intent, observed)
    if observed.location is None and not _is_search(kind, intent):
        # The object was deleted. Its id is not given again.
        location = kind.creation_location(intent.resource, intent.resolved)
        found = await observe_decoded(location, context.kind)
        again = await located(context, replace(intent, location=location), found)
        state = replace(context.state, location=again.intent.location)
        return replace(again, context=replace(again.context, state=state)) if context.state.location else again
    return ObservedAtLocation(context, replace(intent, location=observed.location or intent.location), observed)


def _is_search(kind: SupportsServiceIds, intent: Intent) -> bool:
    search: Location = kind.creation_location(intent.resource, intent.resolved)
    return intent.location.startswith(search)


def at_own_location(context: KindStepContext, intent: Intent, observed: LiveObservation) -> ObservedAtLocation:
    """The intent and the context at the location that the observation has; mostly they are there already."""
    location = observed.location
    if location is None or location == intent.location:
        return ObservedAtLocation(context, intent, observed)
    state = replace(context.state, location=location)
    return ObservedAtLocation(replace(context, state=state), replace(intent, location=location), observed)
