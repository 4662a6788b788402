"""What a schema alone says of a plan: which values may change, and which changes take a new object."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from setpoint.terraform.attribute_path import Path
from setpoint.terraform.cty_values import UNKNOWN, Value, Values, same_value
from setpoint.terraform.schema import Attribute, Nested, Nesting, Schema, attribute_type, schema_type

_Attributes: TypeAlias = Mapping[str, Attribute]


def proposal(schema: Schema, config: Values, prior: Values | None, proposed: Values) -> Values:
    """What Terraform proposes, with Unknown for what the provider computes and may change.

    An update in which nothing differs leaves everything as it is.
    """
    proposed = stored_form(schema, proposed)
    if prior is not None and same_value(prior, proposed, schema_type(schema)):
        return proposed
    return _marked(schema.attributes, config, proposed, is_new=prior is None)


def _marked(attributes: _Attributes, config: Values, proposed: Values, *, is_new: bool) -> Values:
    return {
        name: _marked_one(one, config.get(name), proposed.get(name), is_new=is_new) for name, one in attributes.items()
    }


def _marked_one(attribute: Attribute, config: Value, proposed: Value, *, is_new: bool) -> Value:
    if config is None and attribute.presence.is_computed:
        return UNKNOWN if is_new or proposed is None or not attribute.stays else proposed
    return (
        _marked_parts(attribute.type, config, proposed, is_new=is_new)
        if isinstance(attribute.type, Nested)
        else proposed
    )


def _marked_parts(nested: Nested, config: Value, proposed: Value, *, is_new: bool) -> Value:
    def part(says: Value, one: Value) -> Value:
        if not isinstance(one, Mapping):
            return one
        return _marked(nested.attributes, says if isinstance(says, Mapping) else {}, one, is_new=is_new)

    match proposed:
        case Mapping() if nested.nesting is Nesting.SINGLE:
            return part(config, proposed)
        case Mapping():
            says = config if isinstance(config, Mapping) else {}
            return {key: part(says.get(key), one) for key, one in proposed.items()}
        case tuple() if nested.nesting is Nesting.LIST and isinstance(config, tuple) and len(config) == len(proposed):
            return tuple(part(says, one) for says, one in zip(config, proposed, strict=True))
        case tuple():
            # The parts of a set cannot be paired with those of the configuration: what they lack is computed.
            return tuple(part(one, one) for one in proposed)
        case _:
            return proposed


def stored_form(schema: Schema, values: Values) -> Values:
    """The same without what is write-only: that is never stored."""
    return _without_write_only(schema.attributes, values)


def _without_write_only(attributes: _Attributes, values: Values) -> Values:
    return {
        name: None if name in attributes and attributes[name].write_only else _inner_form(attributes.get(name), one)
        for name, one in values.items()
    }


def _inner_form(attribute: Attribute | None, value: Value) -> Value:
    if attribute is None or not isinstance(attribute.type, Nested):
        return value
    inner = attribute.type.attributes
    match value:
        case Mapping() if attribute.type.nesting is Nesting.SINGLE:
            return _without_write_only(inner, value)
        case Mapping():
            return {
                key: _without_write_only(inner, one) if isinstance(one, Mapping) else one for key, one in value.items()
            }
        case tuple():
            return tuple(_without_write_only(inner, one) if isinstance(one, Mapping) else one for one in value)
        case _:
            return value


def write_only_paths(schema: Schema, config: Values) -> tuple[Path, ...]:
    """The top-level attributes in which the author wrote something that must not be stored."""
    stored = stored_form(schema, config)
    return tuple(
        (name,)
        for name, one in schema.attributes.items()
        if not same_value(config.get(name), stored.get(name), attribute_type(one))
    )


def replacing_paths(schema: Schema, prior: Values, planned: Values) -> tuple[Path, ...]:
    """The attributes that differ and whose change takes a new object."""
    return tuple(_replacing(schema.attributes, prior, planned, ()))


def _replacing(attributes: _Attributes, prior: Values, planned: Values, path: Path) -> Iterator[Path]:
    for name, attribute in attributes.items():
        before, after = prior.get(name), planned.get(name)
        if same_value(before, after, attribute_type(attribute)):
            continue
        if attribute.replaces:
            yield (*path, name)
        elif isinstance(attribute.type, Nested):
            for step, one, other in _pairs(before, after, attribute.type.nesting):
                yield from _replacing(attribute.type.attributes, one, other, (*path, name, *step))


def _pairs(before: Value, after: Value, nesting: Nesting) -> Iterator[tuple[Path, Values, Values]]:
    for step, one, other in _parts(before, after, nesting):
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield step, one, other


def _parts(before: Value, after: Value, nesting: Nesting) -> Iterator[tuple[Path, Value, Value]]:
    # The parts of a set have no place by which they could be told apart.
    match before, after:
        case (Mapping(), Mapping()) if nesting is Nesting.MAP:
            for key in sorted(before.keys() & after.keys()):
                yield (key,), before[key], after[key]
        case (tuple(), tuple()) if nesting is Nesting.LIST:
            for index, (one, other) in enumerate(zip(before, after, strict=False)):
                yield (index,), one, other
        case _ if nesting is Nesting.SINGLE:
            yield (), before, after
        case _:
            pass
