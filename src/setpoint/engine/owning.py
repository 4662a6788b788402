"""The step of an owner: its children are made, merged with people's edits, and put right; then its status follows.

Like every step it may be killed after any await and taken again. What is about to be generated is on record before a
child is written: a value of ours is never taken for a person's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from setpoint.core.canonical import same
from setpoint.core.children import memory_of_children
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.core.reviews import Review
from setpoint.core.threeway import memory_to_data
from setpoint.core.values import Json, Missing
from setpoint.engine import report
from setpoint.engine.family import LAST_GENERATED, Family, look_at_family, ref_of
from setpoint.engine.family_news import outputs_after, tell_people
from setpoint.engine.family_work import Work, work_for
from setpoint.engine.holding import observed, plan_paused
from setpoint.engine.owner import Owner
from setpoint.engine.record import record_of
from setpoint.engine.references import is_ready
from setpoint.engine.releasing import finalizers_of
from setpoint.engine.remembered import Remembered
from setpoint.engine.report import Ready
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import FailedStep, Management, Moment, Outcome, PlannedStep, Settled, StepPlan, Stopped
from setpoint.errors import RemoteRefused, SetpointError, StoreError

# How soon an owner that is not ready is looked at again, whatever its children tell.
NOT_READY_SECONDS: Final = 10.0


async def plan_owner(moment: Moment, owner: Owner) -> StepPlan:
    """The step of an owner that is to be there, stopped before it writes: the list of verbs."""
    if moment.management is Management.PAUSED:
        return plan_paused(moment)
    family = await look_at_family(moment.resource, owner, moment.world.store)
    moment = moment.caught_up(family.intent, _mark(family))
    work = work_for(moment, family)
    if moment.management is Management.OBSERVE:
        return _plan_observed(moment, work)
    trouble = work.reviews.trouble
    if trouble is None:
        return PlannedStep(work.plan, lambda: _write_children(moment, owner, work))
    if not work.plan.writes:
        return FailedStep(trouble, lambda: _write_children(moment, owner, work))
    begun = replace(work, plan=replace(work.plan, because=f"after this it stops: {trouble}"))
    return PlannedStep(begun.plan, lambda: _write_children(moment, owner, begun))


async def _write_children(moment: Moment, owner: Owner, work: Work) -> Outcome:
    moment = await _announce(await _hold(moment, owner), work)
    family = work.family
    made = {one.child.key: await _written(one, moment, owner, family) for one in work.to_write}
    return await _settle(moment, owner, work, made)


# --- Before anything is written ---------------------------------------------------------------------------------------


async def _hold(moment: Moment, owner: Owner) -> Moment:
    """With every finalizer that has to be there before there is a child."""
    missing = [one for one in finalizers_of(owner, moment.world.store) if one not in moment.resource.finalizers]
    if not missing:
        return moment
    held = await moment.world.store.set_finalizers(moment.resource, (*moment.resource.finalizers, *missing))
    assert held is not None
    return replace(moment, resource=held)


async def _announce(moment: Moment, work: Work) -> Moment:
    """With all that a later step has to know if this one ends in the middle."""
    before = moment.remembered
    generating = _generating(moment, work)
    contests = before.contests
    if _puts_back(moment, work.plan):
        contests = contests.begin(work.family.intent, work.plan.changes, _mark(work.family), moment.world.clock.now())
    if generating == before.generating and contests is before.contests:
        return moment
    # What an earlier step wrote, and could not say so, is known by now. Of what is made anew, the old says nothing.
    new = {one.child.key for one in work.to_write if one.child.key not in work.family.live}
    last = {key: memory for key, memory in _last(moment).items() if key not in new}
    known = {**last, **{key: memory_to_data(one) for key, one in work.reviews.known.items()}}
    moment = replace(moment, remembered=replace(before, generating=generating, contests=contests))
    return await moment.remember({LAST_GENERATED: known} if known else {})


def _generating(moment: Moment, work: Work) -> Tree | None:
    """What is about to be generated and was not before, or is made anew, as digests by child."""
    new, last, live = memory_of_children([one.child for one in work.to_write]), _last(moment), work.family.live
    assert isinstance(new, dict)
    found = {key: memory for key, memory in new.items() if key not in live or not same(memory, last.get(key))}
    return {**_unsettled(moment, work), **found} or None


def _unsettled(moment: Moment, work: Work) -> Tree:
    """What an earlier step was about to write of children that this one, in trouble, does not look at."""
    if work.reviews.trouble is None:
        return {}
    seen = {one.child.key for one in work.reviews.each}
    return {key: memory for key, memory in (moment.remembered.generating or {}).items() if key not in seen}


def _puts_back(moment: Moment, plan: Plan) -> bool:
    """Whether what differs is somebody else's doing: a step ended for this very intent, and something moved since."""
    is_drift = plan.decision is Decision.DRIFTED or bool(moment.remembered.contests.fields)
    return is_drift and bool(plan.writes)


