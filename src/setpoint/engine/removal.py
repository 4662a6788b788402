"""The step of a resource that is to go. It goes by the location on record: its references may be gone already."""

from dataclasses import replace
from typing import Any, Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan, plan_delete
from setpoint.engine import report
from setpoint.engine.holding import plan_paused
from setpoint.engine.kind import Absent, AnyKind, Location, Present, look_at
from setpoint.engine.operations import wait_for
from setpoint.engine.resource import Resource
from setpoint.engine.scene import (
    DEFENDER,
    DELETION_POLICY,
    FINALIZER,
    Gone,
    Management,
    Outcome,
    PlannedStep,
    Scene,
    management_of,
)
from setpoint.errors import DeletionHeld, OperationRunning

_NEVER_MADE: Final = "nothing was made for it yet: there is nothing to delete"


async def plan_removal(scene: Scene) -> PlannedStep:
    """The step that deletes the object, or leaves it where it is to stay, and then releases the resource."""
    location = scene.remembered.location
    if FINALIZER not in scene.resource.finalizers:
        return PlannedStep(_nothing_to_delete(_NEVER_MADE), _is_gone)
    if scene.management is Management.PAUSED:
        return plan_paused(scene)
    if location is None:
        return PlannedStep(_nothing_to_delete(_NEVER_MADE), lambda: _let_go(scene))
    if is_abandoned(scene.resource, scene.kind):
        kept = _nothing_to_delete(f"the resource goes, and {location} stays as it is")
        return PlannedStep(kept, lambda: _let_go(scene))
    _require_free(scene.resource)
    look = await look_at(location, scene.kind)
    if isinstance(look, Absent):
        return PlannedStep(_nothing_to_delete(f"{location} is gone already"), lambda: _confirm_deleted(scene))
    return PlannedStep(plan_delete(Decision.INTENT_CHANGED), lambda: _delete(scene, location, look))


def may_resume_removal(scene: Scene) -> bool:
    """Whether the step of a resource being deleted asks about an operation that is still on record."""
    is_kept = scene.remembered.location is None or is_abandoned(scene.resource, scene.kind)
    return FINALIZER in scene.resource.finalizers and not is_kept and not is_held(scene.resource)


async def _delete(scene: Scene, location: Location, look: Present[Any]) -> Outcome:
    operation = await scene.kind.delete(location, look, scene.resource)
    if operation is not None:
        scene = replace(scene, remembered=replace(scene.remembered, operation=operation))
        await wait_for(operation, scene)
    if isinstance(await look_at(location, scene.kind), Present):
        raise OperationRunning(f"{location} was deleted and can still be seen", after=1)
    return await _confirm_deleted(scene)


async def _confirm_deleted(scene: Scene) -> Outcome:
    # Finalizers of other controllers may keep the resource for a while yet.
    return await _let_go(await scene.tell(report.DELETED))


def _nothing_to_delete(because: str) -> Plan:
    return Plan(Decision.INTENT_CHANGED, because=because)


async def _is_gone() -> Outcome:
    return Gone()


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
