"""Where an object of a row is: the template of its name, filled in by the spec, its references and the project."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.plan import ProjectSource, ResolvedProject
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import Location, ResolvedReferences, match_location
from setpoint.engine.resource import Resource
from setpoint.engine.state import location_in
from setpoint.errors import DependencyNotReady
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.shared.config_connector import PROJECT_NAME, TenantProjects, resource_id

GLOBAL: Final = "global"
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
ZONE: Final = re.compile(r".+-[a-z]")
PLACES: Final = ("location", "region", "zone")
# What an object can be in beside a project, and the reference that says so.
CONTAINERS: Final = {
    "folders": "folderRef",
    "organizations": "organizationRef",
    "billingAccounts": "billingAccountRef",
}


def variables_of(template: str) -> tuple[str, ...]:
    """The variables of a template, in order; the last one is the id of the object."""
    return tuple(_VARIABLE.findall(template))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """What a location of the template matches; the id may have slashes in it."""
    *others, last = variables_of(template) or ("",)
    text = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
    for name in others:
        text = text.replace(f"{{{name}}}", f"(?P<{name}>[^/]+)", 1)
    return re.compile(text.replace(f"{{{last}}}", f"(?P<{last}>.+)"))


def templates_of(row: KindFacts) -> Sequence[str]:
    """The templates of a row's names: one for each sort of place."""
    return row.places or (row.name,)


def segments(row: KindFacts, location: Location) -> tuple[str, ...]:
    """The segments of a location: those of its template, with the id as one. UserError for one of another kind."""
    template = template_at(row, location)
    found = match_location(_pattern(template), location).groupdict()
    return tuple(found[one[1:-1]] if one.startswith("{") else one for one in template.split("/"))


def parts_at(row: KindFacts, location: Location) -> dict[str, str]:
    """The value of each variable of its template in a location. UserError for one of another kind."""
    return match_location(_pattern(template_at(row, location)), location).groupdict()


def collection_at(row: KindFacts, location: Location) -> str:
    """The relative name of the collection that a location is in."""
    templates = templates_of(row)
    # Most ids have no slash, and are the last segment: asked for every resource of a store at the start.
    if len(templates) == 1 and location.count("/") == templates[0].count("/"):
        return location.rpartition("/")[0]
    return "/".join(segments(row, location)[:-1])


def fields_of_id(row: KindFacts) -> tuple[str, ...]:
    """The fields that the id of an object is made of, where it is none of its own: `name` and `type`."""
    if row.id.where != "fields" or row.own_id or "list" not in row.methods:
        return ()
    return variables_of(row.name.removeprefix(row.methods["list"].path.removeprefix(row.prefix)))


def listed_at(row: KindFacts, location: Location) -> str:
    """The relative name of the collection whose list has the object at a location."""
    fields = fields_of_id(row)
    return "/".join(segments(row, location)[: -len(fields)]) if fields else collection_at(row, location)


def template_at(row: KindFacts, location: Location) -> str:
    """The template that a location was made of."""
    templates = templates_of(row)
    return next((one for one in templates if _pattern(one).fullmatch(location)), templates[0])


