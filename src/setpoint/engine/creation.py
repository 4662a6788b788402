"""A creation, from before its call to the last of what has to follow it.

It is on record before anything is sent. Whoever finds the object after a kill, or after an answer that was lost, goes
on with it, and does not take it for somebody else's.
"""

from dataclasses import dataclass, replace

from setpoint.core.plan import Action, Plan, Write
from setpoint.engine.kind import Absent, Intent, Look, Present
from setpoint.engine.operations import wait_for
from setpoint.engine.planning import wanted_tree
from setpoint.engine.record import is_of_creation
from setpoint.engine.remembered import Remembered
from setpoint.engine.scene import Management, Scene


async def begin_creation(scene: Scene, intent: Intent) -> Scene:
    """The scene with the creation on record, and the versions of the secrets that it hands over."""
    memory = replace(scene.remembered, creating=intent.resolved.versions)
    return await replace(scene, remembered=memory).remember()


async def forget_creation(scene: Scene) -> Scene:
    """The scene after it turned out that somebody else had made the object."""
    return await replace(scene, remembered=replace(scene.remembered, creating=None)).remember()


@dataclass(frozen=True, slots=True)
class Begun:
    """What an earlier step left unfinished of a creation; mostly nothing."""

    # The memory now, and once that is done.
    before: Remembered
    remembered: Remembered
    follow_up: "FollowUp | None" = None
    # Whether the object is there because that step made it, and was cut short before it could say so.
    is_creation: bool = False

    @staticmethod
    def of(scene: Scene, intent: Intent, look: Look) -> "Begun":
        """What is left to finish, seen from this look at the object."""
        memory, follow_up = scene.remembered, follow_up_of(scene, intent, look)
        is_made = memory.creating is not None and memory.location == intent.location and not isinstance(look, Absent)
        after = memory if follow_up is None else follow_up.remembered
        return Begun(memory, after, follow_up, is_made and not is_of_creation(memory.step))

    def shown(self, plan: Plan) -> Plan:
        """What a step did that ends a creation, for people: whatever it sends, the object is new."""
        if not self.is_creation:
            return plan
        return replace(plan, writes=(Write(Action.CREATE, "create", plan.changes),))

    async def finish(self, intent: Intent, look: Look, scene: Scene) -> Scene:
        """The scene once the creation is finished."""
        if self.follow_up is None:
            return scene
        # Until the follow-up is done, the creation stays on record.
        unfinished = replace(scene, remembered=self.before)
        done = await send_follow_up(self.follow_up, intent, look, unfinished)
        return replace(done, remembered=scene.remembered)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A write that has to follow a creation, and the memory once it is done."""

    write: Write
    remembered: Remembered


def follow_up_of(scene: Scene, intent: Intent, look: Look) -> FollowUp | None:
    """What has to follow the creation that was begun; None where none was, or nothing has to."""
    memory = scene.remembered
    creating = memory.creating if memory.location == intent.location else None
    if creating is None or isinstance(look, Absent) or scene.management is not Management.FULL:
        return None
    name = scene.kind.sending(intent).follow_up
    if name is None:
        return None
    after = replace(memory, creating=None, secrets={**memory.secrets, **creating})
    return FollowUp(Write(Action.CREATE, name), after)


async def send_follow_up(follow_up: FollowUp, intent: Intent, look: Look, scene: Scene) -> Scene:
    """The scene once the follow-up is done and on record."""
    assert isinstance(look, Present)
    operation = await scene.kind.update(intent, wanted_tree(intent, look, scene), follow_up.write, look)
    if operation is not None:
        await wait_for(operation, replace(scene, remembered=replace(scene.remembered, operation=operation)))
    return await replace(scene, remembered=follow_up.remembered).remember()
