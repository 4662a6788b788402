"""The lists that have the objects of a project: a template of names, filled in with what is known of a place."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, rows_of
from setpoint.core.unstructured import GroupKind
from setpoint.engine.capabilities import ImportPlace, ListScope
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.generic.lists import ANYWHERE, is_in
from setpoint.kinds.gcp.generic.placement import GLOBAL, PLACES, ZONE, fields_of_id, templates_of, variables_of

_PROJECT: Final = "project"
_OF_PARENT: Final = "?parent="


def scopes_at(row: KindFacts, place: ImportPlace) -> Sequence[ListScope]:
    """The collections of a row at a place: of the project, of each location, of each object that is known."""
    rest = len(fields_of_id(row)) or 1
    # Two services have the same names: that of an instance says nothing about which one it is of.
    place = replace(place, known=[one for one in place.known if one.kind[0] == row.group])
    found = (scope for one in templates_of(row) for scope in _filled(one.split("/")[:-rest], place))
    return tuple(dict.fromkeys(map(ListScope, found)))


def scope_of_parent(collection: str, place: ImportPlace) -> ListScope:
    """The part of a collection that has the objects of a parent; all of it where none is named."""
    return ListScope(f"{collection}{_OF_PARENT}{place.parent}" if place.parent else collection)


def parts_of_scope(scope: ListScope) -> tuple[ListScope, dict[str, str]]:
    """The collection of a scope, and the parameters of its list."""
    collection, _, parent = scope.partition(_OF_PARENT)
    return ListScope(collection), {"parent": parent} if parent else {}


def sample_in(row: KindFacts, scope: ListScope) -> Location:
    """A location in a collection: whether it can be listed goes by one."""
    return Location(scope + "/-" * (len(fields_of_id(row)) or 1))


def _filled(segments: Sequence[str], place: ImportPlace) -> Iterator[str]:
    names = [""]
    for segment in segments:
        names = [longer for name in names for longer in _longer(name, segment, place)]
    yield from names


def _longer(name: str, segment: str, place: ImportPlace) -> Sequence[str]:
    """A name with one segment more: for a variable, each that it can have. A parent is where it is, not in `-`."""
    variable = segment[1:-1] if segment.startswith("{") else ""
    if variable and variable != _PROJECT and variable not in PLACES:
        parents = [one.location for one in place.known if is_in(one.location.rpartition("/")[0], name)]
        # That an organization is known as a parent is enough; it need not be an object of a kind.
        parents += [Location(place.parent)] if place.parent.rpartition("/")[0] == name else []
        return tuple(dict.fromkeys(parents))
    values: Sequence[str] = (segment,)
    if variable:
        values = (place.in_project,) if variable == _PROJECT else _locations(variable, place)
    return tuple(f"{name}/{value}".lstrip("/") for value in values)


def _locations(variable: str, place: ImportPlace) -> Sequence[str]:
    """Of a place of that sort: a zone is no region, and a location may be either, or global."""
    if ANYWHERE in place.locations:
        return (ANYWHERE,)
    if variable == "location":
        return tuple(dict.fromkeys((GLOBAL, *place.locations)))
    is_zone = variable == "zone"
    return tuple(one for one in place.locations if one != GLOBAL and (ZONE.fullmatch(one) is not None) == is_zone)


def parents_of(row: KindFacts) -> Sequence[GroupKind]:
    """The kinds of the same service whose objects those of a row are in."""
    prefixes = {prefix for template in templates_of(row) for prefix in _parent_templates(template)}
    others = rows_of(kinds_by_group()[row.group, row.kind]).values() if prefixes else ()
    return tuple((one.group, one.kind) for one in others if prefixes.intersection(templates_of(one)))


def _parent_templates(template: str) -> Iterator[str]:
    for name in variables_of(template)[:-1]:
        if name not in (_PROJECT, *PLACES):
            yield template[: template.index(f"{{{name}}}") + len(name) + 2]
