"""What an object of an API may hold: the members of its JSON, derived from the rows of the catalogue."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import reduce
from typing import Final

from msgspec import UNSET, UnsetType

from setpoint.catalogue.parts import BESIDE
from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json

# A spec field that is no member of the API's object: a part of its address, or one without a known counterpart.
_NOT_MEMBERS: Final = frozenset({"url", "id", "?", "-"})


class MemberType(StrEnum):
    """The type of a member, named as in Google's error messages."""

    TEXT = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INTEGER = "TYPE_INT32"
    # A number in requests or text; always text in responses.
    INT64 = "TYPE_INT64"
    NUMBER = "TYPE_DOUBLE"
    BYTES = "TYPE_BYTES"
    ENUM = "TYPE_ENUM"
    DURATION = "type.googleapis.com/google.protobuf.Duration"
    TIME = "type.googleapis.com/google.protobuf.Timestamp"
    OBJECT = "object"
    LIST = "a list"
    MAP = "an object"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ApiMember:
    """A member of an object. An object without known members is free; a list or map has the type of its elements."""

    type: MemberType
    required: bool = False
    immutable: bool = False
    output_only: bool = False
    # Accepted, and never returned.
    input_only: bool = False
    values: tuple[str, ...] = ()
    default: Json | UnsetType = UNSET
    # Text that names another object.
    is_reference: bool = False
    element: "ApiMember | None" = None
    members: Mapping[str, "ApiMember"] = field(default_factory=dict)


_OUTPUT: Final = ApiMember(MemberType.ANY, output_only=True)
_ANY: Final = ApiMember(MemberType.ANY)
_TEXTS: Final = ApiMember(MemberType.MAP, element=ApiMember(MemberType.TEXT))
_SCALARS: Final = {
    "string": MemberType.TEXT,
    "integer": MemberType.INTEGER,
    "boolean": MemberType.BOOL,
    "number": MemberType.NUMBER,
    "any": MemberType.ANY,
}
_FORMATS: Final = {
    "google-duration": MemberType.DURATION,
    "google-datetime": MemberType.TIME,
    "date-time": MemberType.TIME,
    "byte": MemberType.BYTES,
    "int64": MemberType.INT64,
    # A JSON document as text in the spec, and as what it is in the API.
    "json-text": MemberType.ANY,
    "number-text": MemberType.NUMBER,
}


def object_of(rows: Iterable[KindFacts]) -> ApiMember:
    """The object of a collection that one row or several describe: it has the members of all of them."""
    return reduce(_merged, (_object_of_row(row) for row in rows))


def with_filled(shape: ApiMember, filled: Json) -> ApiMember:
    """A member whose service fills in this value: it takes that back, too, where rows do not know all of it."""
    if isinstance(filled, list) and shape.element is not None:
        return replace(shape, element=reduce(with_filled, filled, shape.element))
    # One without known members is free.
    if shape.type is not MemberType.OBJECT or not shape.members or not isinstance(filled, Mapping):
        return shape
    members = dict(shape.members)
    for name, value in filled.items():
        members[name] = with_filled(members[name], value) if name in members else _like(value)
    return replace(shape, members=members)


def _object_of_row(row: KindFacts) -> ApiMember:
    members = _members(row.fields)
    for name, value in row.constants.items():
        members = _with_member(members, name, _like(value))
    if row.title:
        members = _with_member(members, row.title, ApiMember(MemberType.TEXT))
    for name, values in row.chosen.items():
        members = _with_member(members, name, ApiMember(MemberType.ENUM, values=tuple(values.values())))
    if row.inside is not None:
        element = ApiMember(MemberType.OBJECT, members={row.inside.key: ApiMember(MemberType.TEXT), **members})
        return ApiMember(MemberType.OBJECT, members={row.inside.list: ApiMember(MemberType.LIST, element=element)})
    if row.labels:
        members = _with_member(members, row.labels, _TEXTS)
    for path in row.output_only:
        members = _with_member(members, path, _OUTPUT)
    for name in row.concurrency:
        # Sent back to say which state a write is based on; never written.
        members = _with_member(members, name, _OUTPUT)
    return ApiMember(MemberType.OBJECT, members=members)


def _members(fields: Mapping[str, FieldFacts]) -> Mapping[str, ApiMember]:
    members: Mapping[str, ApiMember] = {}
    for name, facts in fields.items():
        if facts.to == BESIDE:
            for beside, member in _members(facts.fields).items():
                members = _with_member(members, beside, replace(member, required=False))
        elif facts.to not in _NOT_MEMBERS and not facts.query:
            path = facts.to or name
            members = _with_member(members, path, _member(facts, path))
    return members


def _with_member(members: Mapping[str, ApiMember], path: str, member: ApiMember) -> Mapping[str, ApiMember]:
    name, _, rest = path.partition(".")
    here = members.get(name)
    if rest:
        inner = here if here is not None and here.type is MemberType.OBJECT else ApiMember(MemberType.OBJECT)
        added = replace(inner, members=_with_member(inner.members, rest, member))
    else:
        added = member if here is None else _merged(here, member)
    return {**members, name: added}


