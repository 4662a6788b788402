"""The step of an owner that is to go: what has to go before it goes first."""

from collections.abc import Sequence
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.owners import Ownership, ownership
from setpoint.core.plan import Action, Plan, Write
from setpoint.engine.holding import plan_paused
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Query, Store
from setpoint.engine.report import listed
from setpoint.engine.resource import Resource
from setpoint.engine.scene import Gone, Management, Moment, Outcome, PlannedStep, Stopped
from setpoint.errors import OperationRunning

# Held where nobody else removes the children of what is gone.
CHILDREN_FINALIZER: Final = "setpoint.dev/children"


def finalizers_of(owner: Owner, store: Store) -> tuple[str, ...]:
    """What holds a resource of this owner until its children are dealt with."""
    own = (owner.finalizer,) if owner.finalizer else ()
    return own if store.collects else (*own, CHILDREN_FINALIZER)


async def plan_release(moment: Moment, owner: Owner) -> PlannedStep:
    """The step that deletes the children that have to go first, and then releases the resource."""
    resource, ours = moment.resource, finalizers_of(owner, moment.world.store)
    if not set(ours) & set(resource.finalizers):
        return PlannedStep(_release_plan(()), _is_gone)
    if moment.management is Management.PAUSED:
        return plan_paused(moment)
    # Where nothing is ever written, the children stay.
    going = () if moment.management is Management.OBSERVE else await _going(moment, owner)
    return PlannedStep(_release_plan(going), lambda: _release(moment, owner, going))


def _release_plan(going: Sequence[Resource]) -> Plan:
    writes = tuple(Write(Action.DELETE, f"{child.ref.kind}/{child.ref.name}") for child in going)
    because = "" if writes else "nothing has to go before it"
    return Plan(Decision.INTENT_CHANGED, writes, because=because)


async def _release(moment: Moment, owner: Owner, going: Sequence[Resource]) -> Outcome:
    """Deletes what has to go first, and lets the resource go once that is done. What is gone already is done."""
    store = moment.world.store
    for child in going:
        if not child.is_deleting:
            await store.delete(child.ref)
    seen = await _going(moment, owner) if going else ()
    left = [child for child in seen if not (store.collects and child.is_deleting)]
    if left:
        names = listed(str(child.ref) for child in left)
        others = tuple(child.ref for child in left if (child.ref.group, child.ref.kind) in moment.world.sorts)
        return Stopped(OperationRunning(f"{names} has to go first, and is still there", after=1), others)
    ours = finalizers_of(owner, store)
    rest = tuple(one for one in moment.resource.finalizers if one not in ours)
    await store.set_finalizers(moment.resource, rest)
    return Gone()


async def _is_gone() -> Outcome:
    return Gone()


async def _going(moment: Moment, owner: Owner) -> Sequence[Resource]:
    """The children that have to go first: where nobody else removes them, all that are its own."""
    resource, store = moment.resource, moment.world.store
    if store.collects:
        found = [await store.get(ref) for ref in owner.goes_first(resource)]
    else:
        found = list((await store.list(Query(namespace=resource.ref.namespace))).resources)
    return [one for one in found if one is not None and ownership(one.document, resource.document) is Ownership.OURS]
