"""Strategies for Terraform's types and values, with the awkward ones made common."""

from decimal import Decimal

from hypothesis import strategies as st

from setpoint.terraform.cty_types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    Primitive,
    SetOf,
    TupleOf,
    Type,
)
from setpoint.terraform.cty_values import NOT_NULL, UNKNOWN, Bound, Dynamic, Refinement, Unknown, Value
from setpoint.terraform.exact_numbers import exact
from tests.laws.json_values import text

names = st.sampled_from(("a", "b", "type", "value", "é"))
types: st.SearchStrategy[Type] = st.recursive(
    st.sampled_from((STRING, NUMBER, BOOL, DYNAMIC)),
    lambda inner: (
        inner.map(ListOf)
        | inner.map(SetOf)
        | inner.map(MapOf)
        | st.dictionaries(names, inner, max_size=3).map(ObjectOf)
        | st.lists(inner, max_size=3).map(lambda those: TupleOf(tuple(those)))
    ),
    max_leaves=6,
)
# Those of which a value can be: what is dynamic has another one.
actual_types = types.filter(lambda one: one is not DYNAMIC)

fractions = st.decimals(allow_nan=False, allow_infinity=False, places=12).map(exact)
doubles = st.floats(allow_nan=False, allow_infinity=False).map(lambda one: exact(Decimal(one)))
infinities = st.sampled_from((Decimal("Infinity"), Decimal("-Infinity")))
nearest_to_a_fifth = Decimal.from_float(0.2)
edges = st.sampled_from(
    (0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40, Decimal("0.2"), nearest_to_a_fifth)
)
numbers = edges | st.integers() | fractions | doubles
bounds = st.none() | st.builds(Bound, numbers, st.booleans())
lengths = st.none() | st.integers(0, 9)


@st.composite
def refinements(draw: st.DrawFn, type_: Type) -> Refinement:
    """What may be known of an unknown of `type_`."""
    null = draw(st.sampled_from((None, False)))
    if type_ is STRING:
        return Refinement(null, draw(text))
    if type_ is NUMBER:
        return Refinement(null, least=draw(bounds), most=draw(bounds))
    if isinstance(type_, ListOf | SetOf | MapOf):
        return Refinement(null, fewest_parts=draw(lengths), most_parts=draw(lengths))
    return Refinement() if type_ is DYNAMIC else Refinement(null)


@st.composite
def values_of(draw: st.DrawFn, type_: Type, *, known: bool = False) -> Value:
    """A value of `type_`; with `known`, no part of it is unknown."""
    match draw(st.integers(0, 9)):
        case 0:
            return None
        case 1 if not known:
            return Unknown(draw(refinements(type_)))
        case _:
            return draw(_inner(type_, known=known))


def _inner(type_: Type, *, known: bool) -> st.SearchStrategy[Value]:
    match type_:
        case Primitive():
            return _primitives(type_, known=known)
        case ListOf(element) | SetOf(element):
            return st.lists(values_of(element, known=known), max_size=3).map(tuple)
        case MapOf(element):
            return st.dictionaries(text, values_of(element, known=known), max_size=3)
        case TupleOf(elements):
            return st.tuples(*(values_of(one, known=known) for one in elements))
        case ObjectOf(attributes):
            return st.fixed_dictionaries({name: values_of(one, known=known) for name, one in attributes.items()})


def _primitives(type_: Primitive, *, known: bool) -> st.SearchStrategy[Value]:
    match type_:
        case Primitive.STRING:
            return text
        case Primitive.BOOL:
            return st.booleans()
        case Primitive.NUMBER:
            return st.one_of(numbers, infinities)
        case Primitive.DYNAMIC:
            return dynamics(known=known)


@st.composite
def dynamics(draw: st.DrawFn, *, known: bool) -> Value:
    """A value of the dynamic type, with the type that it has."""
    type_ = draw(actual_types)
    return Dynamic(type_, draw(values_of(type_, known=known)))


@st.composite
def typed_values(draw: st.DrawFn, *, known: bool = False) -> tuple[Type, Value]:
    """A type, and a value of it."""
    type_ = draw(types)
    return type_, draw(values_of(type_, known=known))


unknowns = st.sampled_from((UNKNOWN, NOT_NULL))
