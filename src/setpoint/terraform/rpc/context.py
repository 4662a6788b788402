"""The context of one RPC: decodes values of the request; encodes values, schemas and diagnostics of the response."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from setpoint.core.values.messages import printable
from setpoint.terraform.cty.codec import decode_json, decode_msgpack, encode_msgpack
from setpoint.terraform.cty.types import DYNAMIC, CtyType, MapType, ObjectType, encode_type
from setpoint.terraform.cty.values import AttributePath, AttributeValues, CtyValue, UnknownValue, type_at
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import NO_TEXTS, HiddenTexts
from setpoint.terraform.framework.provider import FunctionParameter, Provider, ProviderFunction, Registration, SchemaT
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, TerraformSchema, schema_type
from setpoint.terraform.rpc.protobuf import ProtoMessage

_MARKDOWN: Final = 1


class RpcContext:
    """A request, its response, and the cty type of the values in both."""

    def __init__(self, provider: Provider, request: ProtoMessage, response: ProtoMessage, call: CallContext) -> None:
        self.provider: Final = provider
        self.request: Final = request
        self.response: Final = response
        self.call: Final = call
        self.type: CtyType = DYNAMIC
        # The attributes that were read, and what says which of their values may be secret.
        self._read: list[AttributeValues] = []
        self._hidden_texts: Callable[[AttributeValues], HiddenTexts] = _no_texts

    def find(self, registrations: Mapping[str, Registration[SchemaT]], name: str = "") -> SchemaT:
        """What is registered under `name`, or under the type name in the request; its schema types values from here."""
        name = name or self.request.type_name
        if name not in registrations:
            raise DiagnosticsError(error(f"This provider has no {name}"))
        self.use_schema(registrations[name].schema)
        found = registrations[name].loaded
        self._hidden_texts = found.hidden_texts
        return found

    def use_schema(self, schema: TerraformSchema) -> None:
        """From here on `schema` is the type of values."""
        self.type = schema_type(schema)

    def attributes(self, field: str) -> AttributeValues:
        """The attributes in a field of the request; all of them null when the field is null."""
        return self.attributes_or_null(field) or self._each(None)

    def attributes_or_null(self, field: str) -> AttributeValues | None:
        """The attributes in a field of the request; None when the field is null."""
        value = read_value(getattr(self.request, field), self.type)
        if isinstance(value, UnknownValue):
            return self._each(value)
        if not isinstance(value, Mapping):
            return None
        self._read.append(value)
        return value

    def redacted(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The diagnostics without values of the request that may be secret."""
        try:
            hidden = NO_TEXTS
            for values in self._read:
                hidden |= self._hidden_texts(values)
            return [
                Diagnostic(one.severity, hidden.redacted(one.summary), hidden.redacted(one.detail), one.path)
                for one in diagnostics
            ]
        except Exception:  # noqa: BLE001 - values that cannot be searched: rather no detail than a secret
            return [Diagnostic(one.severity, one.summary, path=one.path) for one in diagnostics]

    def _each(self, value: CtyValue) -> AttributeValues:
        return dict.fromkeys(self.type.attributes, value) if isinstance(self.type, ObjectType) else {}

    def respond(self, field: str, value: CtyValue) -> None:
        """Writes attributes, or null, to a field of the response."""
        write_value(getattr(self.response, field), value, self.type)


def _no_texts(_values: AttributeValues) -> HiddenTexts:
    return NO_TEXTS


def read_value(message: ProtoMessage, type_: CtyType) -> CtyValue:
    """The value in a DynamicValue; null when it is empty."""
    if message.msgpack:
        return decode_msgpack(message.msgpack, type_)
    return decode_json(message.json, type_) if message.json else None


def write_value(message: ProtoMessage, value: CtyValue, type_: CtyType) -> None:
    """Writes a value to a DynamicValue."""
    message.msgpack = encode_msgpack(value, type_)


def write_path(message: ProtoMessage, path: AttributePath, type_: CtyType) -> None:
    """Writes the path of a part of a value of `type_` to an AttributePath."""
    for step in path:
        added = message.steps.add()
        if isinstance(step, int):
            added.element_key_int = step
        elif isinstance(type_, MapType):
            added.element_key_string = step
        else:
            added.attribute_name = step
        type_ = type_at(type_, step)


def write_diagnostics(messages: ProtoMessage, diagnostics: Iterable[Diagnostic], type_: CtyType = DYNAMIC) -> None:
    """Adds diagnostics, whose paths are in values of `type_`."""
    for one in diagnostics:
        # Terraform prints them as they are.
        added = messages.add(severity=one.severity, summary=printable(one.summary), detail=printable(one.detail))
        if one.path:
            write_path(added.attribute, one.path, type_)


def write_schema(message: ProtoMessage, schema: TerraformSchema) -> None:
    """Writes a schema to a Schema."""
    message.version = schema.version
    block = message.block
    block.version = schema.version
    block.description, block.description_kind, block.deprecated = schema.description, _MARKDOWN, schema.deprecated
    _write_attributes(block.attributes, schema.attributes)


def _write_attributes(messages: ProtoMessage, attributes: Mapping[str, Attribute]) -> None:
    for name, one in sorted(attributes.items()):
        added = messages.add(
            name=name,
            description=one.description,
            description_kind=_MARKDOWN,
            required=not (one.presence.is_optional or one.presence.is_computed),
            optional=one.presence.is_optional,
            computed=one.presence.is_computed,
            sensitive=one.sensitive,
            deprecated=one.deprecated,
            write_only=one.write_only,
        )
        if isinstance(one.type, NestedAttributes):
            added.nested_type.nesting = one.type.nesting
            _write_attributes(added.nested_type.attributes, one.type.attributes)
        else:
            added.type = encode_type(one.type)


def write_function(message: ProtoMessage, function: ProviderFunction) -> None:
    """Writes the signature of a function to a Function."""
    for one in function.parameters:
        _write_parameter(message.parameters.add(), one)
    if function.variadic is not None:
        _write_parameter(message.variadic_parameter, function.variadic)
    getattr(message, "return").type = encode_type(function.returns)
    message.summary = message.description = function.summary
    message.description_kind = _MARKDOWN


def _write_parameter(message: ProtoMessage, parameter: FunctionParameter) -> None:
    message.name, message.type = parameter.name, encode_type(parameter.type)
    message.allow_null_value, message.allow_unknown_values = parameter.allow_null, parameter.allow_unknown
    message.description, message.description_kind = parameter.description, _MARKDOWN
