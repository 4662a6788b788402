"""The step of a resource that is to go. It goes by the location on record: its references may be gone already."""

from dataclasses import replace

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan, plan_delete
from setpoint.engine import report
from setpoint.engine.holding import pause
from setpoint.engine.kind import Absent, AnyKind, Present, look_at
from setpoint.engine.operations import finish_operation, wait_for
from setpoint.engine.resource import Resource
from setpoint.engine.scene import (
    DEFENDER,
    DELETION_POLICY,
    FINALIZER,
    Gone,
    Management,
    Outcome,
    Scene,
    management_of,
)
from setpoint.errors import DeletionHeld, OperationRunning


async def remove(scene: Scene) -> Outcome:
    """Removes the object, or leaves it where it is to stay, and lets the resource go once that is done."""
    location = scene.remembered.location
    if FINALIZER not in scene.resource.finalizers:
        return Gone()
    if scene.management is Management.PAUSED:
        return await pause(scene)
    if location is None or is_abandoned(scene.resource, scene.kind):
        return await _let_go(scene)
    _require_free(scene.resource)
    scene = await finish_operation(scene)
    look = await look_at(location, scene.kind)
    if isinstance(look, Present):
        operation = await scene.kind.delete(location, look, scene.resource)
        if operation is not None:
            scene = replace(scene, remembered=replace(scene.remembered, operation=operation))
            await wait_for(operation, scene)
        if isinstance(await look_at(location, scene.kind), Present):
            raise OperationRunning(f"{location} was deleted and can still be seen", after=1)
    # Others may hold the resource for a while yet.
    return await _let_go(await scene.tell(report.DELETED))


async def preview_removal(scene: Scene) -> Plan:
    """The plan of that step, which is not taken."""
    location = scene.remembered.location
    if location is None or FINALIZER not in scene.resource.finalizers:
        return Plan(Decision.INTENT_CHANGED, because="nothing was made for it yet: there is nothing to delete")
    if is_abandoned(scene.resource, scene.kind):
        return Plan(Decision.INTENT_CHANGED, because=f"the resource goes, and {location} stays as it is")
    _require_free(scene.resource)
    if isinstance(await look_at(location, scene.kind), Absent):
        return Plan(Decision.INTENT_CHANGED, because=f"{location} is gone already")
    return plan_delete(Decision.INTENT_CHANGED)


def is_abandoned(resource: Resource, kind: AnyKind) -> bool:
    """Whether the object is to stay: by its deletion policy, or because nothing is ever written."""
    by_annotation = resource.annotations.get(DELETION_POLICY) == "abandon"
    is_observed = management_of(resource.annotations) is Management.OBSERVE
    return by_annotation or kind.abandons(resource) or is_observed


def is_held(resource: Resource) -> bool:
    """Whether it may be that nobody wants this one deleted: its whole kind goes, as when something is uninstalled."""
    return resource.is_deleting and DEFENDER in resource.finalizers


def _require_free(resource: Resource) -> None:
    if is_held(resource):
        raise DeletionHeld(
            f"the finalizer {DEFENDER} says that nothing may be deleted yet. Config Connector takes it off, unless its "
            "kind is being deleted altogether; where Config Connector is gone, `setpoint migrate --from "
            "config-connector --finish` takes it off. To let go of the resource and leave the object alone, annotate "
            f"it with {DELETION_POLICY}: abandon"
        )


async def _let_go(scene: Scene) -> Outcome:
    rest = tuple(one for one in scene.resource.finalizers if one != FINALIZER)
    await scene.world.store.set_finalizers(scene.resource, rest)
    return Gone()
