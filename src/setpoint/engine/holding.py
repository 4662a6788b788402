"""Management that holds a step back: nothing is read, or nothing is written."""

from dataclasses import replace
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Hold, Plan
from setpoint.engine import report
from setpoint.engine.contest import NO_CONTESTS
from setpoint.engine.kind import Intent, Look, Present
from setpoint.engine.remembered import outputs_in
from setpoint.engine.scene import (
    MANAGEMENT,
    Management,
    Moment,
    Outcome,
    PlannedStep,
    Scene,
    Settled,
    Stopped,
)
from setpoint.engine.waiting import waited

OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


def plan_paused(scene: Moment) -> PlannedStep:
    """The step of a paused resource: nothing is read, and only the condition is written."""
    plan = Plan(Decision.IN_SYNC, because=report.PAUSED.message, held=Hold.PAUSED)

    async def execute() -> Outcome:
        # A field that is not put back any more is not contested any more.
        forgetting = replace(scene.remembered, contests=NO_CONTESTS)
        await replace(scene, remembered=forgetting).tell(report.PAUSED)
        return Settled(plan, report.PAUSED)

    return PlannedStep(plan, execute)


def plan_observed(scene: Scene, intent: Intent, look: Look, plan: Plan) -> PlannedStep:
    """The step of an observed resource: drift is reported in the condition, and nothing is written to the service."""
    held = observed(plan)
    return PlannedStep(held, lambda: _report_drift(scene, intent, look, held))


def observed(plan: Plan) -> Plan:
    """The plan of a resource that is only observed."""
    return plan.hold(Hold.OBSERVED, OBSERVE_ONLY)


async def _report_drift(scene: Scene, intent: Intent, look: Look, plan: Plan) -> Outcome:
    ready = report.observed(tuple(str(change.path) for change in plan.withheld), is_there=isinstance(look, Present))
    wait = waited(scene, intent, look)
    if wait is None:
        await scene.tell(ready)
        return Settled(plan, ready)
    trouble = wait.trouble if ready.status == "True" else None
    if trouble is not None:
        ready = wait.ready
    scene = replace(scene, remembered=replace(scene.remembered, wait=wait.memory))
    await scene.tell(ready, {**outputs_in(scene.resource.status), **wait.shown})
    return Settled(plan, ready) if trouble is None else Stopped(trouble)
