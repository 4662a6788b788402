"""A creation, from before its call to the last of what has to follow it.

It is on record before anything is sent. Whoever finds the object after a kill, or after an answer that was lost, goes
on with it, and does not take it for somebody else's.
"""

from dataclasses import replace

from setpoint.core.plan import Action, Plan, Write
from setpoint.engine.kind import Absent, Intent, Look
from setpoint.engine.operations import wait_for
from setpoint.engine.planning import wanted_tree
from setpoint.engine.record import is_of_creation
from setpoint.engine.scene import Management, Scene


async def begin_creation(scene: Scene, intent: Intent) -> Scene:
    """The scene with the creation on record, and the versions of the secrets that it hands over."""
    memory = replace(scene.remembered, creating=intent.resolved.versions)
    return await replace(scene, remembered=memory).remember()


async def forget_creation(scene: Scene) -> Scene:
    """The scene after it turned out that somebody else had made the object."""
    return await replace(scene, remembered=replace(scene.remembered, creating=None)).remember()


def is_begun(scene: Scene, intent: Intent, look: Look) -> bool:
    """Whether the object is there because an earlier step made it, and was cut short before it could say so."""
    memory = scene.remembered
    is_ours = memory.creating is not None and memory.location == intent.location and not isinstance(look, Absent)
    return is_ours and not is_of_creation(memory.step)


def as_creation(plan: Plan) -> Plan:
    """What a step did that ends a creation, for people: whatever it sent, the object is new."""
    return replace(plan, writes=(Write(Action.CREATE, "create", plan.changes),))


async def finish_creation(scene: Scene, intent: Intent, look: Look) -> Scene:
    """The scene once everything is done that has to follow the making of an object, where one was begun."""
    creating = scene.remembered.creating if scene.remembered.location == intent.location else None
    if creating is None or isinstance(look, Absent) or scene.management is not Management.FULL:
        return scene
    follow_up = scene.kind.sending(intent).follow_up
    if follow_up is None:
        return scene
    write = Write(Action.CREATE, follow_up)
    operation = await scene.kind.update(intent, wanted_tree(intent, look, scene), write, look)
    if operation is not None:
        await wait_for(operation, replace(scene, remembered=replace(scene.remembered, operation=operation)))
    memory = replace(scene.remembered, creating=None, secrets={**scene.remembered.secrets, **creating})
    return await replace(scene, remembered=memory).remember()
