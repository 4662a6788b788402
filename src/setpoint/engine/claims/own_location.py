"""Locations of objects whose ids their service makes.

Such an object is created by a location that names a search for it, which is on record before. As soon as the object was
seen, the location of its own takes the place of the search. A process that is killed in between leaves the search: the
next step finds the object by it, or creates it.
"""

from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.engine.capabilities import SupportsServiceIds
from setpoint.engine.claims.claim import is_claimed_by_another, require_claim
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, observe_decoded
from setpoint.errors import RemoteRefused


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


async def chosen_candidate(
    context: KindStepContext, observed: LiveObservation, *, leaves_several: bool = False
) -> LiveObservation:
    """The object that a search is for: the one candidate that is no other resource's.

    RemoteRefused for several, of which none is taken by a guess; with `leaves_several` the object counts as absent.
    """
    if isinstance(observed, Present) or not observed.candidates:
        return observed
    left = [one for one in observed.candidates if not await is_claimed_by_another(context, one)]
    if len(left) > 1 and not leaves_several:
        named = ", ".join(sorted(str(one.location) for one in left))
        raise RemoteRefused(
            f"an answer to a creation was lost, and it cannot be told which of these it created: {named}. Delete those "
            "that no program uses; or delete the resource and apply it again, which leaves all of them"
        )
    return left[0] if len(left) == 1 else replace(observed, candidates=())


async def _to_be_created(context: KindStepContext, intent: Intent, observed: Absent) -> ObservedAtLocation:
    kind = context.kind
    if not isinstance(kind, SupportsServiceIds):
        return ObservedAtLocation(context, intent, observed)
    if observed.location is None and not _is_search(kind, intent):
        # The object was deleted. Its id is not given again.
        location = kind.creation_location(intent.resource, intent.resolved)
        found = await chosen_candidate(context, await observe_decoded(location, context.kind))
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
