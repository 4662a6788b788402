"""The requests of a row: create, update in the style of the API, delete; each as a call and its body."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from setpoint.catalogue.rows import KindFacts, MethodFacts
from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location
from setpoint.kinds.gcp.generic.members import from_members, member_path, to_members
from setpoint.kinds.gcp.generic.placement import segments, template_at

SET_LABELS: Final = "setLabels"
_LABELS: Final = Path(("metadata", "labels"))
_FINGERPRINTS: Final = ("fingerprint", "etag")


@dataclass(frozen=True, slots=True)
class GoogleRequest:
    """A request that changes an object."""

    verb: str
    call: GoogleCall
    body: Json = None


def api_of(row: KindFacts) -> GoogleApi:
    """The API of a row."""
    return GoogleApi(row.host, f"/{row.prefix.rstrip('/')}")


def object_call(row: KindFacts, location: Location, query: Mapping[str, str] | None = None) -> GoogleCall:
    """The call that names the object."""
    return GoogleCall(api_of(row), segments(row, location), query or {})


def collection_call(row: KindFacts, location: Location, query: Mapping[str, str] | None = None) -> GoogleCall:
    """The call that names the collection of the object."""
    return GoogleCall(api_of(row), segments(row, location)[:-1], query or {})


def sending_of(row: KindFacts) -> PlanOptions:
    """How changes are sent: what a method of its own sets in a write of its own, the rest in one update.

    What is switched by a method can only be switched once the object is there.
    """
    switched = [(name, Path(("spec", name))) for name, facts in row.fields.items() if facts.toggle]
    stages = [WriteStage(name, (path,)) for name, path in switched]
    stages += [WriteStage(name, (Path(("spec", field)),)) for field, name in own_methods(row).items()]
    if SET_LABELS in row.per_field_methods and row.labels:
        stages.append(WriteStage(SET_LABELS, (_LABELS,)))
    return PlanOptions(tuple(stages), after_creation=tuple(path for _, path in switched))


def own_methods(row: KindFacts) -> Mapping[str, str]:
    """The method that sets a field, by the field: where it has a method of its own, which takes that one member."""
    found: dict[str, str] = {}
    for name in row.per_field_methods:
        sends = [one for one in row.other_methods[name].sends if "ingerprint" not in one] if name != SET_LABELS else []
        for field, facts in row.fields.items():
            if len(sends) == 1 and member_path(field, facts) == (sends[0],) and name.startswith(("set", "resize")):
                found[field] = name
    return found


# --- Create -----------------------------------------------------------------------------------------------------------


def creation(row: KindFacts, location: Location, wanted: JsonObject, spec: JsonObject) -> GoogleRequest:
    """The request that creates the object. `spec` is what the author wrote."""
    method, own_id = row.methods["create"], _sent_id(row, location)
    body = _with_constants(row, _without_nulls(_members(row, wanted)))
    query = dict(_query_of(row, method, spec))
    content: dict[str, Any] = {method.wrap: body} if method.wrap else body
    match row.id.where:
        case "query":
            query[row.id.name] = own_id
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
    return GoogleRequest(method.verb, collection_call(row, location, query), content)


def _with_constants(row: KindFacts, body: dict[str, Any]) -> dict[str, Any]:
    """The body with what the service wants whatever the spec says, or because of which members there are."""
    chosen = {
        member: word
        for member, words in row.chosen.items()
        for other, word in words.items()
        if other in body and member not in body
    }
    return {**row.constants, **chosen, **body}


def _query_of(row: KindFacts, method: MethodFacts, spec: JsonObject) -> Iterator[tuple[str, str]]:
    """The fields of the spec that are parameters of the method."""
    for name, facts in row.fields.items():
        parameter = facts.to or name
        if facts.query and parameter in method.query and spec.get(name) is not None:
            value = spec[name]
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


def _members(row: KindFacts, tree: JsonObject) -> dict[str, Any]:
    """The members of the API's object for a compared tree."""
    spec, metadata = tree.get("spec"), tree.get("metadata")
    found = to_members(spec if isinstance(spec, Mapping) else {}, row.fields)
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    if row.labels and labels:
        found[row.labels] = dict(labels) if isinstance(labels, Mapping) else labels
    return found


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


# --- Update -----------------------------------------------------------------------------------------------------------


