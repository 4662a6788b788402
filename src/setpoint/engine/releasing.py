"""The step of an owner that is to go: what has to go before it goes first."""

from collections.abc import Sequence
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.owners import Ownership, ownership
from setpoint.core.plan import Action, Plan, Write
from setpoint.engine import report
from setpoint.engine.holding import pause
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Query, Store
from setpoint.engine.report import listed
from setpoint.engine.resource import Resource
from setpoint.engine.scene import Gone, Management, Moment, Outcome, Stopped
from setpoint.errors import OperationRunning

# Held where nobody else removes the children of what is gone.
CHILDREN_FINALIZER: Final = "setpoint.dev/children"


def finalizers_of(owner: Owner, store: Store) -> tuple[str, ...]:
    """What holds a resource of this owner until its children are dealt with."""
    own = (owner.finalizer,) if owner.finalizer else ()
    return own if store.collects else (*own, CHILDREN_FINALIZER)


async def release(moment: Moment, owner: Owner) -> Outcome:
    """Deletes what has to go first, and lets the resource go once that is done. What is gone already is done."""
    resource, store = moment.resource, moment.world.store
    ours = finalizers_of(owner, store)
    if not set(ours) & set(resource.finalizers):
        return Gone()
    if moment.management is Management.PAUSED:
        return await pause(moment)
    # Where nothing is ever written, the children stay.
    left = [] if moment.management is Management.OBSERVE else await _deleted(moment, owner)
    if left:
        names = listed(str(child.ref) for child in left)
        others = tuple(child.ref for child in left if (child.ref.group, child.ref.kind) in moment.world.sorts)
        return Stopped(OperationRunning(f"{names} has to go first, and is still there", after=1), others)
    await store.set_finalizers(resource, tuple(one for one in resource.finalizers if one not in ours))
    return Gone()


async def _deleted(moment: Moment, owner: Owner) -> Sequence[Resource]:
    """Those that are still there after the deletion of all that have to go first."""
    store = moment.world.store
    for child in await _going(moment, owner):
        if not child.is_deleting:
            await store.delete(child.ref)
    return [child for child in await _going(moment, owner) if not (store.collects and child.is_deleting)]


async def preview_release(moment: Moment, owner: Owner) -> Plan:
    """The plan of that step, which is not taken."""
    if moment.management is Management.PAUSED:
        return Plan(Decision.IN_SYNC, because=report.PAUSED.message)
    is_held = bool(set(finalizers_of(owner, moment.world.store)) & set(moment.resource.finalizers))
    is_held = is_held and moment.management is not Management.OBSERVE
    children = await _going(moment, owner) if is_held else ()
    writes = tuple(Write(Action.DELETE, f"{child.ref.kind}/{child.ref.name}") for child in children)
    because = "" if writes else "nothing has to go before it"
    return Plan(Decision.INTENT_CHANGED, writes, because=because)


async def _going(moment: Moment, owner: Owner) -> Sequence[Resource]:
    """The children that have to go first: where nobody else removes them, all that are its own."""
    resource, store = moment.resource, moment.world.store
    if store.collects:
        found = [await store.get(ref) for ref in owner.goes_first(resource)]
    else:
        found = list((await store.list(Query(namespace=resource.ref.namespace))).resources)
    return [one for one in found if one is not None and ownership(one.document, resource.document) is Ownership.OURS]
