"""One step for one resource. START HERE.

A step looks, decides, plans, and does what is left to do. It may be killed after any await and taken again: what it is
about to do is on record before it does it, and every verb can run twice.
"""

import logging
from dataclasses import replace
from math import inf
from typing import Final, assert_never

from setpoint.core.decide import Decision, decide
from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.abilities import Awaited
from setpoint.engine.carrying_out import carry_out
from setpoint.engine.creation import Begun
from setpoint.engine.giving_way import has_to_give_way, plan_replacement
from setpoint.engine.holding import plan_observed, plan_paused
from setpoint.engine.intent import resolve
from setpoint.engine.kind import Intent, Look, Reconciliation, Unmoved
from setpoint.engine.looking import is_shown, look_for, rest
from setpoint.engine.operations import finish_operation
from setpoint.engine.owning import plan_owner
from setpoint.engine.planning import Planned, live_digest, mark_of, planned_for, rehearse
from setpoint.engine.releasing import plan_release
from setpoint.engine.remembered import REQUESTED, Remembered
from setpoint.engine.removal import may_resume_removal, plan_removal
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import (
    FINALIZER,
    FailedStep,
    Gone,
    Management,
    Moment,
    Outcome,
    PlannedStep,
    Scene,
    Settled,
    StepPlan,
    Stopped,
    World,
    moment_of,
)
from setpoint.engine.settling import settle
from setpoint.engine.waiting import show_unread
from setpoint.errors import (
    Bug,
    ManifestInvalid,
    RemoteError,
    RemoteUnavailable,
    Retry,
    SetpointError,
    StoreError,
    UserError,
)

_log: Final = logging.getLogger(__name__)


async def step(
    ref: ResourceRef, world: World, *, trigger: str = "a look", asked: bool = False, anew: bool = False
) -> Outcome:
    """One step for `ref`. `asked`: the author wants another try at what the service, or somebody else, does not follow.

    `trigger` is for people: what made somebody take this step. `anew`: a wait that ran out has all of its time again.
    """
    started = world.clock.monotonic()
    try:
        outcome = await _step(ref, world, trigger, asked=asked, anew=anew)
    except StoreError as error:
        outcome = Stopped(error)
    except Exception as error:  # noqa: BLE001 - ours to mend, and no reason to drop what else is going on
        _log.exception("step broke", extra={"ref": str(ref)})
        # Without its text, which may hold what nobody should see.
        outcome = Stopped(Bug(f"{type(error).__name__} in the step of {ref}: a bug of ours; the log has its traceback"))
    decision = outcome.plan.decision.value if isinstance(outcome, Settled) else ""
    seconds = world.clock.monotonic() - started
    world.metrics.stepped(ref.kind, _word(outcome), decision, seconds)
    return outcome


def _word(outcome: Outcome) -> str:
    return outcome.error.retry.name.lower() if isinstance(outcome, Stopped) else type(outcome).__name__.lower()


async def _step(ref: ResourceRef, world: World, trigger: str, *, asked: bool, anew: bool) -> Outcome:
    undisturbed = None if asked else await _at_rest(ref, world)
    if undisturbed is not None:
        return undisturbed
    if world.rests is not None:
        # From here on something may be written: what was remembered before then must not be gone by after.
        world.rests.drop(ref)
    resource = await world.store.get(ref)
    if resource is None:
        return Gone()
    try:
        moment = _moment(resource, world, trigger, asked=asked, anew=anew)
    except UserError as error:
        return Stopped(error)
    try:
        moment = await _resume(moment)
        return await (await plan_step(moment)).execute()
    except StoreError:
        raise
    except SetpointError as error:
        return await _stop(moment, error)


def _moment(resource: Resource, world: World, trigger: str, *, asked: bool, anew: bool) -> Moment:
    """The step of `resource` as it begins; ManifestInvalid for a kind that is not known here."""
    remembered = Remembered.of(resource)
    request = resource.annotations.get(REQUESTED)
    asked = asked or remembered.handled != request
    if asked:
        # What the service insists on is compared again, and a cookie that covers it would stand in the way.
        cookie = None if remembered.server_defaults else remembered.cookie
        remembered = replace(remembered, attempt=None, server_defaults={}, cookie=cookie, handled=request)
    return moment_of(resource, world, remembered, trigger=trigger, asked=asked, anew=anew or asked)


async def _resume(moment: Moment) -> Moment:
    """The moment once an operation that an earlier step began is done; what nothing is done for now asks nothing."""
    if not isinstance(moment, Scene) or moment.management is Management.PAUSED:
        return moment
    if moment.resource.is_deleting and not may_resume_removal(moment):
        return moment
    return await finish_operation(moment)


async def _at_rest(ref: ResourceRef, world: World) -> Outcome | None:
    """The outcome when everything that a step goes by is what it was when the last one found nothing left to do."""
    rest = world.rests.of(ref) if world.rests is not None else None
    if rest is None or world.clock.monotonic() >= rest.until:
        return None
    kind = world.kinds[ref.group, ref.kind]
    try:
        found = await kind.observe(rest.location, rest.body)
    except SetpointError as error:
        if isinstance(error, RemoteUnavailable) and not isinstance(kind, Awaited):
            return Stopped(error)
        # The step that follows looks again, and puts on record whatever this was.
        return None
    return Settled(Plan(Decision.IN_SYNC), report.UP_TO_DATE) if isinstance(found, Unmoved) else None