def update(
    row: KindFacts, intent: Intent, wanted: JsonObject, write: PlannedWrite, live: Mapping[str, Any]
) -> GoogleRequest:
    """The request that sends a write of the plan. What the row does not model keeps its live value."""
    location = intent.location
    if write.name != "update":
        return _own_method(row, location, wanted, write, live)
    before, after = _live_members(row, live), _without_nulls(_members(row, wanted))
    changed = changed_members(row, write)
    values = {name: _kept(live.get(name), before.get(name), after.get(name)) for name in changed}
    query = {**_mask_query(row, changed), **dict(_query_of(row, _update_method(row), intent.resource.spec))}
    match row.update_style:
        case "put" | "put-mask-query":
            whole = {name: value for name, value in {**live, **values}.items() if value is not None}
            return GoogleRequest("PUT", object_call(row, location, query), whole)
        case "patch-mask-query":
            present = {name: value for name, value in values.items() if value is not None}
            body = {**_precondition(row, live), **present}
            return GoogleRequest(_verb(row), object_call(row, location, query), body)
        case "patch-mask-body":
            return _masked_body(row, location, changed, values)
        case _:
            body = {name: _with_removals(live.get(name), value) for name, value in values.items()}
            return GoogleRequest(_verb(row), object_call(row, location), {**_precondition(row, live), **body})


def changed_members(row: KindFacts, write: PlannedWrite) -> tuple[str, ...]:
    """The members of the API's object that a write changes."""
    found: dict[str, None] = {}
    for change in write.changes:
        if _LABELS.covers(change.path):
            found[row.labels] = None
            continue
        name = str(change.path.steps[1])
        path = member_path(name, row.fields[name]) if name in row.fields else ()
        found |= {path[0]: None} if path else {}
    return tuple(sorted(found))


def _live_members(row: KindFacts, live: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a live object that the row models."""
    found = to_members(from_members(live, row.fields), row.fields)
    if row.labels and row.labels in live:
        found[row.labels] = live[row.labels]
    return found


def _kept(live: Any, before: Any, after: Any) -> Any:  # noqa: ANN401 - JSON
    """The value to be sent: `after`, with the members of the live object that are not modelled."""
    if isinstance(live, Mapping) and isinstance(after, Mapping):
        was = before if isinstance(before, Mapping) else {}
        unmodelled = {name: one for name, one in live.items() if name not in was and name not in after}
        return {**unmodelled, **{name: _kept(live.get(name), was.get(name), one) for name, one in after.items()}}
    return after


def _with_removals(live: Any, value: Any) -> Any:  # noqa: ANN401 - JSON
    """A value for a merge patch: what it no longer has is null."""
    if isinstance(live, Mapping) and isinstance(value, Mapping):
        removed = {name: None for name in live if name not in value}
        return {**removed, **{name: _with_removals(live.get(name), one) for name, one in value.items()}}
    return value


def _mask_query(row: KindFacts, changed: Sequence[str]) -> Mapping[str, str]:
    return {"updateMask": ",".join(changed)} if "mask-query" in row.update_style else {}


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


def _verb(row: KindFacts) -> str:
    return _update_method(row).verb


def _own_method(
    row: KindFacts, location: Location, wanted: JsonObject, write: PlannedWrite, live: Mapping[str, Any]
) -> GoogleRequest:
    """The request of a method that sets one field."""
    if write.name == SET_LABELS:
        return _set_labels(row, location, wanted, live)
    call = object_call(row, location)
    if write.name in row.fields and row.fields[write.name].toggle:
        spec = wanted["spec"]
        assert isinstance(spec, Mapping)
        method = row.fields[write.name].toggle["true" if spec.get(write.name) else "false"]
        return GoogleRequest("POST", _custom(row, call, method), {})
    values = _without_nulls(_members(row, wanted))
    members = changed_members(row, write)
    return GoogleRequest("POST", _custom(row, call, write.name), {name: values.get(name) for name in members})


def _custom(row: KindFacts, call: GoogleCall, method: str) -> GoogleCall:
    """A method of the object's own: after a slash or a colon, as its path has it."""
    path = row.other_methods[method].path if method in row.other_methods else f":{method}"
    if path.endswith(f":{method}"):
        return GoogleCall(call.service, call.parts, method=method)
    return GoogleCall(call.service, (*call.parts, method))


def _set_labels(row: KindFacts, location: Location, wanted: JsonObject, live: Mapping[str, Any]) -> GoogleRequest:
    call = object_call(row, location)
    body = {"labels": _members(row, wanted).get(row.labels, {}), "labelFingerprint": live.get("labelFingerprint", "")}
    return GoogleRequest("POST", GoogleCall(call.service, (*call.parts, SET_LABELS)), body)
