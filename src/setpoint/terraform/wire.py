"""Message classes, made from the table of what stands on the wire."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from setpoint.terraform.wire_table import PLUGIN_MESSAGES, PROVIDER_MESSAGES

# The fields of a message are known to the table alone, and so to no type checker.
Wire: TypeAlias = Any
Messages: TypeAlias = Mapping[str, type[Wire]]

_SCALARS: Final = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
}


def provider_messages() -> Messages:
    """The messages of protocol 6, by their name in the table."""
    return messages_of("tfplugin6", PROVIDER_MESSAGES)


def plugin_messages() -> Messages:
    """The messages of what every plugin offers, by their name in the table."""
    return messages_of("plugin", PLUGIN_MESSAGES)


def messages_of(package: str, table: str) -> Messages:
    """A class for each line of a table, by its name there.

    A field that was set is sent, even if it holds zero: that is proto2. Who reads it by the rules of proto3 sees the
    same, and the fields of a `oneof` need no more than that only one of them is set.
    """
    file = FileDescriptorProto(name=f"{package}.table", package=package)
    made: dict[str, DescriptorProto] = {}
    for line in table.replace("\\\n", " ").splitlines():
        name, *fields = line.split() or [""]
        if name:
            message = _place_for(name, file, made)
            for field in fields:
                _add_field(message, field, f".{package}.{name}")
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in made}


def _place_for(name: str, file: FileDescriptorProto, made: dict[str, DescriptorProto]) -> DescriptorProto:
    if name not in made:
        outer, _, inner = name.rpartition(".")
        made[name] = (
            _place_for(outer, file, made).nested_type.add(name=inner) if outer else file.message_type.add(name=name)
        )
    return made[name]


def _add_field(message: DescriptorProto, field: str, message_name: str) -> None:
    name, _, rest = field.partition(":")
    kind, _, number = rest.partition("=")
    added = message.field.add(name=name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
    if kind.startswith("{"):
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "key:string=1", "")
        _add_field(entry, f"value:{kind.strip('{}')}=2", message_name)
        added.label, added.type_name = FieldDescriptorProto.LABEL_REPEATED, f"{message_name}.{entry.name}"
    elif kind.lstrip("*") in _SCALARS:
        added.type = _SCALARS[kind.lstrip("*")]
    else:
        added.type_name = f".{message_name.split('.')[1]}.{kind.lstrip('*')}"
    if kind.startswith("*"):
        added.label = FieldDescriptorProto.LABEL_REPEATED
    if added.type_name:
        added.type = FieldDescriptorProto.TYPE_MESSAGE
