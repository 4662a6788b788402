"""Valid values of fields, made from what a row says of them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts, facts_of
from setpoint.core.values.json_types import Json
from setpoint.kinds.gcp.generic.placement import parent_field

# The steps of a field's path below `spec`.
FieldPath: TypeAlias = tuple[str, ...]

PROJECT: Final = "some-project"
REGION: Final = "europe-west1"
_PLACES: Final = {"location": REGION, "region": REGION, "zone": f"{REGION}-b"}
GLOBAL: Final = "global"
_PLACE: Final = re.compile(r"\{(?:location|region|zone)\}")
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_NOT_MEMBERS: Final = ("url", "id", "?", "-")
# The reference that says which container an object is in, where that is no project.
_CONTAINERS: Final = {
    "folders": ("folderRef", "123456789"),
    "organizations": ("organizationRef", "987654321"),
    "billingAccounts": ("billingAccountRef", "ABCDEF-ABCDEF-ABCDEF"),
}
_FORMATS: Final[Mapping[str, tuple[str, str, str]]] = {
    "google-duration": ("3600s", "7200s", "10800s"),
    "google-datetime": ("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"),
    "date-time": ("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"),
    "json-text": ('{"a":1}', '{"a":2}', '{"a":3}'),
    "byte": ("Zmlyc3Q=", "c2Vjb25k", "dGhpcmQ="),
}
_SCALARS: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    "string": ("first", "second", "third"),
    "integer": (10, 20, 30),
    "number": (0.5, 0.25, 0.75),
    "boolean": (True, False, True),
    "any": ("first", "second", "third"),
}


# --- Names ------------------------------------------------------------------------------------------------------------


def template_of(row: KindFacts) -> str:
    """The template of the name that a fixture uses: one in a project, where there is one."""
    templates = row.places or (row.name,)
    return next((one for one in templates if one.startswith("projects/")), templates[0])


def location_of(row: KindFacts, own_id: str) -> str:
    """The relative name of an object of the row. Without a field for its place, it is global."""
    return name_in(_placed(row, template_of(row)), own_id)


def _placed(row: KindFacts, template: str) -> str:
    return template if any(one in row.fields for one in _PLACES) else _PLACE.sub(GLOBAL, template)


def name_in(template: str, own_id: str) -> str:
    """A relative name: the variables filled in, the last one with the id of the object."""
    *_, last = _VARIABLE.findall(template) or [""]
    return _VARIABLE.sub(lambda found: own_id if found[1] == last else _part(found[1], template), template)


def _part(variable: str, template: str) -> str:
    for word, (_, text) in _CONTAINERS.items():
        if template.startswith(f"{word}/{{{variable}}}"):
            return text
    return PROJECT if variable == "project" else _PLACES.get(variable, f"some-{variable.lower()}")


def external_of(ref: ReferenceFacts) -> str:
    """The text of a reference to an object that is not declared here."""
    kind = ref.kinds[0] if ref.kinds else ""
    known = next((one for one in kinds_by_group() if one[1] == kind), None)
    match ref.form:
        case "email":
            return f"some-account@{PROJECT}.iam.gserviceaccount.com"
        case "address":
            return "10.0.0.9"
        case "id" | "bare":
            return "some-target"
        case _ if kind == "Project":
            return f"projects/{PROJECT}"
        case _ if known is not None:
            return location_of(facts_of(known), "some-target")
        case _:
            return f"projects/{PROJECT}/targets/some-target"


# --- Specs ------------------------------------------------------------------------------------------------------------


def minimal_spec(row: KindFacts) -> dict[str, Any]:
    """The fields that a spec must have, and those that say where the object is."""
    found = _required(row.fields)
    return {**found, **_address(row)}


def _required(fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    return {
        name: value_of(facts)
        for name, facts in fields.items()
        if facts.required and not facts.output_only and _is_set(name)
    }


def _is_set(name: str) -> bool:
    return name not in ("projectRef", "resourceID")


def _address(row: KindFacts) -> dict[str, Any]:
    template = template_of(row)
    variables = [one for one in _VARIABLE.findall(template)[:-1] if one != "project"]
    # Of a region and a zone, the one that the name has.
    place = next((one for one in (*variables, *_PLACES) if one in _PLACES and one in row.fields), None)
    found: dict[str, Any] = {}
    if place is not None:
        found[place] = next((_PLACES[one] for one in variables if one in _PLACES), GLOBAL)
    for variable in variables:
        prefix = template[: template.index(f"{{{variable}}}") + len(variable) + 2]
        field = (
            None if variable in _PLACES else _container(row, template, variable) or parent_field(row, variable, prefix)
        )
        if field is not None:
            found[field] = _parent(row, field, prefix)
    return found


def _container(row: KindFacts, template: str, variable: str) -> str | None:
    named = (ref for word, (ref, _) in _CONTAINERS.items() if template.startswith(f"{word}/{{{variable}}}"))
    return next((ref for ref in named if ref in row.fields), None)


def _parent(row: KindFacts, field: str, prefix: str) -> Json:
    *_, variable = _VARIABLE.findall(prefix)
    name = name_in(_placed(row, prefix), _part(variable, prefix))
    return {"external": name} if row.fields[field].type == "object" else name.rpartition("/")[2]


def value_of(facts: FieldFacts, position: int = 0) -> Any:
    """One of three valid values, with no more than a value must have."""
    single = _single(facts, position)
    if facts.type == "list":
        return [single]
    return {"some-key": single} if facts.type == "map" else single


def _single(facts: FieldFacts, position: int) -> Any:
    if facts.secret:
        return {"value": _SCALARS["string"][position]}
    if facts.one_of_refs:
        name, ref = next(iter(facts.one_of_refs.items()))
        return {name: _reference(ref)}
    if facts.ref is not None:
        return _reference(facts.ref)
    if facts.values:
        return _word_of(facts, position)
    return _object(facts, position) if facts.fields else scalar_of(facts, position)


def _reference(ref: ReferenceFacts) -> dict[str, str]:
    kind = {"kind": ref.kinds[0]} if len(ref.kinds) > 1 else {}
    return {"external": external_of(ref), **kind}


def _word_of(facts: FieldFacts, position: int) -> Json:
    word = list(facts.values)[position % len(facts.values)]
    return word == "true" if facts.type == "boolean" else word


def scalar_of(facts: FieldFacts, position: int) -> Any:
    """One of three values of a type without fields."""
    words = [one for one in facts.enum if not one.endswith("_UNSPECIFIED")]
    if words:
        return words[-1 - position % len(words)]
    kind = facts.items if facts.type in ("list", "map") else facts.type
    if facts.type == "object":
        return {"some": _SCALARS["string"][position]}
    if kind == "string" and facts.format in _FORMATS:
        return _FORMATS[facts.format][position]
    return _SCALARS.get(kind or "string", _SCALARS["string"])[position]


def _object(facts: FieldFacts, position: int) -> dict[str, Any]:
    if facts.shape in ("one-of-to-text", "refs-to-texts"):
        name = next((one for one, its in facts.fields.items() if its.ref is not None), next(iter(facts.fields)))
        return {name: value_of(facts.fields[name], position)}
    if facts.shape == "inner-object":
        return {name: value_of(inner, position) for name, inner in list(facts.fields.items())[:1]}
    found = _required(facts.fields)
    keys = [name for name in facts.keys if name in facts.fields]
    if facts.shape == "key-value-list-to-map":
        keys = list(facts.fields)[:2]
    found |= {name: value_of(facts.fields[name], position) for name in keys if name not in found}
    if found:
        return found
    # An object without members may mean the same as none.
    simple = [one for one, its in facts.fields.items() if _is_settable(its) and not its.fields]
    return {name: value_of(facts.fields[name], position) for name in simple[:1]}


def _is_settable(facts: FieldFacts) -> bool:
    return facts.to not in _NOT_MEMBERS and not (facts.output_only or facts.query or facts.input_only or facts.secret)


# --- Fields to vary ---------------------------------------------------------------------------------------------------


def plain_fields(fields: Mapping[str, FieldFacts], at: FieldPath = ()) -> Iterator[tuple[FieldPath, FieldFacts]]:
    """The fields, by their paths, whose values are the same in the spec and in the API; not those in lists."""
    for name, facts in fields.items():
        if not _is_settable(facts) or facts.shape or facts.ref or facts.one_of_refs or facts.values or facts.adds:
            continue
        if facts.type == "object" and facts.fields:
            yield from plain_fields(facts.fields, (*at, name))
        elif not (facts.toggle or facts.prefix) and _is_set(name):
            yield (*at, name), facts


def facts_at(row: KindFacts, path: FieldPath) -> list[FieldFacts]:
    """The facts of a field, after those of all that it is in."""
    fields, found = row.fields, []
    for step in path:
        found.append(fields[step])
        fields = found[-1].fields
    return found


def member_of(row: KindFacts, path: FieldPath) -> str:
    """The member that a field is in the API."""
    return ".".join(one.to or name for name, one in zip(path, facts_at(row, path), strict=True))
