"""The request that creates an object of a row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from setpoint.catalogue.rows import KindFacts, MethodFacts
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.generic.creating.creation_defaults import with_creation_defaults
from setpoint.kinds.gcp.generic.members import without_nulls
from setpoint.kinds.gcp.generic.placement import segments, template_at
from setpoint.kinds.gcp.generic.requests import (
    GoogleRequest,
    collection_call,
    is_set_later,
    members_of,
    object_call,
    path_call,
    query_of,
)


def creation(row: KindFacts, location: Location, wanted: JsonObject, spec: JsonObject) -> GoogleRequest:
    """The request that creates the object. `spec` is what the author wrote."""
    method, own_id = row.methods["create"], _sent_id(row, location)
    body = creation_members(row, wanted, location)
    query = query_of(row, method, location, spec)
    other = _create_method(row, body)
    if other in row.other_methods:
        return _creation_by(row.other_methods[other], other, row, location, body)
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
            if row.id.form == "name":
                body["name"] = location
            return GoogleRequest(method.verb, object_call(row, location), content)
        case _:
            pass
    call = collection_call(row, location, query)
    return GoogleRequest(method.verb, replace(call, method=other), content)


def _creation_by(
    method: MethodFacts, name: str, row: KindFacts, location: Location, body: dict[str, Any]
) -> GoogleRequest:
    """The request of a method that makes the object of another one: what it is made of, and the id, stand beside it."""
    beside = {member: body.pop(member) for member in method.sends if member in body}
    content = {**beside, row.id.name: _sent_id(row, location), method.wrap: body}
    return GoogleRequest(method.verb, replace(collection_call(row, location), method=name), content)


def _create_method(row: KindFacts, body: Mapping[str, Any]) -> str:
    """The custom method that creates an object with such members; empty for the standard one."""
    for condition, method in row.create_methods.items():
        member, _, value = condition.partition("=")
        if member in body and value in ("", body[member]):
            return method
    return ""


def creation_members(row: KindFacts, wanted: JsonObject, location: Location) -> dict[str, Any]:
    """The members of a new object, without its id."""
    return with_creation_defaults(row, without_nulls(members_of(row, _creatable(row, wanted))), location)


def _creatable(row: KindFacts, wanted: JsonObject) -> JsonObject:
    """The compared tree without the fields that can only be set once the object is there."""
    own = wanted.get("spec")
    assert isinstance(own, Mapping)
    return {**wanted, "spec": {name: one for name, one in own.items() if not is_set_later(row, name)}}


def _is_custom(method: MethodFacts) -> bool:
    return ":" in method.path.rpartition("/")[2]


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
