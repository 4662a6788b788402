"""The structural OpenAPI v3 schema of a struct type, for CustomResourceDefinitions.

Defaults are described but not set: the API server would write them into the author's spec. A recursive type is not
expanded, since structural schemas cannot be recursive: below it any field is accepted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import inspect

from setpoint.core.schema.checks import Check
from setpoint.core.schema.constraints import Constraint
from setpoint.core.schema.schema_nodes import SchemaNode, StructClass, item_node, member_nodes, root_node
from setpoint.core.schema.shape import (
    Field,
    KeyedList,
    MapShape,
    Mark,
    ObjectShape,
    shape_of,
)
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json, Missing

OpenApiSchema: TypeAlias = dict[str, Json]
# The descriptions of a struct type's fields, by the names of their attributes.
DescribeFields: TypeAlias = Callable[[StructClass], Mapping[str, str]]

IMMUTABLE_MESSAGE: Final = (
    "field is immutable: fixed when the object is created. Put the old value back, or delete the resource and apply it "
    "again"
)
PRESERVE_UNKNOWN_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"
VALIDATIONS: Final = "x-kubernetes-validations"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LINE_BREAK: Final = re.compile(r"\s*\n\s*")
_CONTAINERS: Final = (inspect.StructType, inspect.ListType, inspect.DictType, inspect.AnyType)
_WHOLE: Final = {(-(2**31), 2**31 - 1): "int32", (-(2**63), 2**63 - 1): "int64"}
_FORMS: Final[Mapping[frozenset[type], OpenApiSchema]] = {
    frozenset({str}): {"type": "string"},
    frozenset({int}): {"type": "integer", "format": "int64"},
}
# Some services ignore the case of letters: whether a different case is a change, only the kind can decide.
_SAME_TEXT: Final = "self.lowerAscii() == oldSelf.lowerAscii()"
_SAME: Final = "self == oldSelf"
# In the order in which they are described.
_MARK_TEXTS: Final = {
    Mark.IMMUTABLE: "Immutable.",
    Mark.PROTECTED: "Protected: left out, the live value stands.",
    Mark.CHOSEN: "Left out, the service chooses.",
    Mark.FILLED: "Left out from the start, the service chooses; taken out later, it is unset.",
    Mark.WRITE_ONLY: "Write-only.",
    Mark.ASKED: "Sent when it changes: after that the service has the last word.",
    Mark.OUTPUT_ONLY: "Set by the service.",
    Mark.JSON_TEXT: "JSON as text.",
}


# --- The schema ------------------------------------------------------------------------------------------------------


def schema_of(type_: StructClass, describe: DescribeFields) -> OpenApiSchema:
    """The schema of a struct type. TypeError names the field whose type has no schema."""
    return schema_of_node(root_node(type_), describe)


def schema_of_node(node: SchemaNode, describe: DescribeFields, *, rules_in_lists: bool = True) -> OpenApiSchema:
    """The schema of one field and everything below it.

    Without `rules_in_lists`, what is in a list or map without a bound has no rules in CEL, but patterns: an API server
    estimates the cost of a rule by the longest list possible, and refuses a definition that is over its budget.
    """
    return _SchemaWriter(describe, rules_in_lists=rules_in_lists).schema(node)


class _Validation(NamedTuple):
    """An entry of `x-kubernetes-validations`; `field` is the member that the message is about."""

    rule: str
    message: str
    field: str = ""


class _SchemaWriter:
    """Writes the schema of a node; `inside` are the struct types around it."""

    def __init__(
        self,
        describe: DescribeFields,
        inside: tuple[StructClass, ...] = (),
        *,
        has_old_value: bool = True,
        rules_in_lists: bool = True,
        has_rules: bool = True,
    ) -> None:
        self._describe = describe
        self._inside = inside
        self._rules_in_lists = rules_in_lists
        # Whether rules are written here at all.
        self._has_rules = has_rules
        # Whether the API server can match a value with its old one: not inside an atomic list.
        self._has_old_value = has_old_value

    def schema(self, node: SchemaNode) -> OpenApiSchema:
        described = self._description(node)
        return {
            **({"description": described} if described else {}),
            **self._form(node),
            **_keywords(node.field),
            **({"nullable": True} if _is_nullable(node) else {}),
            **(_rules(list(self._validations(node))) if self._has_rules else _pattern(node.field)),
        }

    def _below(
        self, *, inside: tuple[StructClass, ...] | None = None, has_old_value: bool = True, is_bounded: bool = True
    ) -> "_SchemaWriter":
        return _SchemaWriter(
            self._describe,
            self._inside if inside is None else inside,
            has_old_value=self._has_old_value and has_old_value,
            rules_in_lists=self._rules_in_lists,
            has_rules=self._has_rules and (is_bounded or self._rules_in_lists),
        )

    def _description(self, node: SchemaNode) -> str:
        struct, below = node.struct, node.attribute
        described = node.description or ("" if struct is None else self._describe(struct).get(below, ""))
        parts = [
            described,
            _choices(node),
            _default(node),
            *(_MARK_TEXTS[mark] for mark in _MARK_TEXTS if _has(node, mark) and not _is_never_sent_again(node, mark)),
        ]
        return " ".join(part for part in parts if part)

    def _form(self, node: SchemaNode) -> OpenApiSchema:
        match node.type:
            case inspect.StructType(cls=cls):
                return (
                    {"type": "object", PRESERVE_UNKNOWN_FIELDS: True}
                    if cls in self._inside
                    else self._object(node, cls)
                )
            case inspect.ListType():
                return self._list(node, node.type)
            case inspect.DictType():
                return self._map(node, node.type)
            case inspect.UnionType(types=types) if {type(one) for one in types} == {inspect.IntType, inspect.StrType}:
                return {"x-kubernetes-int-or-string": True}
            case inspect.UnionType() | inspect.AnyType():
                return {PRESERVE_UNKNOWN_FIELDS: True}
            case _:
                return _scalar(node)

    def _object(self, node: SchemaNode, cls: StructClass) -> OpenApiSchema:
        below = self._below(inside=(*self._inside, cls))
        members = list(member_nodes(node))
        required: list[Json] = [one.name for one in members if one.is_required]
        properties = {one.name: below.schema(one) for one in members}
        return {
            "type": "object",
            **({"properties": properties} if properties else {}),
            **({"required": required} if required else {}),
        }

    def _list(self, node: SchemaNode, type_: inspect.ListType) -> OpenApiSchema:
        inside = item_node(node)
        assert inside is not None
        keys = _keys(node, inside)
        below = self._below(has_old_value=bool(keys), is_bounded=type_.max_length is not None)
        kind: OpenApiSchema = (
            {_LIST_TYPE: "map", "x-kubernetes-list-map-keys": keys} if keys else {_LIST_TYPE: "atomic"}
        )
        bounds = _bounds({"minItems": type_.min_length, "maxItems": type_.max_length})
        return {"type": "array", "items": below.schema(inside), **bounds, **kind}

    def _map(self, node: SchemaNode, type_: inspect.DictType) -> OpenApiSchema:
        inside = item_node(node)
        assert inside is not None
        bounds = _bounds({"minProperties": type_.min_length, "maxProperties": type_.max_length})
        below = self._below(is_bounded=type_.max_length is not None)
        return {"type": "object", "additionalProperties": below.schema(inside), **bounds}

    def _validations(self, node: SchemaNode) -> Iterator[_Validation]:
        choices = _values(node.type)
        if choices and _is_nullable(node):
            # An enum would refuse null, so the values go into a rule.
            yield _Validation(f"self in {_text(choices)}", f"write {_listed(choices)}")
        shape = node.field.shape
        if isinstance(shape, ObjectShape):
            yield from _check_validations(shape.checks)
        yield from _constraint_validations(node.field.constraints, "self", "{}")
        if isinstance(shape, MapShape):
            yield from _constraint_validations(shape.constraints, "key", "self.all(key, {})")
        if _has(node, Mark.IMMUTABLE) and self._has_old_value:
            yield _Validation(_unchanged(node.type), IMMUTABLE_MESSAGE)


# --- Facts about one node --------------------------------------------------------------------------------------------


def _has(node: SchemaNode, mark: Mark) -> bool:
    return mark in node.field.marks


def _is_never_sent_again(node: SchemaNode, mark: Mark) -> bool:
    return mark is Mark.ASKED and _has(node, Mark.IMMUTABLE)


def _is_nullable(node: SchemaNode) -> bool:
    return node.is_nullable or None in _all_values(node.type)


def _choices(node: SchemaNode) -> str:
    values = _values(node.type)
    return f"One of {', '.join(map(_text, values))}." if values else ""


def _default(node: SchemaNode) -> str:
    default = node.field.default
    if node.is_required or isinstance(default, Missing) or default in ({}, []):
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


def _keys(node: SchemaNode, inside: SchemaNode) -> list[Json]:
    """The keys of a keyed list; none unless each is required and a scalar: `x-kubernetes-list-map-keys` demands it."""
    if not isinstance(node.field.shape, KeyedList):
        return []
    keys = node.field.shape.keys
    sure = {
        one.name
        for one in member_nodes(inside)
        if one.is_required and not one.is_nullable and not isinstance(one.type, _CONTAINERS)
    }
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


def _rules(validations: list[_Validation]) -> OpenApiSchema:
    rules: list[Json] = [
        {
            "rule": _LINE_BREAK.sub(" ", one.rule.strip()),
            "message": one.message,
            **({"fieldPath": f".{one.field}"} if one.field else {}),
        }
        for one in validations
    ]
    return {VALIDATIONS: rules} if rules else {}


def rules_of(type_: StructClass) -> OpenApiSchema:
    """The rules about a whole resource, without those of its fields. No rule can name a field of the metadata."""
    return _rules([_Validation(one.rule.cel, f"{one.field}: {one.message}") for one in shape_of(type_).checks])


def _keywords(field: Field) -> OpenApiSchema:
    checks = field.shape.checks if isinstance(field.shape, ObjectShape) else ()
    found = [*(one.keywords for one in field.constraints), *(one.rule.keywords for one in checks)]
    return {name: value for keywords in found for name, value in keywords.items()}


def _pattern(field: Field) -> OpenApiSchema:
    """The pattern that stands for the rules about a text."""
    found = next(filter(None, (one.pattern_keyword for one in field.constraints)), "")
    return {"pattern": found} if found else {}


def _check_validations(checks: Iterable[Check]) -> Iterator[_Validation]:
    return (_Validation(one.rule.cel, one.message, one.field) for one in checks if one.rule.cel)


def _constraint_validations(constraints: Iterable[Constraint], subject: str, quantified: str) -> Iterator[_Validation]:
    for one in constraints:
        rule = one.cel(subject)
        if rule:
            yield _Validation(quantified.format(rule), f"write {one.advice}")


def _scalar(node: SchemaNode) -> OpenApiSchema:
    match node.type:
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
            return _choice(node)
        case _:
            raise _no_schema_for(node)


def _integer(whole: inspect.IntType) -> OpenApiSchema:
    format_ = _WHOLE.get((whole.ge or 0, whole.le or 0))
    if format_ is not None:
        return {"type": "integer", "format": format_}
    return {"type": "integer", "format": "int64", **_range(whole.ge, whole.gt, whole.le, whole.lt)}


def _range(ge: Json, gt: Json, le: Json, lt: Json) -> OpenApiSchema:
    low = {"minimum": gt, "exclusiveMinimum": True} if gt is not None else _bounds({"minimum": ge})
    high = {"maximum": lt, "exclusiveMaximum": True} if lt is not None else _bounds({"maximum": le})
    return {**low, **high}


def _choice(node: SchemaNode) -> OpenApiSchema:
    values = _values(node.type)
    form = _FORMS.get(frozenset(map(type, values)))
    if form is None:
        raise _no_schema_for(node)
    return {**form} if _is_nullable(node) else {**form, "enum": values}


def _no_schema_for(node: SchemaNode) -> TypeError:
    return TypeError(f"{node.path}: {type(node.type).__name__} has no form that a cluster could check")


def _bounds(found: Mapping[str, Json]) -> OpenApiSchema:
    return {name: bound for name, bound in found.items() if bound is not None}
