"""One step for one resource. START HERE.

A step looks, decides, plans, and does what is left to do. It may be killed after any await and taken again: what it is
about to do is on record before it does it, and every verb can run twice.
"""

import logging
from dataclasses import replace
from typing import Any, Final, NoReturn, assert_never

from setpoint.core.canonical import digest
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision, decide
from setpoint.core.plan import Action, Plan, Write, plan_delete
from setpoint.core.values import Json
from setpoint.engine import report
from setpoint.engine.intent import resolve
from setpoint.engine.kind import Absent, Intent, Look, Operation, Present, Reconciliation, Unmoved, look_at
from setpoint.engine.planning import live_digest, plan_for, residual, wanted_tree
from setpoint.engine.remembered import REQUESTED, Attempt, Remembered
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.engine.rest import Rest
from setpoint.engine.scene import (
    DELETION_POLICY,
    FINALIZER,
    MANAGEMENT,
    Gone,
    Management,
    Outcome,
    Scene,
    Settled,
    Stopped,
    World,
)
from setpoint.errors import (
    Bug,
    LocationChanged,
    ManifestInvalid,
    OperationRunning,
    RemoteRefused,
    RemoteUnavailable,
    Retry,
    SetpointError,
    StoreError,
    UserError,
)

_log: Final = logging.getLogger(__name__)
OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


async def step(ref: ResourceRef, world: World, *, trigger: str = "a look", asked: bool = False) -> Outcome:
    """One step for `ref`. `asked`: the author wants another try at what the service would not follow.

    `trigger` is for people: what made somebody take this step.
    """
    started = world.clock.monotonic()
    try:
        outcome = await _step(ref, world, trigger, asked=asked)
    except StoreError as error:
        outcome = Stopped(error)
    except Exception as error:  # noqa: BLE001 - ours to mend, and no reason to drop what else is going on
        _log.exception("step broke", extra={"ref": str(ref)})
        # Without its text, which may hold what nobody should see.
        outcome = Stopped(Bug(f"{type(error).__name__} in the step of {ref}: a bug of ours; the log has its traceback"))
    decision = outcome.plan.decision.value if isinstance(outcome, Settled) else ""
    seconds = world.clock.monotonic() - started
    world.metrics.stepped(ref.kind, type(outcome).__name__.lower(), decision, seconds)
    return outcome


async def _step(ref: ResourceRef, world: World, trigger: str, *, asked: bool) -> Outcome:
    undisturbed = None if asked else await _at_rest(ref, world)
    if undisturbed is not None:
        return undisturbed
    resource = await world.store.get(ref)
    if resource is None:
        return Gone()
    remembered = Remembered.of(resource)
    request = resource.annotations.get(REQUESTED)
    if asked or remembered.handled != request:
        remembered = replace(remembered, attempt=None, handled=request)
    try:
        scene = Scene(world, resource, world.kind_of(resource), remembered, trigger)
    except UserError as error:
        return Stopped(error)
    try:
        return await (_remove(scene) if resource.is_deleting else _keep(scene))
    except StoreError:
        raise
    except SetpointError as error:
        return await _stop(scene, error)


async def _at_rest(ref: ResourceRef, world: World) -> Outcome | None:
    """The outcome when everything that a step goes by is what it was when the last one found nothing left to do."""
    rest = world.rests.of(ref) if world.rests is not None else None
    if rest is None:
        return None
    try:
        found = await world.kinds[ref.group, ref.kind].observe(rest.location, rest.body)
    except RemoteUnavailable as error:
        return Stopped(error)
    except SetpointError:
        # The step that follows looks again, and puts on record whatever this was.
        return None
    return Settled(Plan(Decision.IN_SYNC), report.UP_TO_DATE) if isinstance(found, Unmoved) else None


async def preview(ref: ResourceRef, world: World) -> Plan:
    """The plan of the next step, which is not taken: nothing is written. What would stop the step is raised."""
    resource = await world.store.get(ref)
    if resource is None:
        raise ManifestInvalid(f"{ref} is not declared: apply it first, or name its file with -f")
    scene = Scene(world, resource, world.kind_of(resource), Remembered.of(resource))
    if scene.management is Management.PAUSED:
        return Plan(Decision.IN_SYNC, because=report.PAUSED.message)
    if resource.is_deleting:
        return await _preview_removal(scene)
    intent = await resolve(resource, scene.kind, world.store)
    await _require_same_place(scene, intent)
    look = await look_at(intent.location, scene.kind)
    plan = plan_for(_decide(intent, look, scene), intent, look, scene)
    return plan.hold(OBSERVE_ONLY) if scene.management is Management.OBSERVE else plan


async def _keep(scene: Scene) -> Outcome:
    """The step of a resource that is to be there: the list of verbs."""
    if scene.management is Management.PAUSED:
        return await _pause(scene)
    scene = await _finish_operation(scene)
    intent = await resolve(scene.resource, scene.kind, scene.world.store)
    await _require_same_place(scene, intent)
    look = await look_at(intent.location, scene.kind)
    plan = plan_for(_decide(intent, look, scene), intent, look, scene)
    if scene.management is Management.OBSERVE:
        return await _observe_only(scene, plan, look)
    scene = await _claim(scene, intent)
    scene, look = await _carry_out(plan, intent, look, scene)
    return await _settle(scene, intent, look, plan)


