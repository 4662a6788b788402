"""Laws of plans: what Terraform checks of every plan holds for every schema."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.terraform.cty.types import DYNAMIC, NUMBER, STRING, ListType, MapType
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, UnknownValue, is_known, same_value
from setpoint.terraform.framework.schema import (
    Attribute,
    NestedAttributes,
    NestingMode,
    Presence,
    TerraformSchema,
    attribute_type,
    mark_computed_unknown,
    paths_requiring_replace,
    schema_type,
    without_write_only,
)
from tests.laws.terraform_values import conforms, values_of

pytestmark = pytest.mark.laws

_PLAIN = st.sampled_from((STRING, NUMBER, DYNAMIC, ListType(STRING), MapType(NUMBER)))
_FLAT = st.builds(
    Attribute,
    type=_PLAIN,
    presence=st.sampled_from(Presence),
    use_state_for_unknown=st.booleans(),
    requires_replace=st.booleans(),
)
_WRITE_ONLY = st.builds(Attribute, type=_PLAIN, presence=st.just(Presence.OPTIONAL), write_only=st.just(True))
_NAMES = st.sampled_from("abcd")


def _nested(inner: st.SearchStrategy[Attribute]) -> st.SearchStrategy[Attribute]:
    types = st.builds(NestedAttributes, st.dictionaries(_NAMES, inner, max_size=3), st.sampled_from(NestingMode))
    return st.builds(Attribute, type=types, presence=st.sampled_from((Presence.REQUIRED, Presence.OPTIONAL)))


_ATTRIBUTES = st.recursive(_FLAT | _WRITE_ONLY, _nested, max_leaves=5)
schemas = st.dictionaries(_NAMES, _ATTRIBUTES, max_size=4).map(lambda those: TerraformSchema(attributes=those))


@st.composite
def configured(draw: st.DrawFn) -> tuple[TerraformSchema, AttributeValues]:
    """A schema, and what an author may write under it: nothing where only the provider writes."""
    schema = draw(schemas)
    return schema, _authored(schema.attributes, draw(_objects(schema)))


def _objects(schema: TerraformSchema) -> st.SearchStrategy[AttributeValues]:
    return st.fixed_dictionaries({name: values_of(one) for name, one in schema_type(schema).attributes.items()})


def _authored(attributes: Mapping[str, Attribute], values: AttributeValues) -> AttributeValues:
    return {name: _authored_one(one, values[name]) for name, one in attributes.items()}


def _authored_one(attribute: Attribute, value: CtyValue) -> CtyValue:
    if attribute.presence is Presence.COMPUTED:
        return None
    if not isinstance(attribute.type, NestedAttributes):
        return value
    inner = attribute.type.attributes
    if isinstance(value, tuple):
        return tuple(_authored(inner, one) if isinstance(one, Mapping) else one for one in value)
    if isinstance(value, Mapping) and attribute.type.nesting is NestingMode.MAP:
        return {key: _authored(inner, one) if isinstance(one, Mapping) else one for key, one in value.items()}
    return _authored(inner, value) if isinstance(value, Mapping) else value


@given(configured())
def test_a_create_plan_has_the_configured_values_and_unknown_computed_ones(
    case: tuple[TerraformSchema, AttributeValues],
) -> None:
    schema, config = case
    planned = mark_computed_unknown(schema, config, None, config)

    assert conforms(planned, schema_type(schema))
    assert _keeps_to(schema.attributes, config, planned)


@given(configured())
def test_a_plan_without_a_difference_is_the_prior_state(case: tuple[TerraformSchema, AttributeValues]) -> None:
    schema, config = case
    prior = without_write_only(schema, config)

    assert same_value(mark_computed_unknown(schema, config, prior, config), prior, schema_type(schema))
    assert paths_requiring_replace(schema, prior, prior) == ()


@given(configured(), st.data())
def test_an_update_plan_keeps_configured_values_and_stable_computed_ones(
    case: tuple[TerraformSchema, AttributeValues], data: st.DataObject
) -> None:
    schema, config = case
    prior = without_write_only(schema, data.draw(_objects(schema)))
    # As Terraform proposes: the configuration, and prior computed values where it has none.
    proposed = {
        name: prior[name] if config[name] is None and one.presence.is_computed else config[name]
        for name, one in schema.attributes.items()
    }
    planned = mark_computed_unknown(schema, config, prior, proposed)

    assert conforms(planned, schema_type(schema))
    for name, one in schema.attributes.items():
        if config[name] is None and one.presence.is_computed:
            assert planned[name] == UNKNOWN or same_value(planned[name], prior[name], attribute_type(one))
        if config[name] is None and one.use_state_for_unknown and one.presence.is_computed and prior[name] is not None:
            assert same_value(planned[name], prior[name], attribute_type(one))


@given(configured())
def test_removing_write_only_values_is_idempotent(case: tuple[TerraformSchema, AttributeValues]) -> None:
    schema, config = case
    once = without_write_only(schema, config)

    assert same_value(without_write_only(schema, once), once, schema_type(schema))
    assert conforms(once, schema_type(schema))


def _keeps_to(attributes: Mapping[str, Attribute], config: AttributeValues, planned: AttributeValues) -> bool:
    """What Terraform requires of a plan: configured values stay, and only computed ones are added."""
    return all(_one_keeps_to(one, config[name], planned[name]) for name, one in attributes.items())


def _one_keeps_to(attribute: Attribute, config: CtyValue, planned: CtyValue) -> bool:
    if attribute.write_only:
        return planned is None
    if config is None:
        return isinstance(planned, UnknownValue) if attribute.presence.is_computed else planned is None
    if not isinstance(attribute.type, NestedAttributes) or isinstance(config, UnknownValue):
        return same_value(config, planned, attribute_type(attribute))
    inner = attribute.type.attributes
    pairs: list[tuple[CtyValue, CtyValue]] = []
    match config, planned:
        case (Mapping(), Mapping()) if attribute.type.nesting is NestingMode.SINGLE:
            pairs = [(config, planned)]
        case (Mapping(), Mapping()):
            pairs = [(one, planned[key]) for key, one in config.items()]
        case (tuple(), tuple()):
            pairs = list(zip(config, planned, strict=True))
        case _:
            return False
    return all(
        _keeps_to(inner, one, other)
        if isinstance(one, Mapping) and isinstance(other, Mapping)
        else is_known(one) == is_known(other)
        for one, other in pairs
    )
