"""Between the messages on the wire and what they mean."""

from collections.abc import Iterable, Mapping

from setpoint.terraform.attribute_path import Path
from setpoint.terraform.cty_types import DYNAMIC, MapOf, Type, type_json
from setpoint.terraform.cty_values import Value, part_type
from setpoint.terraform.diagnostics import Diagnostic
from setpoint.terraform.provider import Function, Parameter
from setpoint.terraform.schema import Attribute, Nested, Schema
from setpoint.terraform.value_reading import from_json, from_msgpack
from setpoint.terraform.value_writing import to_msgpack
from setpoint.terraform.wire import Wire

MARKDOWN = 1


def read_value(message: Wire, type_: Type) -> Value:
    """The value that a DynamicValue holds; nothing in it is null."""
    if message.msgpack:
        return from_msgpack(message.msgpack, type_)
    return from_json(message.json, type_) if message.json else None


def write_value(message: Wire, value: Value, type_: Type) -> None:
    """Puts a value into a DynamicValue."""
    message.msgpack = to_msgpack(value, type_)


def write_path(message: Wire, path: Path, type_: Type) -> None:
    """Puts the place of a part of a value of `type_` into an AttributePath."""
    for step in path:
        added = message.steps.add()
        if isinstance(step, int):
            added.element_key_int = step
        elif isinstance(type_, MapOf):
            added.element_key_string = step
        else:
            added.attribute_name = step
        type_ = part_type(type_, step)


def write_diagnostics(messages: Wire, diagnostics: Iterable[Diagnostic], type_: Type = DYNAMIC) -> None:
    """Adds diagnostics, whose paths are in values of `type_`."""
    for one in diagnostics:
        added = messages.add(severity=one.severity, summary=one.summary, detail=one.detail)
        if one.path:
            write_path(added.attribute, one.path, type_)


def write_schema(message: Wire, schema: Schema) -> None:
    """Puts a schema into a Schema."""
    message.version = schema.version
    block = message.block
    block.version = schema.version
    block.description, block.description_kind, block.deprecated = schema.description, MARKDOWN, schema.deprecated
    _write_attributes(block.attributes, schema.attributes)


def _write_attributes(messages: Wire, attributes: Mapping[str, Attribute]) -> None:
    for name, one in sorted(attributes.items()):
        added = messages.add(
            name=name,
            description=one.description,
            description_kind=MARKDOWN,
            required=not (one.presence.is_optional or one.presence.is_computed),
            optional=one.presence.is_optional,
            computed=one.presence.is_computed,
            sensitive=one.sensitive,
            deprecated=one.deprecated,
            write_only=one.write_only,
        )
        if isinstance(one.type, Nested):
            added.nested_type.nesting = one.type.nesting
            _write_attributes(added.nested_type.attributes, one.type.attributes)
        else:
            added.type = type_json(one.type)


def write_function(message: Wire, function: Function) -> None:
    """Puts what a function takes and gives into a Function."""
    for one in function.parameters:
        _write_parameter(message.parameters.add(), one)
    if function.variadic is not None:
        _write_parameter(message.variadic_parameter, function.variadic)
    getattr(message, "return").type = type_json(function.returns)
    message.summary = message.description = function.summary
    message.description_kind = MARKDOWN


def _write_parameter(message: Wire, parameter: Parameter) -> None:
    message.name, message.type = parameter.name, type_json(parameter.type)
    message.allow_null_value, message.allow_unknown_values = parameter.takes_null, parameter.takes_unknown
    message.description, message.description_kind = parameter.description, MARKDOWN