def _decide(intent: Intent, look: Look, scene: Scene) -> Decision:
    stateful = scene.kind.reconciliation is Reconciliation.STATEFUL
    return decide(scene.remembered.cookie if stateful else None, intent.digest, live_digest(look))


async def _finish_operation(scene: Scene) -> Scene:
    """The scene once the operation on record is done; one that failed is forgotten, and its fields are sent again."""
    operation = scene.remembered.operation
    if operation is None:
        return scene
    try:
        done = await scene.kind.poll(operation)
    except RemoteRefused as error:
        forgetting = replace(scene, remembered=replace(scene.remembered, operation=None, attempt=None))
        await forgetting.tell(report.failure(error, deleting=scene.resource.is_deleting))
        raise
    if not done:
        raise OperationRunning(f"operation {operation.name} is running")
    return replace(scene, remembered=replace(scene.remembered, operation=None))


async def _pause(scene: Scene) -> Outcome:
    await scene.tell(report.PAUSED)
    return Settled(Plan(Decision.IN_SYNC), report.PAUSED)


async def _require_same_place(scene: Scene, intent: Intent) -> None:
    """LocationChanged when the resource would stand for another object than before, and the one before is there."""
    before = scene.remembered.location
    if before is None or before == intent.location or isinstance(await look_at(before, scene.kind), Absent):
        return
    raise LocationChanged(
        f"{scene.resource.ref} stands for {before} and cannot move to {intent.location}: "
        "put the old name or reference back, or delete the resource and apply it again"
    )


async def _observe_only(scene: Scene, plan: Plan, look: Look) -> Outcome:
    ready = report.observed(tuple(str(change.path) for change in plan.changes), is_there=isinstance(look, Present))
    await scene.tell(ready)
    return Settled(plan.hold(OBSERVE_ONLY), ready)


async def _claim(scene: Scene, intent: Intent) -> Scene:
    """Finalizer and location on record before any change: from here on the object cannot be forgotten."""
    if FINALIZER not in scene.resource.finalizers:
        held = await scene.world.store.set_finalizers(scene.resource, (*scene.resource.finalizers, FINALIZER))
        assert held is not None
        scene = replace(scene, resource=held)
    if scene.remembered.location == intent.location:
        return scene
    scene = replace(scene, remembered=replace(scene.remembered, location=intent.location))
    return await scene.tell(report.updating("first look"))


async def _carry_out(plan: Plan, intent: Intent, look: Look, scene: Scene) -> tuple[Scene, Look]:
    """The only place that changes the world: one write, a look at what it did, and what is left is planned again."""
    planned = plan
    while plan.writes:
        write = plan.writes[0]
        operation = await _send(write, intent, look, scene)
        scene = replace(scene, remembered=_after_sending(scene.remembered, write, intent, operation))
        if operation is not None:
            record = _record(scene, planned)
            await _wait_for(operation, replace(scene, remembered=replace(scene.remembered, step=record)), planned)
        look = await look_at(intent.location, scene.kind)
        if isinstance(look, Absent):
            raise OperationRunning(f"{intent.location} was written and cannot be seen yet", after=1)
        plan = plan_for(plan.decision, intent, look, scene)
    return scene, look


async def _wait_for(operation: Operation, scene: Scene, plan: Plan | None = None) -> NoReturn:
    """Ends the step with the operation on record: the next one asks how it went."""
    running = OperationRunning(f"operation {operation.name} is running")
    scene = await scene.tell(report.failure(running, deleting=scene.resource.is_deleting))
    if plan is not None:
        await scene.note(*_told(plan))
    raise running


async def _send(write: Write, intent: Intent, look: Look, scene: Scene) -> Operation | None:
    wanted = wanted_tree(intent, look, scene)
    match write.action:
        case Action.CREATE:
            return await scene.kind.create(intent, wanted)
        case Action.UPDATE | Action.REPLACE:
            assert isinstance(look, Present)
            return await scene.kind.update(intent, wanted, write, look)
        case Action.DELETE:
            assert isinstance(look, Present)
            return await scene.kind.delete(intent.location, look, scene.resource)
        case _:
            assert_never(write.action)


def _after_sending(before: Remembered, write: Write, intent: Intent, operation: Operation | None) -> Remembered:
    attempt = before.attempt
    if attempt is None or attempt.intent != intent.digest or attempt.stuck_at is not None:
        attempt = Attempt(intent.digest)
    # A create says everything at once: what differs after it has not been sent as a change of its own.
    sent = () if write.action is Action.CREATE else tuple(str(change.path) for change in write.changes)
    attempt = replace(attempt, sent=(*attempt.sent, *sent))
    return replace(before, attempt=attempt, operation=operation, secrets=intent.resolved.versions)


