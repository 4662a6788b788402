"""Who waits for whom: the order to take resources in, and cycles by name."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from setpoint.engine.kind import Need, SecretKey, target_of
from setpoint.engine.resource import ResourceRef
from setpoint.errors import DependencyCycle


def in_order(needs: Mapping[ResourceRef, Sequence[Need]]) -> tuple[ResourceRef, ...]:
    """The resources, each after those that have to be ready for it, and after what else it names where that can be.

    What is needed and not among them is left out.
    """
    waiting = {ref: _named(needs[ref], needs, must_be_ready=True) for ref in sorted(needs)}
    naming = {ref: _named(needs[ref], needs, must_be_ready=False) - waiting[ref] for ref in waiting}
    while True:
        try:
            return tuple(TopologicalSorter({ref: sorted(waiting[ref] | naming[ref]) for ref in waiting}).static_order())
        except CycleError as error:
            _break(error.args[1], naming)


def before_each(needs: Mapping[ResourceRef, Sequence[Need]]) -> Mapping[ResourceRef, set[ResourceRef]]:
    """Those among them that have to be ready for each; for none, where some wait for each other."""
    waiting = {ref: _named(needs[ref], needs, must_be_ready=True) for ref in needs}
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError:
        return {}
    return waiting


def _named(needs: Sequence[Need], known: Mapping[ResourceRef, object], *, must_be_ready: bool) -> set[ResourceRef]:
    named = (need for need in needs if not isinstance(need, SecretKey) and need.must_be_ready is must_be_ready)
    return {target for need in named if (target := target_of(need)) in known}


def _break(cycle: Sequence[ResourceRef], naming: Mapping[ResourceRef, set[ResourceRef]]) -> None:
    """Takes a name out of the cycle that nobody has to wait for; DependencyCycle when everybody in it has to."""
    # The sorter walks from the needed one to the one that needs it.
    for needed, ref in pairwise(cycle):
        if needed in naming[ref]:
            naming[ref].discard(needed)
            return
    # People read it the other way.
    way = " needs ".join(str(ref) for ref in reversed(cycle))
    raise DependencyCycle(f"{way}: no order can satisfy this; take one of these references out")
