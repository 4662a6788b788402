"""One step for one resource. START HERE.

A step looks, decides, plans, and does what is left to do. It may be killed after any await and taken again: what it is
about to do is on record before it does it, and every verb can run twice.
"""

import logging
from dataclasses import replace
from math import inf
from typing import Final

from setpoint.core.decide import Decision, decide
from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.abilities import Awaited
from setpoint.engine.carrying_out import carry_out
from setpoint.engine.creation import as_creation, finish_creation, is_begun
from setpoint.engine.giving_way import as_replacement, give_way, has_to_give_way
from setpoint.engine.holding import OBSERVE_ONLY, observe_only, pause
from setpoint.engine.intent import resolve
from setpoint.engine.kind import Intent, Look, Reconciliation, Unmoved
from setpoint.engine.looking import is_shown, look_for, rest
from setpoint.engine.operations import finish_operation
from setpoint.engine.owning import own, preview_family
from setpoint.engine.planning import live_digest, mark_of, planned_for, rehearse
from setpoint.engine.releasing import preview_release, release
from setpoint.engine.remembered import REQUESTED, Remembered
from setpoint.engine.removal import preview_removal, remove
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import FINALIZER, Gone, Management, Moment, Outcome, Scene, Settled, Stopped, World, scene_of
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
    remembered = Remembered.of(resource)
    request = resource.annotations.get(REQUESTED)
    asked = asked or remembered.handled != request
    if asked:
        # What the service insists on is compared again, and a cookie that covers it would stand in the way.
        cookie = None if remembered.server_defaults else remembered.cookie
        remembered = replace(remembered, attempt=None, server_defaults={}, cookie=cookie, handled=request)
    try:
        world.sort_of(resource)
    except UserError as error:
        return Stopped(error)
    moment = Moment(world, resource, remembered, trigger, asked, anew or asked)
    try:
        return await _step_of(moment)
    except StoreError:
        raise
    except SetpointError as error:
        return await _stop(moment, error)


async def _step_of(moment: Moment) -> Outcome:
    world, resource = moment.world, moment.resource
    owner = world.owners.get((resource.ref.group, resource.ref.kind))
    if owner is not None:
        moment = replace(moment, least=owner.least)
        return await (release(moment, owner) if resource.is_deleting else own(moment, owner))
    scene = scene_of(moment, world.kind_of(resource))
    return await (remove(scene) if resource.is_deleting else _keep(scene))


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
    """The plan of the next step, which is not taken: nothing is written. What would stop the step is raised.

    Whoever does not trust cookies has everything compared.
    """
    resource = await world.store.get(ref)
    if resource is None:
        raise ManifestInvalid(f"{ref} is not declared: apply it first, or name its file with -f")
    remembered = Remembered.of(resource)
    moment = Moment(world, resource, remembered if trusting else replace(remembered, cookie=None, body=None))
    owner = world.owners.get((ref.group, ref.kind))
    if owner is not None:
        return await (preview_release(moment, owner) if resource.is_deleting else preview_family(moment, owner))
    scene = scene_of(moment, world.kind_of(resource))
    if scene.management is Management.PAUSED:
        return Plan(Decision.IN_SYNC, because=report.PAUSED.message)
    if resource.is_deleting:
        return await preview_removal(scene)
    intent = await resolve(resource, world)
    _require_meaning(scene, intent)
    is_moving = await has_to_give_way(scene, intent)
    look = await look_for(intent, scene)
    if isinstance(look, Unmoved):
        return Plan(Decision.IN_SYNC)
    scene, decision = scene.caught_up(intent.digest, mark_of(look)), _decide(intent, look, scene)
    plan = planned_for(decision, intent, look, await rehearse(decision, intent, look, scene)).plan
    plan = as_replacement(plan) if is_moving else plan
    return plan.hold(OBSERVE_ONLY) if scene.management is Management.OBSERVE else plan


async def _keep(scene: Scene) -> Outcome:
    """The step of a resource that is to be there: the list of verbs."""
    if scene.management is Management.PAUSED:
        return await pause(scene)
    scene = await finish_operation(scene)
    intent = await resolve(scene.resource, scene.world)
    _require_meaning(scene, intent)
    if await has_to_give_way(scene, intent):
        await give_way(scene)
    look = Unmoved() if is_shown(intent, scene) else await _look_at_it(intent, scene)
    if isinstance(look, Unmoved):
        rest(scene, intent, scene.remembered.body, inf)
        return Settled(Plan(Decision.IN_SYNC), report.UP_TO_DATE)
    was_begun = is_begun(scene, intent, look)
    scene = (await finish_creation(scene, intent, look)).caught_up(intent.digest, mark_of(look))
    decision = _decide(intent, look, scene)
    scene = await rehearse(decision, intent, look, scene)
    planned = planned_for(decision, intent, look, scene)
    if scene.management is Management.OBSERVE:
        return await observe_only(scene, intent, planned.plan, look)
    scene = await _claim(scene, intent)
    scene, look, left = await carry_out(planned, intent, look, scene)
    return await settle(scene, look, as_creation(planned.plan) if was_begun else planned.plan, left)


async def _look_at_it(intent: Intent, scene: Scene) -> Look | Unmoved:
    try:
        return await look_for(intent, scene)
    except RemoteError as error:
        await show_unread(scene, error)
        raise


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
