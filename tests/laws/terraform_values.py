"""Strategies for Terraform's types and values, with the awkward ones made common."""

from decimal import Decimal

from hypothesis import strategies as st

from setpoint.errors import Bug
from setpoint.terraform.cty.codec import encode_msgpack
from setpoint.terraform.cty.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    CtyType,
    ListType,
    MapType,
    ObjectType,
    PrimitiveType,
    SetType,
    TupleType,
)
from setpoint.terraform.cty.values import (
    UNKNOWN,
    CtyValue,
    Dynamic,
    NumberBound,
    Refinement,
    UnknownValue,
    normalize_number,
)
from tests.laws.json_values import text

names = st.sampled_from(("a", "b", "type", "value", "é"))
types: st.SearchStrategy[CtyType] = st.recursive(
    st.sampled_from((STRING, NUMBER, BOOL, DYNAMIC)),
    lambda inner: (
        inner.map(ListType)
        | inner.map(SetType)
        | inner.map(MapType)
        | st.dictionaries(names, inner, max_size=3).map(ObjectType)
        | st.lists(inner, max_size=3).map(lambda those: TupleType(tuple(those)))
    ),
    max_leaves=6,
)
# Those of which a value can be: what is dynamic has another one.
actual_types = types.filter(lambda one: one is not DYNAMIC)

fractions = st.decimals(allow_nan=False, allow_infinity=False, places=12).map(normalize_number)
doubles = st.floats(allow_nan=False, allow_infinity=False).map(lambda one: normalize_number(Decimal(one)))
infinities = st.sampled_from((Decimal("Infinity"), Decimal("-Infinity")))
nearest_to_a_fifth = Decimal.from_float(0.2)
edges = st.sampled_from(
    (0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40, Decimal("0.2"), nearest_to_a_fifth)
)
numbers = edges | st.integers() | fractions | doubles
bounds = st.none() | st.builds(NumberBound, numbers, st.booleans())
lengths = st.none() | st.integers(0, 9)


@st.composite
def refinements(draw: st.DrawFn, type_: CtyType) -> Refinement:
    """What may be known of an unknown of `type_`."""
    null = draw(st.sampled_from((None, False)))
    if type_ is STRING:
        return Refinement(null, draw(text))
    if type_ is NUMBER:
        return Refinement(null, lower_bound=draw(bounds), upper_bound=draw(bounds))
    if isinstance(type_, ListType | SetType | MapType):
        return Refinement(null, min_length=draw(lengths), max_length=draw(lengths))
    return Refinement() if type_ is DYNAMIC else Refinement(null)


@st.composite
def values_of(draw: st.DrawFn, type_: CtyType, *, known: bool = False) -> CtyValue:
    """A value of `type_`; with `known`, no part of it is unknown."""
    match draw(st.integers(0, 9)):
        case 0:
            return None
        case 1 if not known:
            return UnknownValue(draw(refinements(type_)))
        case _:
            return draw(_inner(type_, known=known))


def _inner(type_: CtyType, *, known: bool) -> st.SearchStrategy[CtyValue]:
    match type_:
        case PrimitiveType():
            return _primitives(type_, known=known)
        case ListType(element) | SetType(element):
            return st.lists(values_of(element, known=known), max_size=3).map(tuple)
        case MapType(element):
            return st.dictionaries(text, values_of(element, known=known), max_size=3)
        case TupleType(elements):
            return st.tuples(*(values_of(one, known=known) for one in elements))
        case ObjectType(attributes):
            return st.fixed_dictionaries({name: values_of(one, known=known) for name, one in attributes.items()})


def _primitives(type_: PrimitiveType, *, known: bool) -> st.SearchStrategy[CtyValue]:
    match type_:
        case PrimitiveType.STRING:
            return text
        case PrimitiveType.BOOL:
            return st.booleans()
        case PrimitiveType.NUMBER:
            return st.one_of(numbers, infinities)
        case PrimitiveType.DYNAMIC:
            return dynamics(known=known)


@st.composite
def dynamics(draw: st.DrawFn, *, known: bool) -> CtyValue:
    """A value of the dynamic type, with the type that it has."""
    type_ = draw(actual_types)
    return Dynamic(type_, draw(values_of(type_, known=known)))


@st.composite
def typed_values(draw: st.DrawFn, *, known: bool = False) -> tuple[CtyType, CtyValue]:
    """A type, and a value of it."""
    type_ = draw(types)
    return type_, draw(values_of(type_, known=known))


NOT_NULL = UnknownValue(Refinement(null=False))
unknowns = st.sampled_from((UNKNOWN, NOT_NULL))


def conforms(value: CtyValue, type_: CtyType) -> bool:
    """Whether `value` is of `type_`: it can be encoded."""
    try:
        encode_msgpack(value, type_)
    except Bug:
        return False
    return True
