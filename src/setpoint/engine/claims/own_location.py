"""Locations of objects whose ids their service makes.

Such an object is created by a location that names a search for it, which is on record before. As soon as the object was
seen, the location of its own takes the place of the search. A process that is killed in between leaves the search: the
next step finds the object by it, or creates it.
"""

from typing import Any

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


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a search has found that no other resource has: the object proven to be ours, or those that may be it."""

    proven: Present[Any] | None
    unproven: tuple[Location, ...]

    @property
    def named(self) -> str:
        """The unproven ones, in a text."""
        return ", ".join(sorted(self.unproven))


async def candidates_of(context: KindStepContext, observed: LiveObservation) -> Candidates:
    """Which of the candidates is proven to be the object: what was issued for it is in the Secret of the resource."""
    found = observed.candidates if isinstance(observed, Absent) else ()
    if not found:
        return Candidates(None, ())
    from setpoint.engine.owners.issued_secret import is_issued

    left = [one for one in found if not await is_claimed_by_another(context, one)]
    proven = [one for one in left if one.location is not None and await is_issued(context, one.location)]
    if proven:
        return Candidates(proven[0], ())
    return Candidates(None, tuple(one.location for one in left if one.location is not None))


async def chosen_candidate(context: KindStepContext, observed: LiveObservation) -> LiveObservation:
    """The object that a search is for: the one candidate that is proven to be it.

    RemoteRefused for others: none is taken by a guess, as it may be another writer's.
    """
    if isinstance(observed, Present) or not observed.candidates:
        return observed
    found = await candidates_of(context, observed)
    if found.unproven:
        raise RemoteRefused(
            f"the answer to a creation was lost, and whether it created one of these is not known: {found.named}. "
            "Delete those that no program uses, and another is created; or delete the resource and apply it again, "
            "which leaves all of them"
        )
    return found.proven or replace(observed, candidates=())


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
