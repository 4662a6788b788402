"""Which rows of the fleet a viewer may see: rights are asked for by kind and namespace, once for many rows."""

from collections.abc import Iterable, Mapping, Sequence

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.viewer import Scope, Sees, SeesScope, Viewer, sees_everything
from setpoint.dashboard.views.fleet import EncodedRow, FleetRows
from setpoint.engine.resource import ResourceRef


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a viewer may see now, and what was decided about each scope; nothing is decided for an unrestricted one."""

    sees: Sees
    sees_scope: SeesScope
    decided: Mapping[Scope, bool]

    def contradicts(self, before: "Visibility") -> bool:
        """Whether the rights to something that was decided before have changed."""
        return any(self.decided.get(scope, was) is not was for scope, was in before.decided.items())


EVERYTHING_VISIBLE = Visibility(sees_everything, sees_everything, {})


async def visibility_of(viewer: Viewer, scopes: Iterable[Scope]) -> Visibility:
    """Which resources of these scopes a viewer may see; of any other, none."""
    if viewer.is_unrestricted:
        return EVERYTHING_VISIBLE
    decided = await viewer.decide(frozenset(scopes))
    return Visibility(lambda ref: decided.get(Scope.of(ref), False), lambda one: decided.get(one, False), decided)


async def visible_rows(viewer: Viewer, rows: FleetRows) -> Sequence[ResourceRef]:
    """The resources that a viewer may see, in the order of the list."""
    if viewer.is_unrestricted:
        return rows.sorted()
    found = await visibility_of(viewer, rows.scopes)
    return [ref for ref in rows.sorted() if found.sees(ref)]


async def visible_row(viewer: Viewer, ref: ResourceRef, rows: FleetRows) -> EncodedRow | None:
    """The row of a resource, unless the viewer may not see it."""
    found = rows.get(ref)
    if found is None or viewer.is_unrestricted:
        return found
    return found if (await visibility_of(viewer, [Scope.of(ref)])).sees(ref) else None