# --- Making a location ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlacedResource:
    """A resource to be placed: what its template is filled in with."""

    row: KindFacts
    resource: Resource
    resolved: ResolvedReferences
    projects: TenantProjects

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec, as the author wrote it."""
        return self.resource.spec

    def template(self) -> str:
        """The template for the place that the spec names."""
        found = list(templates_of(self.row))
        container = next((name for name, ref in CONTAINERS.items() if self.spec.get(ref)), "projects")
        found = [one for one in found if one.startswith(f"{container}/")] or found
        place = self.place()
        wanted = f"/{GLOBAL}/" if place in ("", GLOBAL) else "{zone}" if ZONE.fullmatch(place) else "{region}"
        return next((one for one in found if wanted in one), found[0])

    def place(self, sort: str = "") -> str:
        """The location, region or zone in the spec, that of the sort first; empty for a spec that names none."""
        for name in (sort, *sorted(PLACES, key=self._is_optional)):
            value = self.spec.get(name)
            if isinstance(value, str) and value:
                return value.rpartition("/")[2]
        return ""

    def _is_optional(self, place: str) -> bool:
        """Of a region and a zone, the one that must be given is where the object is."""
        return place in self.row.fields and not self.row.fields[place].required

    def locate(self) -> Location:
        """The location. ManifestInvalid for a place that is missing, DependencyNotReady for a parent without one."""
        template = self.template()
        known = {**self.variables(), variables_of(template)[-1]: self.own_id()}
        return Location(_VARIABLE.sub(lambda found: known[found[1]], template))

    def collection(self) -> str:
        """The location of the collection that the object is in."""
        known = self.variables()
        return _VARIABLE.sub(lambda found: known[found[1]], self.template().rpartition("/")[0])

    def variables(self) -> Mapping[str, str]:
        """The variables of the template, without the id of the object."""
        template = self.template()
        known: dict[str, str] = {}
        for name in reversed(variables_of(template)[:-1]):
            if name not in known:
                known |= self._values(name, template)
        return known

    def filled(self, text: str) -> str:
        """A text with the variables of the name in it, and `{place}`."""
        place = self.place()
        sort = "zones" if ZONE.fullmatch(place) else "regions"
        known = {
            **self.variables(),
            "place": GLOBAL if place in ("", GLOBAL) else f"{sort}/{place}",
            **{name: self.place(name) or GLOBAL for name in PLACES},
        }
        known.setdefault("project", self.project().project if "{project}" in text else "")
        return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)

    def zone(self) -> str:
        """The zone that the object is in; none where it is in a region, or global."""
        place = self.place()
        return place if ZONE.fullmatch(place) else ""

    def own_id(self) -> str:
        """The id of the object in its collection."""
        if self.row.id.where == "fields" and not self.row.own_id:
            return str(self.spec.get(variables_of(self.template())[-1], ""))
        found = resource_id(self.resource)
        if not self.row.own_id:
            return found
        return self.row.own_id.replace("{id}", found).replace("{project}", self.project().project)

    def _values(self, name: str, template: str) -> Mapping[str, str]:
        """The value of a variable; with a parent, those of all variables of its own name."""
        if name == "project":
            return {name: self.project().project}
        if name in PLACES:
            return {name: self._required_place(name)}
        container = next((ref for word, ref in CONTAINERS.items() if template.startswith(f"{word}/{{{name}}}")), "")
        return {name: self._container(container)} if container in self.row.fields else self._parent(name, template)

    def _required_place(self, name: str) -> str:
        found = self.place(name)
        if not found and any(one in self.row.fields and self.row.fields[one].required for one in PLACES):
            raise field_invalid(self.resource, f"spec.{name}", " is missing: write where the object is")
        return found or GLOBAL

    def _container(self, field: str) -> str:
        at = f"spec.{field}"
        if at in self.resolved.resources:
            return id_of(self.resolved.resources[at])
        value = self.spec.get(field)
        return str(value.get("external", "") if isinstance(value, Mapping) else "").rpartition("/")[2]

    def _parent(self, name: str, template: str) -> Mapping[str, str]:
        prefix = template[: template.index(f"{{{name}}}") + len(name) + 2]
        field = parent_field(self.row, name, prefix)
        if field is None:
            problem = f" does not say in which {name} the object is: write the full name of what it is in as external"
            raise field_invalid(self.resource, "spec", problem)
        value = self.spec.get(field, self.row.fields[field].default)
        text = value if isinstance(value, str) else self._referenced(f"spec.{field}", value)
        found = _pattern(prefix).fullmatch(relative_name(text))
        if found is None:
            return {name: text.rpartition("/")[2]}
        if (project := found.groupdict().get("project")) is not None:
            self.projects.require(project, self.resource, f"spec.{field}")
        return found.groupdict()

    def _referenced(self, at: str, value: object) -> str:
        if at in self.resolved.resources:
            return recorded_location(self.resolved.resources[at])
        external = value.get("external") if isinstance(value, Mapping) else None
        if not isinstance(external, str) or not external:
            raise field_invalid(self.resource, at, " is missing: write name or external")
        return external

    def project(self) -> ResolvedProject:
        """The project: that of spec.projectRef, else as for every kind of Google's."""
        at, ref = "spec.projectRef", self.spec.get("projectRef")
        if "projectRef" not in self.row.fields or not isinstance(ref, Mapping):
            return self.projects.resolve(self.resource)
        found = self.resolved.resources.get(at)
        name = resource_id(found) if found else str(ref.get("external", "")).removeprefix("projects/")
        if not PROJECT_NAME.allows(name):
            raise field_invalid(self.resource, f"{at}.external", f" is {name!r}: write {PROJECT_NAME.advice}")
        self.projects.require(name, self.resource, at)
        return ResolvedProject(name, ProjectSource.REFERENCE)


