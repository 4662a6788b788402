"""The only place that changes the world for a resource that is to be there."""

from dataclasses import replace
from typing import assert_never

from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan, Write
from setpoint.engine.creation import begin_creation, follow_up_of, forget_creation, send_follow_up
from setpoint.engine.kind import Absent, Intent, Look, Operation, Present, Reconciliation, look_at
from setpoint.engine.operations import wait_for
from setpoint.engine.planning import Planned, mark_of, planned_for, rehearse, wanted_tree
from setpoint.engine.record import record_of
from setpoint.engine.references import is_ready
from setpoint.engine.remembered import Attempt, Remembered
from setpoint.engine.scene import Scene
from setpoint.errors import OperationRunning, RemoteConflict


async def carry_out(planned: Planned, intent: Intent, look: Look, scene: Scene) -> tuple[Scene, Look, Planned]:
    """One write, a look at what it did, and what is left is planned again; until there is nothing left to send now."""
    first = planned.plan
    while planned.plan.writes:
        write = planned.plan.writes[0]
        scene = await _begin(planned.plan, intent, look, scene)
        scene, operation = await _sent(write, planned.followed, look, scene)
        scene = replace(scene, remembered=_after_sending(scene.remembered, write, intent, operation))
        if operation is not None:
            record = record_of(scene, first)
            await wait_for(operation, replace(scene, remembered=replace(scene.remembered, step=record)), first)
        look = await look_at(intent.location, scene.kind)
        if isinstance(look, Absent):
            raise _not_seen(write, intent)
        follow_up = follow_up_of(scene, intent, look)
        if follow_up is not None:
            scene = await send_follow_up(follow_up, intent, look, scene)
        scene = await rehearse(first.decision, intent, look, scene)
        planned = planned_for(first.decision, intent, look, scene)
    return scene, look, planned


def _not_seen(write: Write, intent: Intent) -> OperationRunning:
    if write.action is Action.REPLACE:
        # The next step makes it anew.
        return OperationRunning(f"{intent.location} gives way", after=0, begun=write.action.value)
    return OperationRunning(f"{intent.location} was written and cannot be seen yet", after=1)


async def _begin(plan: Plan, intent: Intent, look: Look, scene: Scene) -> Scene:
    """The scene with every put-back in `plan` on record: whoever comes after a kill knows that it was begun."""
    if not _puts_back(plan.decision, intent, scene):
        return scene
    before, now = scene.remembered, scene.world.clock.now()
    contests = before.contests.begin(intent.digest, plan.changes, mark_of(look), now)
    return await replace(scene, remembered=replace(before, contests=contests)).remember()


def _puts_back(decision: Decision, intent: Intent, scene: Scene) -> bool:
    """Whether what differs is somebody else's doing: a step ended for this very intent, and something moved since."""
    if decision is not Decision.FIRST_LOOK:
        return decision is Decision.DRIFTED
    attempt = scene.remembered.attempt
    stuck_at = None if attempt is None else attempt.stuck_at
    was_stuck = stuck_at is not None and stuck_at.intent == intent.digest
    is_stateless = scene.kind.reconciliation is Reconciliation.STATELESS
    return bool(scene.remembered.contests.fields) or was_stuck or (is_stateless and is_ready(scene.resource))


async def _sent(write: Write, intent: Intent, look: Look, scene: Scene) -> tuple[Scene, Operation | None]:
    """The scene after the write, and what the service goes on with. A creation is on record before it is sent."""
    if write.action is not Action.CREATE:
        return scene, await _send(write, intent, look, scene)
    is_new = scene.remembered.creating is None
    scene = await begin_creation(scene, intent)
    try:
        return scene, await _send(write, intent, look, scene)
    except RemoteConflict:
        # Somebody has made it; unless an answer to an earlier request was lost, it was somebody else.
        if is_new:
            await forget_creation(scene)
        raise


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
    versions = intent.resolved.versions
    # Those of later writes are still to be sent.
    told = versions if write.action is Action.CREATE else {path: versions[path] for path in sent if path in versions}
    return replace(before, attempt=attempt, operation=operation, secrets={**before.secrets, **told})
