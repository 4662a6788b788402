"""Schemas: attributes, nested to any depth, and what they imply for a plan (computed, write-only, requires replace)."""

from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from typing import TypeAlias, assert_never

import msgspec

from setpoint.terraform.cty.types import CtyType, ListType, MapType, ObjectType, SetType
from setpoint.terraform.cty.values import UNKNOWN, AttributePath, AttributeValues, CtyValue, same_value


class Presence(Enum):
    """Who sets the value of an attribute."""

    REQUIRED = "the author"
    OPTIONAL = "the author, or unset"
    COMPUTED = "the provider"
    OPTIONAL_COMPUTED = "the author, or else the provider"

    @property
    def is_computed(self) -> bool:
        """Whether the provider sets the value where the author sets none."""
        return self in (Presence.COMPUTED, Presence.OPTIONAL_COMPUTED)

    @property
    def is_optional(self) -> bool:
        """Whether the author may set the value, and need not."""
        return self in (Presence.OPTIONAL, Presence.OPTIONAL_COMPUTED)


class NestingMode(IntEnum):
    """The collection in which a nested attribute holds its objects; numbers of the protocol."""

    SINGLE = 1
    LIST = 2
    SET = 3
    MAP = 4


class NestedAttributes(msgspec.Struct, frozen=True):
    """Objects with attributes of their own."""

    attributes: Mapping[str, "Attribute"]
    nesting: NestingMode = NestingMode.SINGLE


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute of a configuration, or one that the provider computes."""

    type: CtyType | NestedAttributes
    presence: Presence
    # In Markdown.
    description: str = ""
    deprecated: bool = False
    # Redacted in plans.
    sensitive: bool = False
    # Sent with the configuration, and never stored.
    write_only: bool = False
    # A change requires the object to be replaced.
    requires_replace: bool = False
    # Computed once: an update keeps the value of the state.
    use_state_for_unknown: bool = False


class TerraformSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a provider, resource or data source."""

    attributes: Mapping[str, Attribute]
    # Incremented when a stored state has to be upgraded before it is read.
    version: int = 0
    description: str = ""
    deprecated: bool = False


def schema_type(schema: TerraformSchema) -> ObjectType:
    """The cty type of the values that a schema describes."""
    return _attributes_type(schema.attributes)


def attribute_type(attribute: Attribute) -> CtyType:
    """The cty type of the values of an attribute, nested or not."""
    if not isinstance(attribute.type, NestedAttributes):
        return attribute.type
    inner = _attributes_type(attribute.type.attributes)
    match attribute.type.nesting:
        case NestingMode.SINGLE:
            return inner
        case NestingMode.LIST:
            return ListType(inner)
        case NestingMode.SET:
            return SetType(inner)
        case NestingMode.MAP:
            return MapType(inner)
        case _:
            assert_never(attribute.type.nesting)


def _attributes_type(attributes: Mapping[str, Attribute]) -> ObjectType:
    return ObjectType({name: attribute_type(one) for name, one in attributes.items()})


_Attributes: TypeAlias = Mapping[str, Attribute]


def mark_computed_unknown(
    schema: TerraformSchema, config: AttributeValues, prior: AttributeValues | None, proposed: AttributeValues
) -> AttributeValues:
    """The proposed state, with unknown values for computed attributes that may change.

    An update without any difference leaves the proposed state as it is.
    """
    proposed = without_write_only(schema, proposed)
    if prior is not None and same_value(prior, proposed, schema_type(schema)):
        return proposed
    return _mark(schema.attributes, config, proposed, is_new=prior is None)


def _mark(
    attributes: _Attributes, config: AttributeValues, proposed: AttributeValues, *, is_new: bool
) -> AttributeValues:
    return {
        name: _mark_attribute(one, config.get(name), proposed.get(name), is_new=is_new)
        for name, one in attributes.items()
    }


def _mark_attribute(attribute: Attribute, config: CtyValue, proposed: CtyValue, *, is_new: bool) -> CtyValue:
    if config is None and attribute.presence.is_computed:
        return UNKNOWN if is_new or proposed is None or not attribute.use_state_for_unknown else proposed
    return (
        _mark_nested(attribute.type, config, proposed, is_new=is_new)
        if isinstance(attribute.type, NestedAttributes)
        else proposed
    )


