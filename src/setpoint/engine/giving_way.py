"""A resource that is to stand for another object than before: refused, unless its author lets the first one go."""

from dataclasses import replace
from typing import NoReturn

from setpoint.core.plan import Action, Plan, Write
from setpoint.engine.abilities import Lasting, Replaceable
from setpoint.engine.kind import Absent, Intent, Present, look_at
from setpoint.engine.operations import wait_for
from setpoint.engine.remembered import Remembered
from setpoint.engine.removal import is_abandoned
from setpoint.engine.scene import Management, PlannedStep, Scene
from setpoint.errors import LocationChanged, OperationRunning


async def has_to_give_way(scene: Scene, intent: Intent) -> bool:
    """Whether the object of before is there, is another one, and is to go. LocationChanged when it may not."""
    before = scene.remembered.location
    if before is None or before == intent.location:
        return False
    kind = scene.kind
    if isinstance(kind, Lasting) and await kind.stands_for(scene.resource, intent.location):
        return False
    if isinstance(await look_at(before, kind), Absent):
        return False
    if isinstance(kind, Replaceable) and kind.may_replace(scene.resource) and scene.management is Management.FULL:
        # What is to outlive its resource outlives its place in it, too.
        return _was_made_ours(scene.remembered) and not is_abandoned(scene.resource, kind)
    raise LocationChanged(
        f"{scene.resource.ref} stands for {before} and cannot move to {intent.location}: "
        "put the old name or reference back, or delete the resource and apply it again"
    )


def _was_made_ours(memory: Remembered) -> bool:
    """Whether anything was sent to the object on record: one that was only meant to be taken over is another's."""
    is_under_way = memory.creating is not None or memory.operation is not None
    return memory.cookie is not None or memory.attempt is not None or is_under_way


def plan_replacement(scene: Scene, plan: Plan) -> PlannedStep:
    """The step of a resource whose object has to go before the other is made; `plan` is for that other."""
    return PlannedStep(_as_replacement(plan), lambda: _delete_before(scene))


async def _delete_before(scene: Scene) -> NoReturn:
    """Deletes the object of before, and ends the step: the next one makes the other, once this one is gone."""
    before = scene.remembered.location
    assert before is not None
    look = await look_at(before, scene.kind)
    if isinstance(look, Present):
        operation = await scene.kind.delete(before, look, scene.resource)
        if operation is not None:
            scene = replace(scene, remembered=replace(scene.remembered, operation=operation))
            await wait_for(operation, scene)
    raise OperationRunning(f"{before} gives way", after=0, begun=Action.REPLACE.value)


def _as_replacement(plan: Plan) -> Plan:
    """The plan of a step for an object in the place of another: that one goes even where nothing else is left to do."""
    writes = plan.writes or (Write(Action.REPLACE, "replace"),)
    return replace(plan, writes=tuple(replace(write, action=Action.REPLACE, name="replace") for write in writes))