def _merged(one: ApiMember, other: ApiMember) -> ApiMember:
    """A member that two rows, or two fields, describe: what only one of them demands is not demanded."""
    if one.type is not other.type or one.output_only != other.output_only:
        written = one if other.output_only or not one.output_only else other
        return replace(written, required=False)
    both = set(one.members) & set(other.members)
    joined = {
        name: _merged(one.members[name], other.members[name]) if name in both else replace(member, required=False)
        for name, member in (*one.members.items(), *other.members.items())
    }
    element = one.element
    if one.element is not None and other.element is not None:
        element = _merged(one.element, other.element)
    return replace(
        one,
        members=joined,
        element=element,
        required=one.required and other.required,
        immutable=one.immutable and other.immutable,
        input_only=one.input_only and other.input_only,
        values=tuple(dict.fromkeys((*one.values, *other.values))) if one.values and other.values else (),
        default=one.default if one.default == other.default else UNSET,
    )


def _member(facts: FieldFacts, path: str) -> ApiMember:
    flagged = replace(
        _shaped(facts),
        required=facts.required and not facts.output_only,
        immutable=facts.immutable,
        # What only a method of its own sets is not set by an update.
        output_only=facts.output_only or facts.later or bool(facts.toggle),
        # A certificate may be kept in a Secret beside its key, but it is none.
        input_only=(facts.input_only or facts.secret) and "certificate" not in path.lower(),
    )
    # Defaults of Config Connector are not the service's.
    return replace(flagged, default=facts.default) if facts.default_from in ("api", "both") else flagged


def _shaped(facts: FieldFacts) -> ApiMember:
    if facts.ref is not None or facts.one_of_refs or facts.secret:
        return _reference(facts)
    if facts.shape is None:
        return _plain(facts)
    if facts.shape == "inner-object":
        return _shaped(next(iter(facts.fields.values())))
    text, free = ApiMember(MemberType.TEXT, is_reference=True), ApiMember(MemberType.OBJECT)
    named = {name: ApiMember(MemberType.TEXT) for name in (*facts.adds, "value")}
    shapes = {
        "value-of-element": ApiMember(MemberType.LIST, element=ApiMember(MemberType.OBJECT, members=named)),
        "part-of-list": ApiMember(MemberType.LIST, element=_object(facts)),
        "true-to-object": free,
        "map-to-key-value-list": ApiMember(MemberType.LIST, element=free),
        "map-of-objects-to-map": ApiMember(MemberType.MAP, element=_ANY),
        "object-to-list-of-one": ApiMember(MemberType.LIST, element=_object(facts)),
        "list-of-one-to-object": _object(facts),
        "key-value-list-to-map": ApiMember(MemberType.MAP, element=_ANY),
        "keyed-list-to-map": ApiMember(MemberType.MAP, element=_keyed(facts)),
        "refs-to-texts": ApiMember(MemberType.LIST, element=text),
        "one-of-to-text": _wrapped_value(facts) or text,
    }
    return shapes[facts.shape]


def _wrapped_value(facts: FieldFacts) -> ApiMember | None:
    """The value of an object whose one field is neither a text nor a reference."""
    inner = list(facts.fields.values())
    is_text = len(inner) != 1 or inner[0].ref is not None or inner[0].fields or inner[0].type == "string"
    return None if is_text else _plain(inner[0])


def _reference(facts: FieldFacts) -> ApiMember:
    text = ApiMember(MemberType.TEXT, is_reference=not facts.secret)
    if facts.within:
        text = ApiMember(MemberType.OBJECT, members={facts.within: text, **_added(facts)})
    return ApiMember(MemberType.LIST, element=text) if facts.type == "list" else text


def _plain(facts: FieldFacts) -> ApiMember:
    match facts.type:
        case "object":
            return _object(facts)
        case "list":
            return ApiMember(MemberType.LIST, element=_element(facts))
        case "map":
            return ApiMember(MemberType.MAP, element=_element(facts))
        case _:
            return _scalar(facts)


def _object(facts: FieldFacts) -> ApiMember:
    return ApiMember(MemberType.OBJECT, members={**_members(facts.fields), **_added(facts)})


def _keyed(facts: FieldFacts) -> ApiMember:
    """A value of a map whose elements are a list in the spec: its key is a member of it only where the row says so."""
    found = _object(facts)
    key = facts.keys[0] if facts.keys else ""
    is_member = key in facts.fields and bool(facts.fields[key].to)
    return replace(found, members={name: one for name, one in found.members.items() if name != key or is_member})


def _added(facts: FieldFacts) -> Mapping[str, ApiMember]:
    """What is sent with the object of a field whatever the spec says."""
    return {name: _like(value) for name, value in facts.adds.items()}


def _like(value: object) -> ApiMember:
    """A member that a value of this type fits."""
    if isinstance(value, bool):
        return ApiMember(MemberType.BOOL)
    return ApiMember(MemberType.TEXT if isinstance(value, str) else MemberType.ANY)


def _element(facts: FieldFacts) -> ApiMember:
    if facts.fields:
        return _object(facts)
    return ApiMember(_SCALARS.get(facts.items, MemberType.ANY))


def _scalar(facts: FieldFacts) -> ApiMember:
    if facts.values:
        return _like(next(iter(facts.values.values())))
    if facts.int64_text:
        return ApiMember(MemberType.INT64)
    if facts.enum:
        return ApiMember(MemberType.ENUM, values=tuple(facts.enum))
    if facts.type == "string":
        return ApiMember(_FORMATS.get(facts.format, MemberType.TEXT))
    return ApiMember(_SCALARS[facts.type])
