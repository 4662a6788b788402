"""Cycles of a graph: resources that need each other, so that none of them comes first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef

_MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class Cycles:
    """The resources that are in a cycle, each with the number of its cycle, and one way around the first."""

    groups: Mapping[ResourceRef, int] = field(default_factory=dict)
    first: tuple[ResourceRef, ...] = ()

    def has(self, dependant: ResourceRef, needed: ResourceRef) -> bool:
        """Whether this edge is part of a cycle."""
        group = self.groups.get(dependant)
        return group is not None and group == self.groups.get(needed)

    @property
    def words(self) -> str | None:
        """One cycle, from a resource back to itself; None when there is none."""
        if not self.first:
            return None
        names = [str(one) for one in self.first[:_MAX_NAMED]]
        more = [f"{len(self.first) - _MAX_NAMED} more"] if len(self.first) > _MAX_NAMED else []
        return " → ".join([*names, *more, names[0]])


def cycles_in(edges: Iterable[tuple[ResourceRef, ResourceRef]]) -> Cycles:
    """The cycles of a graph with these edges, from dependants to what they need."""
    needs: dict[ResourceRef, list[ResourceRef]] = {}
    for dependant, needed in edges:
        needs.setdefault(dependant, []).append(needed)
    needs = _without_ends(needs)
    groups: dict[ResourceRef, int] = {}
    for number, members in enumerate(_components(needs)):
        if len(members) > 1 or members[0] in needs.get(members[0], ()):
            groups.update(dict.fromkeys(members, number))
    return Cycles(groups, _way_around(needs, groups))


def _without_ends(needs: Mapping[ResourceRef, Sequence[ResourceRef]]) -> dict[ResourceRef, list[ResourceRef]]:
    """Without what leads to no cycle: most graphs have nothing left."""
    left = {ref: set(found) for ref, found in needs.items()}
    users: dict[ResourceRef, set[ResourceRef]] = {}
    for dependant, found in left.items():
        for needed in found:
            users.setdefault(needed, set()).add(dependant)
    ends = [ref for ref in users if not left.get(ref)]
    while ends:
        end = ends.pop()
        for dependant in users.get(end, ()):
            left[dependant].discard(end)
            if not left[dependant]:
                ends.append(dependant)
    return {ref: sorted(found) for ref, found in left.items() if found}


def _components(needs: Mapping[ResourceRef, Sequence[ResourceRef]]) -> list[list[ResourceRef]]:
    """The strongly connected components: first in the order in which the walk ends, then against the edges."""
    users: dict[ResourceRef, list[ResourceRef]] = {}
    for dependant, found in needs.items():
        for needed in found:
            users.setdefault(needed, []).append(dependant)
    seen: set[ResourceRef] = set()
    order: list[ResourceRef] = []
    for ref in sorted(needs):
        order += _walk(ref, needs, seen)
    seen.clear()
    return [members for ref in reversed(order) if (members := _walk(ref, users, seen))]


def _walk(
    start: ResourceRef, onward: Mapping[ResourceRef, Sequence[ResourceRef]], seen: set[ResourceRef]
) -> list[ResourceRef]:
    """What is reached and was not seen before, each after all that is reached from it."""
    found: list[ResourceRef] = []
    if start in seen:
        return found
    seen.add(start)
    path = [(start, iter(onward.get(start, ())))]
    while path:
        here, rest = path[-1]
        following = next((one for one in rest if one not in seen), None)
        if following is None:
            found.append(here)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(onward.get(following, ()))))
    return found


def _way_around(
    needs: Mapping[ResourceRef, Sequence[ResourceRef]], groups: Mapping[ResourceRef, int]
) -> tuple[ResourceRef, ...]:
    """One cycle: from the first resource in one along edges of it, until a resource comes again."""
    if not groups:
        return ()
    here = min(groups)
    places: dict[ResourceRef, int] = {}
    while here not in places:
        places[here] = len(places)
        here = next(one for one in needs[here] if groups.get(one) == groups[here])
    return tuple(list(places)[places[here] :])
