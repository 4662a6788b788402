"""Management that holds a step back: nothing is read, or nothing is written."""

from dataclasses import replace
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.contest import NO_CONTESTS
from setpoint.engine.kind import Look, Present
from setpoint.engine.scene import MANAGEMENT, Management, Outcome, Scene, Settled

OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


async def pause(scene: Scene) -> Outcome:
    """The step of a paused resource: what nobody puts back is not contested any more."""
    forgetting = replace(scene.remembered, contests=NO_CONTESTS)
    await replace(scene, remembered=forgetting).tell(report.PAUSED)
    return Settled(Plan(Decision.IN_SYNC), report.PAUSED)


async def observe_only(scene: Scene, plan: Plan, look: Look) -> Outcome:
    """The end of the step of an observed resource: what differs is told and left alone."""
    ready = report.observed(tuple(str(change.path) for change in plan.changes), is_there=isinstance(look, Present))
    await scene.tell(ready)
    return Settled(plan.hold(OBSERVE_ONLY), ready)