@cache
def _templates(kind: str) -> Sequence[str]:
    """The templates of a kind by its name; none for one that the catalogue does not have."""
    found = next((one for one in kinds_by_group() if one[1] == kind), None)
    return () if found is None else templates_of(facts_of(found))


def parent_field(row: KindFacts, variable: str, prefix: str) -> str | None:
    """The field for a variable of the name: by its own name, or a reference whose name or kind ends with that of it.

    `prefix` is the template of what the object is in.
    """
    word = variable.lower()
    found = next((one for one in row.fields if one in (f"{variable}Ref", variable, f"{variable}Id")), None)
    refs = {name: facts.ref.kinds for name, facts in row.fields.items() if facts.ref is not None and facts.to == "url"}
    named = (name for name in refs if name.removesuffix("Ref").lower().endswith(word))
    placed = (name for name, kinds in refs.items() if any(prefix in _templates(kind) for kind in kinds))
    of_kind = (name for name, kinds in refs.items() if any(kind.lower().endswith(word) for kind in kinds))
    parents = [name for name in refs if name not in ("projectRef", *CONTAINERS.values())]
    only = parents if len(parents) == 1 else ()
    return found or next(iter((*named, *placed, *of_kind, *only)), None)


def recorded_location(target: Resource) -> Location:
    """The location of a resource that another refers to; DependencyNotReady while it has none."""
    found = location_in(target.status)
    # A search is no object yet.
    if found is None or "/~" in found:
        raise DependencyNotReady(f"reference {target.ref} is not ready: it has no object yet")
    return found


def id_of(target: Resource) -> str:
    """The id of the object of a resource that another refers to: the one that the service made, where it makes them."""
    name = target.ref.group_kind
    if name in kinds_by_group() and facts_of(name).id.where == "service":
        return recorded_location(target).rpartition("/")[2]
    return resource_id(target)


# --- Names of other kinds ---------------------------------------------------------------------------------------------


def full_name(kind: str, text: str, at: PlacedResource) -> str:
    """The relative name of an object of a kind by its id alone, in the project and place of the resource."""
    name = next((one for one in kinds_by_group() if one[1] == kind), None)
    if name is None or "/" in text:
        return text
    row = facts_of(name)
    place = PlacedResource(row, at.resource, at.resolved, at.projects)
    template = place.template()
    *others, last = variables_of(template)
    if any(one not in ("project", *PLACES) for one in others):
        return text
    known = {one: at.project().project if one == "project" else at.place() or GLOBAL for one in others}
    return _VARIABLE.sub(lambda found: known.get(found[1], text) if found[1] != last else text, template)


def name_in(kind: str, text: str) -> str:
    """The relative name of an object of a kind that a text is the name or a link of; empty for another text."""
    name = relative_name(text)
    return name if "/" in name and any(_pattern(one).fullmatch(name) for one in _templates(kind)) else ""


def own_id(kind: str, name: str, at: PlacedResource) -> str:
    """The id alone of an object by its relative name, if it is of the same service and project; else the name."""
    row = facts_of(next(one for one in kinds_by_group() if one[1] == kind))
    project = parts_at(row, Location(name)).get("project")
    is_own = row.host == at.row.host and (project is None or project == at.project().project)
    return name.rpartition("/")[2] if is_own else name
