"""Management that holds a step back: nothing is read, or nothing is written."""

from dataclasses import replace
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.contest import NO_CONTESTS
from setpoint.engine.kind import Intent, Look, Present
from setpoint.engine.remembered import outputs_in
from setpoint.engine.scene import MANAGEMENT, Management, Moment, Outcome, Scene, Settled, Stopped
from setpoint.engine.waiting import waited

OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


async def pause(scene: Moment) -> Outcome:
    """The step of a paused resource: what nobody puts back is not contested any more."""
    forgetting = replace(scene.remembered, contests=NO_CONTESTS)
    await replace(scene, remembered=forgetting).tell(report.PAUSED)
    return Settled(Plan(Decision.IN_SYNC), report.PAUSED)


async def observe_only(scene: Scene, intent: Intent, plan: Plan, look: Look) -> Outcome:
    """The end of the step of an observed resource: what differs is told and left alone. What it waits for counts."""
    ready = report.observed(tuple(str(change.path) for change in plan.changes), is_there=isinstance(look, Present))
    wait = waited(scene, intent, look)
    if wait is None:
        await scene.tell(ready)
        return Settled(plan.hold(OBSERVE_ONLY), ready)
    trouble = wait.trouble if ready.status == "True" else None
    if trouble is not None:
        ready = wait.ready
    scene = replace(scene, remembered=replace(scene.remembered, wait=wait.memory))
    await scene.tell(ready, {**outputs_in(scene.resource.status), **wait.shown})
    return Settled(plan.hold(OBSERVE_ONLY), ready) if trouble is None else Stopped(trouble)