async def _settle(scene: Scene, intent: Intent, look: Look, plan: Plan) -> Outcome:
    """On record that nothing is left to do: the cookie, the outputs, Ready; or the residual."""
    assert isinstance(look, Present)
    at = Cookie(intent.digest, digest(look.live))
    said, unsaid = _left(scene, intent, look, plan)
    stateful = scene.kind.reconciliation is Reconciliation.STATEFUL
    if said:
        attempt = replace(scene.remembered.attempt or Attempt(intent.digest), intent=intent.digest, stuck_at=at)
        remembered = replace(scene.remembered, attempt=attempt, cookie=None)
    else:
        cookie = at if stateful else None
        remembered = replace(scene.remembered, attempt=None, cookie=cookie, server_defaults=unsaid)
    remembered = replace(remembered, operation=None, secrets=intent.resolved.versions, step=_record(scene, plan, at))
    ready = report.not_converged(said) if said else report.UP_TO_DATE
    scene = await replace(scene, remembered=remembered).tell(ready, look.outputs)
    if ready is report.UP_TO_DATE and stateful:
        _rest(scene, intent, look)
    if plan.writes:
        await scene.note(*_told(plan))
    return Settled(plan, ready)


def _rest(scene: Scene, intent: Intent, look: Present[Any]) -> None:
    """Remembered by this process, so that the next step need not read what has not changed."""
    rests, resource = scene.world.rests, scene.resource
    if rests is not None and look.body is not None:
        needs = tuple(intent.resolved.seen.items())
        rests.keep(resource.ref, Rest(resource.revision, needs, intent.location, look.body))


def _told(plan: Plan) -> tuple[str, str]:
    """What a step did, for people: the reason and the fields, values left out."""
    paths = [str(change.path) for change in plan.changes]
    fields = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
    created = plan.writes[0].action is Action.CREATE
    return ("Created", f"created with {fields}") if created else ("Updated", f"{plan.decision.value}: set {fields}")


def _left(scene: Scene, intent: Intent, look: Look, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What still differs; on the fast path nothing can but what was accepted before."""
    if plan.decision is Decision.IN_SYNC:
        return (), scene.remembered.server_defaults
    return residual(intent, look, scene)


def _record(scene: Scene, plan: Plan, at: Cookie | None = None) -> Tree | None:
    """What `setpoint explain` shows: the last step that did or found something; an idle one changes nothing."""
    last, before = scene.remembered.step, scene.remembered.cookie
    is_end_of_another = scene.remembered.attempt is not None
    is_idle = is_end_of_another or plan.decision in (Decision.IN_SYNC, Decision.FIRST_LOOK)
    if last is not None and is_idle and not plan.writes:
        return last
    digests: dict[str, Json] = {"before": _text(before), "after": _text(at)}
    return {"at": scene.world.clock.now(), "trigger": scene.trigger, "cookie": digests, **plan.to_data()}


def _text(cookie: Cookie | None) -> str | None:
    return None if cookie is None else str(cookie)


async def _stop(scene: Scene, error: SetpointError) -> Outcome:
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


# --- Deletion ---------------------------------------------------------------------------------------------------------


async def _remove(scene: Scene) -> Outcome:
    """The step of a resource that is to go. It goes by the location on record: its references may be gone already."""
    location = scene.remembered.location
    if FINALIZER not in scene.resource.finalizers:
        return Gone()
    if scene.management is Management.PAUSED:
        return await _pause(scene)
    if location is None or _is_abandoned(scene):
        return await _let_go(scene)
    scene = await _finish_operation(scene)
    look = await look_at(location, scene.kind)
    if isinstance(look, Present):
        operation = await scene.kind.delete(location, look, scene.resource)
        if operation is not None:
            scene = replace(scene, remembered=replace(scene.remembered, operation=operation))
            await _wait_for(operation, scene)
        if isinstance(await look_at(location, scene.kind), Present):
            raise OperationRunning(f"{location} was deleted and can still be seen", after=1)
    return await _let_go(scene)


def _is_abandoned(scene: Scene) -> bool:
    """Whether the object is to stay: by its deletion policy, or because nothing is ever written."""
    by_annotation = scene.resource.annotations.get(DELETION_POLICY) == "abandon"
    return by_annotation or scene.kind.abandons(scene.resource) or scene.management is Management.OBSERVE


async def _preview_removal(scene: Scene) -> Plan:
    location = scene.remembered.location
    if location is None or FINALIZER not in scene.resource.finalizers:
        return Plan(Decision.INTENT_CHANGED, because="nothing was made for it yet: there is nothing to delete")
    if _is_abandoned(scene):
        return Plan(Decision.INTENT_CHANGED, because=f"the resource goes, and {location} stays as it is")
    if isinstance(await look_at(location, scene.kind), Absent):
        return Plan(Decision.INTENT_CHANGED, because=f"{location} is gone already")
    return plan_delete(Decision.INTENT_CHANGED)


async def _let_go(scene: Scene) -> Outcome:
    rest = tuple(one for one in scene.resource.finalizers if one != FINALIZER)
    await scene.world.store.set_finalizers(scene.resource, rest)
    return Gone()
