"""The requests of a row: create, update in the style of the API, delete; each as a call and its body."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from setpoint.catalogue.parts import LABELS
from setpoint.catalogue.rows import FieldFacts, KindFacts, MethodFacts
from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location
from setpoint.engine.management import MARK_LABEL
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.generic.creating.creation_defaults import with_element_defaults
from setpoint.kinds.gcp.generic.members import (
    from_members,
    inputs_of,
    kept,
    member_path,
    put_member,
    to_members,
    with_defaults_of,
    with_removals,
    without_nulls,
)
from setpoint.kinds.gcp.generic.placement import segments, template_at, variables_of
from setpoint.kinds.gcp.generic.spec_types import has_default

# The region of a name; that of a zone is without its letter.
_REGION: Final = re.compile(r"/(?:locations|regions|zones)/(?!global(?:/|$))([a-z0-9-]+?)(?:-[a-z])?(?:/|$)")
_FINGERPRINTS: Final = ("fingerprint", "etag")


@dataclass(frozen=True, slots=True)
class GoogleRequest:
    """A request that changes an object."""

    verb: str
    call: GoogleCall
    body: Json = None


def api_of(row: KindFacts, name: str) -> GoogleApi:
    """The API of a row, for what has this name; where each region has a host of its own, that of its region."""
    region = _REGION.search(name) if row.regional_host else None
    host = row.regional_host.replace("{region}", region[1]) if region else row.host
    return GoogleApi(host, f"/{row.prefix.rstrip('/')}")


def object_call(row: KindFacts, location: Location, query: Mapping[str, str] | None = None) -> GoogleCall:
    """The call that names the object."""
    return GoogleCall(api_of(row, location), segments(row, location), query or {})


def collection_call(row: KindFacts, location: Location, query: Mapping[str, str] | None = None) -> GoogleCall:
    """The call that names the collection of the object."""
    return GoogleCall(api_of(row, location), segments(row, location)[:-1], query or {})


def path_call(
    row: KindFacts, method: MethodFacts, location: Location, query: Mapping[str, str] | None = None
) -> GoogleCall:
    """The call of a method by its own path: that of the object, or of something that it is in; after a colon or not."""
    path, _, custom = method.path.removeprefix(row.prefix).partition(":")
    parts = segments(row, location)[: path.count("/") + 1]
    return GoogleCall(api_of(row, location), parts, query or {}, method=custom)


# --- Parameters -------------------------------------------------------------------------------------------------------


def query_of(row: KindFacts, method: MethodFacts, location: Location, spec: JsonObject) -> dict[str, str]:
    """The parameters of the method that the spec, or the place of the object, has a value for."""
    by_place = row.place_query.get(location.partition("/")[0], {})
    found = {name: value for name, value in by_place.items() if name in method.query}
    return {**found, **dict(_parameters(row, method, spec))}


def _parameters(row: KindFacts, method: MethodFacts, spec: JsonObject) -> Iterator[tuple[str, str]]:
    """The fields of the spec that are parameters of the method."""
    for name, facts in row.fields.items():
        parameter = facts.to or name
        value = spec.get(name, facts.default if facts.default_from == "sent" else None)
        if facts.values:
            value = facts.values.get(str(value))
        if facts.query and parameter in method.query and value is not None:
            yield parameter, ("true" if value else "false") if isinstance(value, bool) else str(value)


# --- Members ----------------------------------------------------------------------------------------------------------


def is_set_later(row: KindFacts, field: str) -> bool:
    """Whether a creation cannot send the field."""
    facts = row.fields.get(field)
    return facts is not None and (facts.later or bool(facts.toggle))


def members_of(row: KindFacts, tree: JsonObject, write: PlannedWrite | None = None) -> dict[str, Any]:
    """The members of the API's object for a compared tree, without those that a method switches.

    Of two fields for one member, that which `write` changes.
    """
    spec, metadata = tree.get("spec"), tree.get("metadata")
    changed = {str(change.path.steps[1]) for change in write.changes} if write is not None else set()
    ordered = sorted(spec.items(), key=lambda one: one[0] in changed) if isinstance(spec, Mapping) else ()
    fields = {name: facts for name, facts in row.fields.items() if not facts.toggle}
    found = to_members(_with_sent_defaults(dict(ordered), fields), fields)
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    if row.labels and labels:
        put_member(found, tuple(row.labels.split(".")), dict(labels) if isinstance(labels, Mapping) else labels)
    return found


def _with_sent_defaults(tree: Mapping[str, Any], fields: Mapping[str, FieldFacts]) -> dict[str, Any]:
    """A tree with the defaults that Config Connector sends in the elements of lists: those elsewhere are there."""
    return {name: _defaulted(one, fields[name]) if name in fields else one for name, one in tree.items()}


def _defaulted(value: Any, facts: FieldFacts) -> Any:  # noqa: ANN401 - JSON
    if not facts.fields or facts.ref is not None:
        return value
    if isinstance(value, Mapping):
        return _with_sent_defaults(value, facts.fields)
    if not isinstance(value, list | tuple):
        return value
    sent = {name: one.default for name, one in facts.fields.items() if one.default_from == "sent"}
    return [{**sent, **_with_sent_defaults(one, facts.fields)} if isinstance(one, Mapping) else one for one in value]


# --- Update -----------------------------------------------------------------------------------------------------------


def update(
    row: KindFacts, intent: Intent, wanted: JsonObject, write: PlannedWrite, live: Mapping[str, Any]
) -> GoogleRequest:
    """The request that sends a write of the plan. What the row does not model keeps its live value."""
    location = intent.location
    _require_update(row, write)
    if row.update_style == "patch-whole":
        wanted = with_declared_lists(wanted, intent.declared.tree)
    wanted = without_taken_out(row, wanted, intent.declared.tree, write)
    changed, settable = changed_members(row, write), _settable(row, live, members_of(row, intent.declared.tree))
    values = update_members(row, wanted, write, settable)
    values = with_element_defaults(row, values, location, {**settable, **values})
    query = {**_mask_query(row, changed, write), **query_of(row, _update_method(row), location, intent.resource.spec)}
    match row.update_style:
        case "put" | "put-mask-query" | "patch-whole":
            whole = {name: value for name, value in {**settable, **values}.items() if value is not None}
            whole = with_defaults_of(_never_told(row, intent.declared.tree), whole)
            verb = "PATCH" if row.update_style == "patch-whole" else _put_method(row).verb
            return GoogleRequest(verb, _update_call(row, location, query), whole)
        case "patch-mask-query" | "patch-paths-query":
            present = {name: value for name, value in values.items() if value is not None}
            body = {**_precondition(row, live), **present}
            return GoogleRequest(_verb(row), _update_call(row, location, query), body)
        case "patch-mask-body":
            return _masked_body(row, location, changed, values)
        case _:
            body = {name: with_removals(live.get(name), value) for name, value in values.items()}
            return GoogleRequest(_verb(row), _update_call(row, location, {}), {**_precondition(row, live), **body})


def _update_call(row: KindFacts, location: Location, query: Mapping[str, str]) -> GoogleCall:
    """The call of an update: that of the object, or of its collection, where the id is a parameter of the query."""
    variable = variables_of(template_at(row, location))[-1]
    if variable not in _update_method(row).query:
        return object_call(row, location, query)
    return collection_call(row, location, {**query, variable: segments(row, location)[-1]})


def _never_told(row: KindFacts, declared: JsonObject) -> dict[str, Any]:
    """The declared members that no answer has: a request that replaces the object would take them away."""
    spec = declared.get("spec")
    return without_nulls(to_members(inputs_of(spec, row.fields), row.fields)) if isinstance(spec, Mapping) else {}


def update_members(row: KindFacts, wanted: JsonObject, write: PlannedWrite, live: Mapping[str, Any]) -> dict[str, Any]:
    """The members that a write changes, as they are to be; None for one that is to go."""
    before, after = live_members(row, live), without_nulls(members_of(row, wanted, write))
    return {name: kept(live.get(name), before.get(name), after.get(name)) for name in changed_members(row, write)}


def _require_update(row: KindFacts, write: PlannedWrite) -> None:
    if row.update_style in ("none", "per-field"):
        paths = tuple(str(change.path) for change in write.changes)
        raise ImmutableFieldChanged(
            f"{', '.join(paths)} cannot change: {row.host} has no method for it. "
            "Put the old value back, or delete the resource and apply it again",
            paths,
        )


def without_taken_out(row: KindFacts, wanted: JsonObject, declared: JsonObject, write: PlannedWrite) -> JsonObject:
    """The tree without the objects that the author took out and that only have their defaults left: they are unset.

    An object of defaults may mean something: that outliers are detected, or that requests are sent again.
    """
    own, given = wanted.get("spec"), declared.get("spec")
    if not isinstance(own, Mapping) or not isinstance(given, Mapping):
        return wanted
    changed = [change.path.steps[1:] for change in write.changes if change.path.steps[0] == "spec"]
    return {**wanted, "spec": _without_defaults(own, given, row.fields, changed)}


def _without_defaults(
    wanted: JsonObject, declared: JsonObject, fields: Mapping[str, FieldFacts], changed: Sequence[tuple[object, ...]]
) -> JsonObject:
    found: dict[str, Json] = {}
    for name, value in wanted.items():
        facts = fields.get(name)
        below = [steps[1:] for steps in changed if steps and steps[0] == name]
        if below and facts is not None and facts.type == "object" and facts.fields and isinstance(value, Mapping):
            given = declared.get(name)
            if given is None and not facts.required and _has_only_defaults(value, facts.fields):
                continue
            value = _without_defaults(value, given if isinstance(given, Mapping) else {}, facts.fields, below)
        found[name] = value
    return found


def _has_only_defaults(value: JsonObject, fields: Mapping[str, FieldFacts]) -> bool:
    for name, one in value.items():
        facts = fields.get(name) or FieldFacts()
        if isinstance(one, Mapping) and facts.fields:
            if not _has_only_defaults(one, facts.fields):
                return False
        elif one is not None and not (has_default(facts) and same(one, facts.default)):
            return False
    return True


def changed_members(row: KindFacts, write: PlannedWrite) -> tuple[str, ...]:
    """The members of the API's object that a write changes."""
    found: dict[str, None] = {}
    for change in write.changes:
        if LABELS.covers(change.path):
            found[row.labels] = None
            continue
        name = str(change.path.steps[1])
        path = member_path(name, row.fields[name]) if name in row.fields else ()
        found |= {path[0]: None} if path else {}
    return tuple(sorted(found))