def _mark_nested(nested: NestedAttributes, config: CtyValue, proposed: CtyValue, *, is_new: bool) -> CtyValue:
    def part(config_part: CtyValue, one: CtyValue) -> CtyValue:
        if not isinstance(one, Mapping):
            return one
        return _mark(nested.attributes, config_part if isinstance(config_part, Mapping) else {}, one, is_new=is_new)

    match proposed:
        case Mapping() if nested.nesting is NestingMode.SINGLE:
            return part(config, proposed)
        case Mapping():
            configs = config if isinstance(config, Mapping) else {}
            return {key: part(configs.get(key), one) for key, one in proposed.items()}
        case tuple() if (
            nested.nesting is NestingMode.LIST and isinstance(config, tuple) and len(config) == len(proposed)
        ):
            return tuple(part(config_part, one) for config_part, one in zip(config, proposed, strict=True))
        case tuple():
            # The elements of a set cannot be paired with those of the configuration: null attributes are computed ones.
            return tuple(part(one, one) for one in proposed)
        case _:
            return proposed


def without_write_only(schema: TerraformSchema, values: AttributeValues) -> AttributeValues:
    """`values` with null for write-only attributes, which are never stored."""
    return _strip_write_only(schema.attributes, values)


def _strip_write_only(attributes: _Attributes, values: AttributeValues) -> AttributeValues:
    return {
        name: None if name in attributes and attributes[name].write_only else _strip_nested(attributes.get(name), one)
        for name, one in values.items()
    }


def _strip_nested(attribute: Attribute | None, value: CtyValue) -> CtyValue:
    if attribute is None or not isinstance(attribute.type, NestedAttributes):
        return value
    inner = attribute.type.attributes
    match value:
        case Mapping() if attribute.type.nesting is NestingMode.SINGLE:
            return _strip_write_only(inner, value)
        case Mapping():
            return {
                key: _strip_write_only(inner, one) if isinstance(one, Mapping) else one for key, one in value.items()
            }
        case tuple():
            return tuple(_strip_write_only(inner, one) if isinstance(one, Mapping) else one for one in value)
        case _:
            return value


def write_only_paths(schema: TerraformSchema, config: AttributeValues) -> tuple[AttributePath, ...]:
    """The top-level attributes of a configuration that are, or contain, write-only values."""
    stored = without_write_only(schema, config)
    return tuple(
        (name,)
        for name, one in schema.attributes.items()
        if not same_value(config.get(name), stored.get(name), attribute_type(one))
    )


def paths_requiring_replace(
    schema: TerraformSchema, prior: AttributeValues, planned: AttributeValues
) -> tuple[AttributePath, ...]:
    """The attributes that differ and whose change requires the object to be replaced."""
    return tuple(_requiring_replace(schema.attributes, prior, planned, ()))


def _requiring_replace(
    attributes: _Attributes, prior: AttributeValues, planned: AttributeValues, path: AttributePath
) -> Iterator[AttributePath]:
    for name, attribute in attributes.items():
        before, after = prior.get(name), planned.get(name)
        if same_value(before, after, attribute_type(attribute)):
            continue
        if attribute.requires_replace:
            yield (*path, name)
        elif isinstance(attribute.type, NestedAttributes):
            for step, one, other in _pairs(before, after, attribute.type.nesting):
                yield from _requiring_replace(attribute.type.attributes, one, other, (*path, name, *step))


def _pairs(
    before: CtyValue, after: CtyValue, nesting: NestingMode
) -> Iterator[tuple[AttributePath, AttributeValues, AttributeValues]]:
    for step, one, other in _parts(before, after, nesting):
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield step, one, other


def _parts(
    before: CtyValue, after: CtyValue, nesting: NestingMode
) -> Iterator[tuple[AttributePath, CtyValue, CtyValue]]:
    # The elements of a set have no key by which they could be paired.
    match before, after:
        case (Mapping(), Mapping()) if nesting is NestingMode.MAP:
            for key in sorted(before.keys() & after.keys()):
                yield (key,), before[key], after[key]
        case (tuple(), tuple()) if nesting is NestingMode.LIST:
            for index, (one, other) in enumerate(zip(before, after, strict=False)):
                yield (index,), one, other
        case _ if nesting is NestingMode.SINGLE:
            yield (), before, after
        case _:
            pass
