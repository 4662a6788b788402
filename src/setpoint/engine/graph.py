"""Who waits for whom: the order to take resources in, and cycles by name."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from setpoint.engine.resource import ResourceRef
from setpoint.errors import DependencyCycle


def in_order(needs: Mapping[ResourceRef, Sequence[ResourceRef]]) -> tuple[ResourceRef, ...]:
    """The resources, each after those it needs; what is needed and not among them is left out."""
    known = {ref: [need for need in sorted(set(needed)) if need in needs] for ref, needed in sorted(needs.items())}
    try:
        return tuple(TopologicalSorter(known).static_order())
    except CycleError as error:
        # The sorter walks from the needed one to the one that needs it; people read it the other way.
        way = " needs ".join(str(ref) for ref in reversed(error.args[1]))
        raise DependencyCycle(f"{way}: no order can satisfy this; take one of these references out") from None


def waiting_for(ref: ResourceRef, needs: Mapping[ResourceRef, Sequence[ResourceRef]]) -> tuple[ResourceRef, ...]:
    """The resources that need `ref`, directly or through others, sorted."""
    found: set[ResourceRef] = set()
    todo = [ref]
    for needed in todo:
        behind = [one for one, its_needs in needs.items() if needed in its_needs and one not in found]
        found.update(behind)
        todo.extend(behind)
    return tuple(sorted(found - {ref}))