def with_declared_lists(wanted: JsonObject, declared: JsonObject) -> JsonObject:
    """The tree with each list as it was declared: what the service filled in in its elements is left to it again."""
    found: dict[str, Json] = {}
    for name, value in wanted.items():
        own = declared.get(name)
        if isinstance(value, Mapping) and isinstance(own, Mapping):
            found[name] = with_declared_lists(value, own)
        else:
            found[name] = own if isinstance(value, list | tuple) and isinstance(own, list | tuple) else value
    return found


def _settable(row: KindFacts, live: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The live object without what only the service sets, and without what it makes of other members."""
    derived = [name for name, sources in row.derived.items() if name not in declared and live.keys() & set(sources)]
    outputs = set(row.output_only) - {"name", *row.concurrency}
    found = {name: one for name, one in live.items() if name not in derived and name not in outputs}
    for outer, _, inner in (path.partition(".") for path in row.output_only if "." in path):
        below = found.get(outer)
        if isinstance(below, Mapping):
            found[outer] = {name: one for name, one in below.items() if name != inner}
    return found


def live_members(row: KindFacts, live: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a live object that the row models."""
    found = to_members(from_members(live, row.fields), row.fields)
    if row.labels and isinstance(live.get(row.labels), Mapping):
        found[row.labels] = {name: one for name, one in live[row.labels].items() if name != MARK_LABEL}
    return found


def _mask_query(row: KindFacts, changed: Sequence[str], write: PlannedWrite) -> Mapping[str, str]:
    if row.update_style == "patch-paths-query":
        return {"updateMask": ",".join(sorted({_changed_path(row, change.path) for change in write.changes}))}
    return {"updateMask": ",".join(changed)} if "mask-query" in row.update_style else {}


def _changed_path(row: KindFacts, path: Path) -> str:
    """The path of the member that a change is of; a list, a map or an object of another shape is one member."""
    if LABELS.covers(path):
        return row.labels
    fields, found = row.fields, list[str]()
    for step in path.steps[1:]:
        facts = fields.get(str(step))
        if facts is None:
            break
        found += member_path(str(step), facts)
        fields = facts.fields if facts.type == "object" and facts.shape is None else {}
    return ".".join(found)


def _precondition(row: KindFacts, live: Mapping[str, Any]) -> dict[str, Any]:
    """The version of the live object, for a service that takes it in the body."""
    return {name: live[name] for name in _FINGERPRINTS if name in row.concurrency and name in live}


def _masked_body(
    row: KindFacts, location: Location, changed: Sequence[str], values: Mapping[str, Any]
) -> GoogleRequest:
    method = _update_method(row)
    inner = {name: value for name, value in values.items() if value is not None}
    inner["name"] = location
    body: dict[str, Any] = {method.wrap or "resource": inner, method.mask or "updateMask": ",".join(changed)}
    return GoogleRequest(method.verb, object_call(row, location), body)


def _update_method(row: KindFacts) -> MethodFacts:
    return row.methods.get("patch") or row.methods["update"]


def _put_method(row: KindFacts) -> MethodFacts:
    """The method that replaces the object: some services do so by a PATCH without a mask."""
    return row.methods.get("update") or row.methods["patch"]


def _verb(row: KindFacts) -> str:
    return _update_method(row).verb
