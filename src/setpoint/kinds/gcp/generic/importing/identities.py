"""What a manifest says so that its object has a location: the inverse of its placement."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.capabilities import LiveIdentity
from setpoint.engine.kind import Location
from setpoint.engine.management import MANAGED_LABELS
from setpoint.kinds.gcp.generic.placement import (
    CONTAINERS,
    GLOBAL,
    PLACES,
    fields_of_id,
    parent_field,
    parts_at,
    template_at,
    variables_of,
)
from setpoint.kinds.gcp.shared.config_connector import PROJECT_ANNOTATION

_PROJECT_REF: Final = "projectRef"


def identity_of(row: KindFacts, location: Location) -> LiveIdentity:
    """The fields and annotations that place an object of a row at a location."""
    template, values = template_at(row, location), parts_at(row, location)
    *others, last = variables_of(template)
    spec = {name: value for one in others for name, value in _members(row, one, template, values)}
    spec |= _global_place(row, template, spec)
    is_named = row.id.where != "fields" or bool(row.own_id)
    if not is_named:
        spec |= dict(zip(variables_of(template)[-_id_fields(row) :], _last_parts(row, location), strict=True))
    own_id = _own_id(row, values[last], values.get("project", "")) if is_named else ""
    project = values.get("project", "") or (values[last] if row.own_id == "{project}" else "")
    annotations = {PROJECT_ANNOTATION: project} if project and _PROJECT_REF not in spec else {}
    documented = {Path(steps): default for steps, default in _documented(row.fields, ())}
    is_made = row.id.where == "service"
    return LiveIdentity(own_id, spec, annotations, MANAGED_LABELS, needs_id=is_made, documented=documented)


def _documented(fields: Mapping[str, FieldFacts], at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The defaults that Config Connector documents and the service does not, outside of lists."""
    for name, one in fields.items():
        if one.default_from == "crd" and one.type != "object":
            yield (*at, name), one.default
        if one.type == "object":
            yield from _documented(one.fields, (*at, name))


def _id_fields(row: KindFacts) -> int:
    return len(fields_of_id(row)) or 1


def _last_parts(row: KindFacts, location: Location) -> list[str]:
    return location.split("/")[-_id_fields(row) :]


def _members(row: KindFacts, name: str, template: str, values: Mapping[str, str]) -> Iterator[tuple[str, Json]]:
    """The field of a spec that a variable of the name is taken from."""
    value = values[name]
    if name == "project":
        if _PROJECT_REF in row.fields:
            yield _PROJECT_REF, {"external": f"projects/{value}"}
    elif name in PLACES:
        field = next((one for one in (name, *PLACES) if one in row.fields), None)
        if field is not None:
            yield field, value
    else:
        yield from _parent(row, name, template, values)


def _parent(row: KindFacts, name: str, template: str, values: Mapping[str, str]) -> Iterator[tuple[str, Json]]:
    container = next((ref for word, ref in CONTAINERS.items() if template.startswith(f"{word}/{{{name}}}")), "")
    prefix = template[: template.index(f"{{{name}}}") + len(name) + 2]
    field = container if container in row.fields else parent_field(row, name, prefix)
    if field is None:
        return
    whole = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], prefix)
    yield field, {"external": whole} if field.endswith("Ref") else values[name]


def _global_place(row: KindFacts, template: str, spec: Mapping[str, Json]) -> Mapping[str, Json]:
    """The place of an object that is in none: some specs have to say so."""
    is_global = f"/{GLOBAL}/" in template and not any(name in spec for name in PLACES)
    return {"location": GLOBAL} if is_global and "location" in row.fields else {}


def _own_id(row: KindFacts, text: str, project: str) -> str:
    """The id in the last part of a name."""
    if "{id}" not in row.own_id:
        return text
    before, after = row.own_id.replace("{project}", project).split("{id}")
    return text.removeprefix(before).removesuffix(after)
