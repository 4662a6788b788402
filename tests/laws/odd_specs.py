"""Specs, right and wrong, drawn from their types."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from setpoint.core.schema.constraints import Between, Constraint, Matches, OneOf
from setpoint.core.schema.schema_nodes import SchemaNode, item_node, member_nodes, root_node
from setpoint.kinds.gcp.shared.config_connector import SpecReference
from setpoint.kinds.gcp.sql_instance.spec import SecretText
from setpoint.kinds.gcp.sql_user.spec import UserPassword

_TEXTS: Final = st.sampled_from(["", "a", "b", "projects/p/instances/a", "600s", "ENTERPRISE", "EU", "é\U0001f600"])
_EDGES: Final = st.sampled_from([0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
# Something that is wrong almost everywhere.
_WRONG: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, True, 1, 2**63, -(2**63) - 1, 1.5, "text", [], ["a"], [None], {}]
)
_RARELY: Final = st.sampled_from([False] * 14 + [True])
_NAMES: Final = st.sampled_from(["a", "b"])
_KEYS: Final = st.sampled_from(["a", "b", "A_1", "", "a=b"])
_KEY: Final = st.fixed_dictionaries({"secretKeyRef": st.fixed_dictionaries({"name": _NAMES, "key": _NAMES})})
_SECRETS: Final = st.fixed_dictionaries({"value": _NAMES}) | st.fixed_dictionaries({"valueFrom": _KEY})
# What is seldom right by chance.
_SENSIBLE: Final[Mapping[type, st.SearchStrategy[Any]]] = {
    SpecReference: st.fixed_dictionaries(
        {"name": _NAMES}, optional={"namespace": _NAMES, "external": st.sampled_from(["", None])}
    )
    | st.fixed_dictionaries({"external": _NAMES}, optional={"namespace": _NAMES, "name": st.sampled_from(["", None])}),
    UserPassword: _SECRETS,
    SecretText: _SECRETS,
}


@st.composite
def right_specs(draw: st.DrawFn, type_: type[msgspec.Struct]) -> dict[str, Any]:
    """A spec that its type takes."""
    found: dict[str, Any] = _value(draw, root_node(type_), is_sure=True)
    return found


@st.composite
def odd_specs(draw: st.DrawFn, type_: type[msgspec.Struct]) -> dict[str, Any]:
    """A spec that may have something wrong in it; it names no field that there is not."""
    found: dict[str, Any] = _value(draw, root_node(type_), is_sure=False)
    return found


def _value(draw: st.DrawFn, place: SchemaNode, *, is_sure: bool) -> Any:
    if place.path and not is_sure and draw(_RARELY):
        return draw(_WRONG)
    if place.is_nullable and draw(st.integers(0, 7)) == 0:
        return None
    if place.field.constraints and not draw(_RARELY):
        return draw(_allowed(place.field.constraints[0]))
    match place.type:
        case inspect.StructType(cls=cls) if cls in _SENSIBLE and not draw(_RARELY):
            return draw(_SENSIBLE[cls])
        case inspect.StructType():
            return _object(draw, place, is_sure=is_sure)
        case inspect.ListType():
            inside = item_node(place)
            assert inside is not None
            return [_value(draw, inside, is_sure=is_sure) for _ in range(draw(st.integers(0, 2)))]
        case inspect.DictType(value_type=value):
            return {draw(_KEYS): _scalar(draw, value) for _ in range(draw(st.integers(0, 2)))}
        case _:
            return _scalar(draw, place.type)


def _allowed(constraint: Constraint) -> st.SearchStrategy[Any]:
    """Values that a constraint allows: what is seldom right by chance."""
    match constraint:
        case OneOf(values=values):
            return st.sampled_from(values)
        case Matches(pattern=pattern, max_length=longest):
            return st.from_regex(pattern, fullmatch=True).filter(lambda text: len(text) <= longest)
        case Between(low=low, high=high, or_zero=or_zero):
            return st.sampled_from([low, low + 1, low if high is None else high, 0 if or_zero else low])
        case other:
            raise AssertionError(f"no spec has {other}")


def _scalar(draw: st.DrawFn, type_: inspect.Type) -> Any:
    match type_:
        case inspect.LiteralType(values=values):
            return draw(st.sampled_from(values))
        case inspect.EnumType(cls=cls):
            return draw(st.sampled_from([one.value for one in cls]))
        case inspect.BoolType():
            return draw(st.booleans())
        case inspect.IntType():
            return draw(_EDGES)
        case inspect.StrType():
            return draw(_TEXTS)
        case other:
            raise AssertionError(f"no spec has {other}")


def _object(draw: st.DrawFn, place: SchemaNode, *, is_sure: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in member_nodes(place):
        is_there = draw(st.integers(0, 2)) == 0 or (one.is_required and (is_sure or not draw(_RARELY)))
        if is_there:
            found[one.name] = _value(draw, one, is_sure=is_sure)
    return found
