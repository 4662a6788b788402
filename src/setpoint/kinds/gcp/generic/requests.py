"""The requests of a row: create, update in the style of the API, delete; each as a call and its body."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from setpoint.catalogue.parts import LABELS
from setpoint.catalogue.rows import ANY_VALUE, FieldFacts, KindFacts, MethodFacts
from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location
from setpoint.errors import ImmutableFieldChanged
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
from setpoint.kinds.gcp.generic.placement import parts_at, segments, template_at, variables_of
from setpoint.kinds.gcp.shared.config_connector import MARK_LABEL

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


def _is_custom(method: MethodFacts) -> bool:
    return ":" in method.path.rpartition("/")[2]


# --- Create -----------------------------------------------------------------------------------------------------------


def creation(row: KindFacts, location: Location, wanted: JsonObject, spec: JsonObject) -> GoogleRequest:
    """The request that creates the object. `spec` is what the author wrote."""
    method, own_id = row.methods["create"], _sent_id(row, location)
    body = creation_members(row, wanted, location)
    query = query_of(row, method, location, spec)
    content: dict[str, Any] = {method.wrap: body} if method.wrap else body
    if _is_custom(method) or row.id.where == "fields":
        return GoogleRequest(method.verb, path_call(row, method, location, query), content)
    match row.id.where:
        case "query":
            query[row.id.name] = row.id.value.replace("{id}", own_id) or own_id
        case "body":
            text = location if row.id.form == "name" else own_id
            if row.id.value:
                text = row.id.value.replace("{id}", own_id)
            _identify(content if row.id.beside == "wrap" else body, row, location, text)
        case "url":
            body["name"] = location
            return GoogleRequest(method.verb, object_call(row, location), content)
        case _:
            pass
    call = collection_call(row, location, query)
    return GoogleRequest(method.verb, replace(call, method=_create_method(row, body)), content)


def _create_method(row: KindFacts, body: Mapping[str, Any]) -> str:
    """The custom method that creates an object with such members; empty for the standard one."""
    for condition, method in row.create_methods.items():
        member, _, value = condition.partition("=")
        if member in body and value in ("", body[member]):
            return method
    return ""


def creation_members(row: KindFacts, wanted: JsonObject, location: Location) -> dict[str, Any]:
    """The members of a new object, without its id."""
    body = _with_constants(row, without_nulls(members_of(row, _creatable(row, wanted))), template_at(row, location))
    return _with_element_defaults(row, body, location)


def _creatable(row: KindFacts, wanted: JsonObject) -> JsonObject:
    """The compared tree without the fields that can only be set once the object is there."""
    own = wanted.get("spec")
    assert isinstance(own, Mapping)
    return {**wanted, "spec": {name: one for name, one in own.items() if not is_set_later(row, name)}}


def is_set_later(row: KindFacts, field: str) -> bool:
    """Whether a creation cannot send the field."""
    facts = row.fields.get(field)
    return facts is not None and (facts.later or bool(facts.toggle))


def _with_constants(row: KindFacts, body: dict[str, Any], template: str) -> dict[str, Any]:
    """The body with what is sent whatever the spec says, or because of which members there are, or of the place."""
    constants = {
        member: value
        for member, value in row.constants.items()
        if not any(member in group and other in body for group in row.alternatives for other in group)
    }
    chosen = {
        member: word
        for member, words in row.chosen.items()
        for other, word in words.items()
        if other in body and member not in body
    }
    found = {**constants, **chosen, **body}
    for one in row.creation_defaults:
        if (
            not one.each
            and (not one.at or f"/{one.at}/" in template)
            and all(_is_given(found.get(n), of) for n, of in one.given.items())
        ):
            found = with_defaults_of(one.members, found)
    return found


def _with_element_defaults(row: KindFacts, body: dict[str, Any], location: Location) -> dict[str, Any]:
    """The body with what is sent in certain elements of its lists."""
    for one in row.creation_defaults:
        elements = body.get(one.each) if one.each else None
        if isinstance(elements, list):
            members = _filled(one.members, parts_at(row, location))
            body[one.each] = [
                with_defaults_of(members, element)
                if isinstance(element, Mapping) and all(_is_given(element.get(n), of) for n, of in one.given.items())
                else element
                for element in elements
            ]
    return body


def _filled(value: Any, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """A value with the variables in its texts replaced."""
    if isinstance(value, Mapping):
        return {name: _filled(one, variables) for name, one in value.items()}
    return value.format_map(variables) if isinstance(value, str) else value


def _is_given(value: Any, expected: Any) -> bool:  # noqa: ANN401 - JSON
    return value is not None if expected == ANY_VALUE else bool(value == expected)


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


def _sent_id(row: KindFacts, location: Location) -> str:
    """The id as it is sent: without what the service makes of it."""
    own = segments(row, location)[-1]
    return own.partition("@")[0] if row.own_id else own


def _identify(body: dict[str, Any], row: KindFacts, location: Location, own_id: str) -> None:
    """Puts the id into the body; where it is part of an object, such as `tableReference`, with the ids above it."""
    *above, last = row.id.name.split(".")
    for step in above:
        body = body.setdefault(step, {})
    if above:
        names = dict(zip(template_at(row, location).split("/"), segments(row, location), strict=True))
        body |= {f"{name[1:-1]}Id": one for name, one in names.items() if name.startswith("{")}
    body[last] = own_id


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
    changed, settable = changed_members(row, write), _settable(row, live, members_of(row, intent.declared.tree))
    values = update_members(row, wanted, write, settable)
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