async def preview(ref: ResourceRef, world: World, *, trusting: bool = True) -> Plan:
    """The plan of the next step, stopped before it writes. What would stop the step is raised.

    Without trust in cookies, everything is compared.
    """
    resource = await world.store.get(ref)
    if resource is None:
        raise ManifestInvalid(f"{ref} is not declared: apply it first, or name its file with -f")
    remembered = Remembered.of(resource)
    remembered = remembered if trusting else replace(remembered, cookie=None, body=None)
    # What a listing showed is for the step alone.
    found = await plan_step(moment_of(resource, replace(world, sightings=None), remembered))
    match found:
        case PlannedStep():
            return found.plan
        case FailedStep():
            raise found.error
        case _:
            assert_never(found)


async def plan_step(moment: Moment) -> StepPlan:
    """The step as far as it goes without writing: kinds and owners, kept or deleted."""
    resource = moment.resource
    if isinstance(moment, Scene):
        return await (plan_removal(moment) if resource.is_deleting else _plan_object(moment))
    owner = moment.world.owners[resource.ref.group, resource.ref.kind]
    return await (plan_release(moment, owner) if resource.is_deleting else plan_owner(moment, owner))


async def _plan_object(scene: Scene) -> StepPlan:
    """The step of a resource that is to be there, stopped before it writes: the list of verbs."""
    if scene.management is Management.PAUSED:
        return plan_paused(scene)
    intent = await resolve(scene.resource, scene.world)
    _require_meaning(scene, intent)
    is_replaced = await has_to_give_way(scene, intent)
    try:
        look = Unmoved() if is_shown(intent, scene) else await look_for(intent, scene)
    except RemoteError as error:
        return _plan_unread(scene, error)
    if isinstance(look, Unmoved):
        return _plan_idle(scene, intent)
    begun = Begun.of(scene, intent, look)
    scene = replace(scene, remembered=begun.remembered).caught_up(intent.digest, mark_of(look))
    decision = _decide(intent, look, scene)
    scene = await rehearse(decision, intent, look, scene)
    planned = planned_for(decision, intent, look, scene)
    if is_replaced:
        return plan_replacement(scene, planned.plan)
    if scene.management is Management.OBSERVE:
        return plan_observed(scene, intent, look, planned.plan)
    return PlannedStep(begun.shown(planned.plan), lambda: _execute(scene, intent, look, planned, begun))


async def _execute(scene: Scene, intent: Intent, look: Look, planned: Planned, begun: Begun) -> Outcome:
    """The only verbs that write for a resource that is to be there."""
    scene = await begun.finish(intent, look, scene)
    scene = await _claim(scene, intent)
    scene, look, left = await carry_out(planned, intent, look, scene)
    return await settle(scene, look, begun.shown(planned.plan), left)


def _plan_idle(scene: Scene, intent: Intent) -> PlannedStep:
    plan = Plan(Decision.IN_SYNC)

    async def execute() -> Outcome:
        rest(scene, intent, scene.remembered.body, inf)
        return Settled(plan, report.UP_TO_DATE)

    return PlannedStep(plan, execute)


def _plan_unread(scene: Scene, error: RemoteError) -> FailedStep:
    async def execute() -> Outcome:
        await show_unread(scene, error)
        raise error

    return FailedStep(error, execute)


def _decide(intent: Intent, look: Look, scene: Scene) -> Decision:
    stateful = scene.kind.reconciliation is Reconciliation.STATEFUL
    return decide(scene.remembered.cookie if stateful else None, intent.digest, live_digest(look))


def _require_meaning(scene: Scene, intent: Intent) -> None:
    """ManifestInvalid for a spec that cannot mean anything; one that was carried out before means something."""
    cookie = scene.remembered.cookie
    if cookie is None or cookie.intent != intent.digest:
        _ = intent.declared


async def _claim(scene: Scene, intent: Intent) -> Scene:
    """Finalizer and location on record before any change: from here on the object cannot be forgotten."""
    if FINALIZER not in scene.resource.finalizers:
        held = await scene.world.store.set_finalizers(scene.resource, (*scene.resource.finalizers, FINALIZER))
        assert held is not None
        scene = replace(scene, resource=held)
    if scene.remembered.location == intent.location:
        return scene
    # What was begun elsewhere came to nothing, and what was settled there says nothing of this object.
    here = replace(scene.remembered, location=intent.location, creating=None, cookie=None, attempt=None)
    scene = replace(scene, remembered=here)
    return await scene.tell(report.updating("first look"))


async def _stop(scene: Moment, error: SetpointError) -> Outcome:
    """The step ends with `error` in the status, unless nothing is wrong with the resource: then another look is due."""
    if isinstance(error, RemoteUnavailable) or error.retry is Retry.STEP_AGAIN:
        return Stopped(error)
    # Read again, for the step may have written since.
    resource = await scene.world.store.get(scene.resource.ref)
    if resource is not None:
        remembered = replace(Remembered.of(resource), handled=scene.remembered.handled)
        now = replace(scene, resource=resource, remembered=remembered)
        await now.tell(report.failure(error, deleting=resource.is_deleting))
    return Stopped(error)
