"""Work that a service goes on with after it answered: a step ends with it on record, and a later one asks about it."""

from dataclasses import replace
from typing import NoReturn

from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.kind import Operation
from setpoint.engine.record import told
from setpoint.engine.scene import Scene
from setpoint.errors import OperationRunning, RemoteRefused


async def finish_operation(scene: Scene) -> Scene:
    """The scene once the operation on record is done; one that failed is forgotten, and its fields are sent again."""
    operation = scene.remembered.operation
    if operation is None:
        return scene
    try:
        done = await scene.kind.poll(operation)
    except RemoteRefused as error:
        contests = scene.remembered.contests.undone()
        forgetting = replace(scene.remembered, operation=None, attempt=None, contests=contests)
        told_so = report.failure(error, deleting=scene.resource.is_deleting)
        await replace(scene, remembered=forgetting).tell(told_so)
        raise
    if not done:
        raise OperationRunning(f"operation {operation.name} is running")
    return replace(scene, remembered=replace(scene.remembered, operation=None))


async def wait_for(operation: Operation, scene: Scene, plan: Plan | None = None) -> NoReturn:
    """Ends the step with the operation on record: the next one asks how it went."""
    begun = plan.writes[0].action.value if plan is not None and plan.writes else ""
    running = OperationRunning(f"operation {operation.name} is running", begun=begun)
    scene = await scene.tell(report.failure(running, deleting=scene.resource.is_deleting))
    if plan is not None:
        await scene.note(*told(plan))
    raise running
