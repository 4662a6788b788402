"""A type as a cluster's schema: structural OpenAPI v3, as custom resources have it.

Two things are left out on purpose. There is no default: a cluster would write it into the spec, and the spec is its
author's. And a type inside itself is not followed, as such a schema cannot be: from there on anything goes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import inspect

from setpoint.core.canonical import canonical
from setpoint.core.places import Holder, Place, inside_of, members_of, top_of
from setpoint.core.shape import Check, KeyedList, Mark
from setpoint.core.values import Json, Missing

Schema: TypeAlias = dict[str, Json]
# What the author of a type says of each of its fields, by the names that they have in Python.
Describe: TypeAlias = Callable[[Holder], Mapping[str, str]]

FIXED: Final = (
    "field is immutable: fixed when the object is created. Put the old value back, or delete the resource and apply it "
    "again"
)
ANYTHING: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LINE_BREAK: Final = re.compile(r"\s*\n\s*")
_WHOLE: Final = {(-(2**31), 2**31 - 1): "int32", (-(2**63), 2**63 - 1): "int64"}
_FORMS: Final[Mapping[frozenset[type], Schema]] = {
    frozenset({str}): {"type": "string"},
    frozenset({int}): {"type": "integer", "format": "int64"},
}
# Some services do not tell upper case from lower: whether that is a change is for the kind to say.
_SAME_TEXT: Final = "self.lowerAscii() == oldSelf.lowerAscii()"
_SAME: Final = "self == oldSelf"
# In the order in which they are told.
_WORDS: Final = {
    Mark.IMMUTABLE: "Immutable.",
    Mark.PROTECTED: "Protected: left out, the live value stands.",
    Mark.CHOSEN: "Left out, the service chooses.",
    Mark.WRITE_ONLY: "Write-only.",
    Mark.ASKED: "Sent when it changes: after that the service has the last word.",
    Mark.OUTPUT_ONLY: "Set by the service.",
}


def schema_of(type_: Holder, describe: Describe) -> Schema:
    """The schema of a struct type. TypeError names the field whose type has none."""
    return schema_at(top_of(type_), describe)


def schema_at(place: Place, describe: Describe) -> Schema:
    """The schema of one field and everything below it."""
    return _Writer(describe).schema(place)


class _Writer:
    """Writes schemas, inside the types that it is in already."""

    def __init__(self, describe: Describe, inside: tuple[Holder, ...] = (), *, has_past: bool = True) -> None:
        self._describe = describe
        self._inside = inside
        # Whether a cluster knows which old value is this one's: not so in a list that is replaced whole.
        self._has_past = has_past

    def schema(self, place: Place) -> Schema:
        described = self._description(place)
        return {
            **({"description": described} if described else {}),
            **self._form(place),
            **({"nullable": True} if _is_nullable(place) else {}),
            **_rules(list(self._checks(place))),
        }

    def _description(self, place: Place) -> str:
        holder, below = place.holder, place.attribute
        told = place.description or ("" if holder is None else self._describe(holder).get(below, ""))
        parts = [told, _choices(place), _default(place), *(word for mark, word in _WORDS.items() if _has(place, mark))]
        return " ".join(part for part in parts if part)

    def _form(self, place: Place) -> Schema:
        match place.type:
            case inspect.StructType(cls=cls):
                return {"type": "object", ANYTHING: True} if cls in self._inside else self._object(place, cls)
            case inspect.ListType():
                return self._list(place, place.type)
            case inspect.DictType():
                return self._map(place, place.type)
            case inspect.UnionType(types=types) if {type(one) for one in types} == {inspect.IntType, inspect.StrType}:
                return {"x-kubernetes-int-or-string": True}
            case inspect.UnionType() | inspect.AnyType():
                return {ANYTHING: True}
            case _:
                return _scalar(place)

    def _object(self, place: Place, cls: Holder) -> Schema:
        below = _Writer(self._describe, (*self._inside, cls), has_past=self._has_past)
        members = list(members_of(place))
        required: list[Json] = [one.name for one in members if one.is_required]
        properties = {one.name: below.schema(one) for one in members}
        return {
            "type": "object",
            **({"properties": properties} if properties else {}),
            **({"required": required} if required else {}),
        }

    def _list(self, place: Place, type_: inspect.ListType) -> Schema:
        inside = inside_of(place)
        assert inside is not None
        keys = _keys(place, inside)
        below = _Writer(self._describe, self._inside, has_past=self._has_past and bool(keys))
        kind: Schema = {_LIST_TYPE: "map", "x-kubernetes-list-map-keys": keys} if keys else {_LIST_TYPE: "atomic"}
        bounds = _bounds({"minItems": type_.min_length, "maxItems": type_.max_length})
        return {"type": "array", "items": below.schema(inside), **bounds, **kind}

    def _map(self, place: Place, type_: inspect.DictType) -> Schema:
        inside = inside_of(place)
        assert inside is not None
        bounds = _bounds({"minProperties": type_.min_length, "maxProperties": type_.max_length})
        return {"type": "object", "additionalProperties": self.schema(inside), **bounds}

    def _checks(self, place: Place) -> Iterator[Check]:
        choices = _values(place.type)
        if choices and _is_nullable(place):
            # An enum would refuse null.
            yield Check(f"self in {_text(choices)}", f"write {_listed(choices)}")
        cls = place.type.cls if isinstance(place.type, inspect.StructType) else None
        yield from getattr(cls, "__checks__", ())
        if _has(place, Mark.IMMUTABLE) and self._has_past:
            yield Check(_unchanged(place.type), FIXED)


# --- What a field says of itself -------------------------------------------------------------------------------------


def _has(place: Place, mark: Mark) -> bool:
    return mark in place.field.marks


def _is_nullable(place: Place) -> bool:
    return place.is_nullable or None in _all_values(place.type)


def _choices(place: Place) -> str:
    values = _values(place.type)
    return f"One of {', '.join(map(_text, values))}." if values else ""


def _default(place: Place) -> str:
    default = place.field.default
    if place.is_required or isinstance(default, Missing) or default in ({}, []):
        return ""
    return f"Default: {_text(default)}."


def _listed(values: Iterable[Json]) -> str:
    *most, last = map(_text, values)
    return f"{', '.join(most)} or {last}" if most else last


def _text(value: Json) -> str:
    return canonical(value).decode()


def _values(type_: inspect.Type) -> list[Json]:
    return [value for value in _all_values(type_) if value is not None]


def _all_values(type_: inspect.Type) -> tuple[Json, ...]:
    match type_:
        case inspect.LiteralType(values=values):
            return values
        case inspect.EnumType(cls=cls):
            return tuple(one.value for one in cls)
        case _:
            return ()


def _keys(place: Place, inside: Place) -> list[Json]:
    """What tells the elements of a list apart, where a cluster can go by it: all of it has to be there."""
    if not isinstance(place.field.shape, KeyedList):
        return []
    keys = place.field.shape.keys
    sure = {one.name for one in members_of(inside) if one.is_required and not one.is_nullable}
    return list(keys) if set(keys) <= sure else []


def _unchanged(type_: inspect.Type) -> str:
    match type_:
        case inspect.StrType():
            return _SAME_TEXT
        case inspect.StructType(cls=cls):
            return str(getattr(cls, "__unchanged__", _SAME))
        case _:
            return _SAME


# --- Parts of a schema -----------------------------------------------------------------------------------------------


def _rules(checks: list[Check]) -> Schema:
    rules: list[Json] = [
        {
            "rule": _LINE_BREAK.sub(" ", one.cel.strip()),
            "message": one.message,
            **({"fieldPath": f".{one.field}"} if one.field else {}),
        }
        for one in checks
    ]
    return {RULES: rules} if rules else {}


def _scalar(place: Place) -> Schema:
    match place.type:
        case inspect.StrType() as text:
            bounds = {"minLength": text.min_length, "maxLength": text.max_length, "pattern": text.pattern}
            return {"type": "string", **_bounds(bounds)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType() as whole:
            return _integer(whole)
        case inspect.FloatType() as real:
            return {"type": "number", "format": "double", **_range(real.ge, real.gt, real.le, real.lt)}
        case inspect.LiteralType() | inspect.EnumType():
            return _choice(place)
        case _:
            raise _no_form(place)


def _integer(whole: inspect.IntType) -> Schema:
    format_ = _WHOLE.get((whole.ge or 0, whole.le or 0))
    if format_ is not None:
        return {"type": "integer", "format": format_}
    return {"type": "integer", "format": "int64", **_range(whole.ge, whole.gt, whole.le, whole.lt)}


def _range(ge: Json, gt: Json, le: Json, lt: Json) -> Schema:
    low = {"minimum": gt, "exclusiveMinimum": True} if gt is not None else _bounds({"minimum": ge})
    high = {"maximum": lt, "exclusiveMaximum": True} if lt is not None else _bounds({"maximum": le})
    return {**low, **high}


def _choice(place: Place) -> Schema:
    values = _values(place.type)
    form = _FORMS.get(frozenset(map(type, values)))
    if form is None:
        raise _no_form(place)
    return {**form} if _is_nullable(place) else {**form, "enum": values}


def _no_form(place: Place) -> TypeError:
    return TypeError(f"{place.path}: {type(place.type).__name__} has no form that a cluster could check")


def _bounds(found: Mapping[str, Json]) -> Schema:
    return {name: bound for name, bound in found.items() if bound is not None}