def _last(moment: Moment) -> Mapping[str, Json]:
    found = moment.resource.status.get(LAST_GENERATED)
    return found if isinstance(found, Mapping) else {}


def _mark(family: Family) -> str:
    seen = family.live_digest
    return "" if isinstance(seen, Missing) else seen


# --- Writing, and after -----------------------------------------------------------------------------------------------


async def _written(review: Review, moment: Moment, owner: Owner, family: Family) -> Resource:
    """The child after its one write; a refusal is noted as well as raised."""
    child, live = review.child, family.live.get(review.child.key)
    try:
        if live is not None:
            return await moment.world.store.replace(live, review.document)
        return await moment.world.store.create(owner.completed(child) if child.lacks else child.object)
    except StoreError:
        raise
    except SetpointError as error:
        verb = "Create" if live is None else "Update"
        await moment.note(f"{ref_of(child).kind}{verb}Failed", str(error), is_warning=True)
        # Not the author's to mend: it may be a right, a quota, or a namespace that is missing.
        raise RemoteRefused(str(error)) from error


async def _settle(moment: Moment, owner: Owner, work: Work, made: Mapping[str, Resource]) -> Outcome:
    """On record what was done and how it stands; with trouble, why the rest could not be done."""
    before, trouble = moment.resource, work.reviews.trouble
    family = replace(work.family, live={**work.family.live, **made})
    moment = replace(moment, remembered=_remembered(moment, work, family))
    others = _looked_after(moment, work)
    if trouble is not None:
        moment = await moment.tell(report.failure(trouble, deleting=False), outputs_after(moment, work, None))
        await tell_people(moment, before, work)
        return Stopped(trouble, others)
    stands = owner.standing(before, family.live)
    ready = report.contested(work.plan.because) if work.withheld else stands.ready
    moment = await moment.tell(ready, outputs_after(moment, work, stands.outputs))
    await tell_people(moment, before, work)
    if ready.status != "True" and is_ready(before):
        await moment.note("NotReady", stands.lost, is_warning=True)
    return Settled(work.plan, ready, _again(moment, work, ready), others)


def _again(moment: Moment, work: Work, ready: Ready) -> float | None:
    """The seconds until there is something to do: a child to put back, or one that may be ready by then."""
    if work.withheld:
        return moment.remembered.contests.next_in(work.plan.withheld, moment.world.clock.now())
    return None if ready.status == "True" else NOT_READY_SECONDS


def _remembered(moment: Moment, work: Work, family: Family) -> Remembered:
    """The memory after the step: a cookie only where nothing is left to do."""
    before, live = moment.remembered, family.live_digest
    at = before.cookie
    if work.reviews.trouble is not None:
        at = None
    elif not work.withheld and not isinstance(live, Missing):
        at = Cookie(family.intent, live)
    contests = before.contests.done(moment.world.clock.now()) if before.contests.fields else before.contests
    left = _unsettled(moment, work) or None
    return replace(before, cookie=at, step=record_of(moment, work.plan, at), contests=contests, generating=left)


def _looked_after(moment: Moment, work: Work) -> tuple[ResourceRef, ...]:
    """The children that have steps of their own."""
    refs = (ref_of(child) for child in work.family.generated.children)
    return tuple(ref for ref in refs if (ref.group, ref.kind) in moment.world.sorts)


def _plan_observed(moment: Moment, work: Work) -> PlannedStep:
    """Drift of the children is reported, and nothing is written."""
    if work.reviews.trouble is not None:
        raise work.reviews.trouble
    plan = observed(work.plan)

    async def execute() -> Outcome:
        paths = tuple(str(change.path) for change in plan.withheld)
        ready = report.observed(paths, is_there=bool(work.family.live))
        await moment.tell(ready)
        return Settled(plan, ready)

    return PlannedStep(plan, execute)
