"""Protobuf message classes of plugin protocol 6 and of go-plugin's own services, built from a table.

One line for each message: its name, then its fields as `name:type=number`. `*` marks a repeated field, `{}` a map with
string keys. Enumerations are integers. Only messages that are received or sent here are listed: unknown fields are
skipped, and an RPC that is not listed is answered with UNIMPLEMENTED.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PROVIDER_SERVICE: Final = "tfplugin6.Provider"

PROVIDER_MESSAGES: Final = """
DynamicValue msgpack:bytes=1 json:bytes=2
Diagnostic severity:int32=1 summary:string=2 detail:string=3 attribute:AttributePath=4
FunctionError text:string=1 function_argument:int64=2
AttributePath steps:*AttributePath.Step=1
AttributePath.Step attribute_name:string=1 element_key_string:string=2 element_key_int:int64=3
RawState json:bytes=1 flatmap:{string}=2
ServerCapabilities plan_destroy:bool=1 get_provider_schema_optional:bool=2 move_resource_state:bool=3
ClientCapabilities deferral_allowed:bool=1 write_only_attributes_allowed:bool=2

Schema version:int64=1 block:Schema.Block=2
Schema.Block version:int64=1 attributes:*Schema.Attribute=2 description:string=4 description_kind:int32=5 \
  deprecated:bool=6
Schema.Attribute name:string=1 type:bytes=2 description:string=3 required:bool=4 optional:bool=5 computed:bool=6 \
  sensitive:bool=7 description_kind:int32=8 deprecated:bool=9 nested_type:Schema.Object=10 write_only:bool=11
Schema.Object attributes:*Schema.Attribute=1 nesting:int32=3

Function parameters:*Function.Parameter=1 variadic_parameter:Function.Parameter=2 return:Function.Return=3 \
  summary:string=4 description:string=5 description_kind:int32=6 deprecation_message:string=7
Function.Parameter name:string=1 type:bytes=2 allow_null_value:bool=3 allow_unknown_values:bool=4 \
  description:string=5 description_kind:int32=6
Function.Return type:bytes=1

GetMetadata.Request
GetMetadata.Response server_capabilities:ServerCapabilities=1 diagnostics:*Diagnostic=2 \
  data_sources:*GetMetadata.DataSource=3 resources:*GetMetadata.Resource=4 functions:*GetMetadata.Function=5 \
  ephemeral_resources:*GetMetadata.EphemeralResource=6
GetMetadata.DataSource type_name:string=1
GetMetadata.Resource type_name:string=1
GetMetadata.Function name:string=1
GetMetadata.EphemeralResource type_name:string=1

GetProviderSchema.Request
GetProviderSchema.Response provider:Schema=1 resource_schemas:{Schema}=2 data_source_schemas:{Schema}=3 \
  diagnostics:*Diagnostic=4 provider_meta:Schema=5 server_capabilities:ServerCapabilities=6 functions:{Function}=7 \
  ephemeral_resource_schemas:{Schema}=8

GetResourceIdentitySchemas.Request
GetResourceIdentitySchemas.Response diagnostics:*Diagnostic=2

ValidateProviderConfig.Request config:DynamicValue=1
ValidateProviderConfig.Response diagnostics:*Diagnostic=2

ConfigureProvider.Request terraform_version:string=1 config:DynamicValue=2 client_capabilities:ClientCapabilities=3
ConfigureProvider.Response diagnostics:*Diagnostic=1

ValidateResourceConfig.Request type_name:string=1 config:DynamicValue=2 client_capabilities:ClientCapabilities=3
ValidateResourceConfig.Response diagnostics:*Diagnostic=1

ValidateDataResourceConfig.Request type_name:string=1 config:DynamicValue=2
ValidateDataResourceConfig.Response diagnostics:*Diagnostic=1

UpgradeResourceState.Request type_name:string=1 version:int64=2 raw_state:RawState=3
UpgradeResourceState.Response upgraded_state:DynamicValue=1 diagnostics:*Diagnostic=2

ReadResource.Request type_name:string=1 current_state:DynamicValue=2 private:bytes=3 provider_meta:DynamicValue=4 \
  client_capabilities:ClientCapabilities=5
ReadResource.Response new_state:DynamicValue=1 diagnostics:*Diagnostic=2 private:bytes=3

PlanResourceChange.Request type_name:string=1 prior_state:DynamicValue=2 proposed_new_state:DynamicValue=3 \
  config:DynamicValue=4 prior_private:bytes=5 provider_meta:DynamicValue=6 client_capabilities:ClientCapabilities=7
PlanResourceChange.Response planned_state:DynamicValue=1 requires_replace:*AttributePath=2 planned_private:bytes=3 \
  diagnostics:*Diagnostic=4

ApplyResourceChange.Request type_name:string=1 prior_state:DynamicValue=2 planned_state:DynamicValue=3 \
  config:DynamicValue=4 planned_private:bytes=5 provider_meta:DynamicValue=6
ApplyResourceChange.Response new_state:DynamicValue=1 private:bytes=2 diagnostics:*Diagnostic=3

ImportResourceState.Request type_name:string=1 id:string=2 client_capabilities:ClientCapabilities=3
ImportResourceState.Imported type_name:string=1 state:DynamicValue=2 private:bytes=3
ImportResourceState.Response imported_resources:*ImportResourceState.Imported=1 diagnostics:*Diagnostic=2

MoveResourceState.Request source_provider_address:string=1 source_type_name:string=2 source_schema_version:int64=3 \
  source_state:RawState=4 target_type_name:string=5 source_private:bytes=6
MoveResourceState.Response target_state:DynamicValue=1 diagnostics:*Diagnostic=2 target_private:bytes=3

ReadDataSource.Request type_name:string=1 config:DynamicValue=2 provider_meta:DynamicValue=3 \
  client_capabilities:ClientCapabilities=4
ReadDataSource.Response state:DynamicValue=1 diagnostics:*Diagnostic=2

ValidateEphemeralResourceConfig.Request type_name:string=1 config:DynamicValue=2
ValidateEphemeralResourceConfig.Response diagnostics:*Diagnostic=1

OpenEphemeralResource.Request type_name:string=1 config:DynamicValue=2 client_capabilities:ClientCapabilities=3
OpenEphemeralResource.Response diagnostics:*Diagnostic=1 result:DynamicValue=3 private:bytes=4

RenewEphemeralResource.Request type_name:string=1 private:bytes=2
RenewEphemeralResource.Response diagnostics:*Diagnostic=1 private:bytes=3

CloseEphemeralResource.Request type_name:string=1 private:bytes=2
CloseEphemeralResource.Response diagnostics:*Diagnostic=1

GetFunctions.Request
GetFunctions.Response functions:{Function}=1 diagnostics:*Diagnostic=2

CallFunction.Request name:string=1 arguments:*DynamicValue=2
CallFunction.Response result:DynamicValue=1 error:FunctionError=2

StopProvider.Request
StopProvider.Response Error:string=1
"""

# The services of every go-plugin: controller, standard streams, broker; and gRPC's health check.
PLUGIN_MESSAGES: Final = """
Empty
StdioData channel:int32=1 data:bytes=2
ConnInfo service_id:uint32=1 network:string=2 address:string=3 knock:ConnInfo.Knock=4
ConnInfo.Knock knock:bool=1 ack:bool=2 error:string=3
HealthCheckRequest service:string=1
HealthCheckResponse status:int32=1
"""


# The fields of a message are defined by the table, so that no type checker knows them.
ProtoMessage: TypeAlias = Any
MessageClasses: TypeAlias = Mapping[str, type[ProtoMessage]]

_SCALARS: Final = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
}


@cache
def provider_messages() -> MessageClasses:
    """The message classes of protocol 6, by their name in the table."""
    return build_messages("tfplugin6", PROVIDER_MESSAGES)


@cache
def plugin_messages() -> MessageClasses:
    """The message classes of go-plugin's own services, by their name in the table."""
    return build_messages("plugin", PLUGIN_MESSAGES)


def build_messages(package: str, table: str) -> MessageClasses:
    """A message class for each line of a table, by its name there.

    The messages are proto2: a field that is set is sent, even if it holds zero. A proto3 reader decodes the same. A
    `oneof` is a group of fields of which the caller sets one.
    """
    file = FileDescriptorProto(name=f"{package}.table", package=package)
    made: dict[str, DescriptorProto] = {}
    for line in table.replace("\\\n", " ").splitlines():
        name, *fields = line.split() or [""]
        if name:
            message = _descriptor_for(name, file, made)
            for field in fields:
                _add_field(message, field, f".{package}.{name}")
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in made}


def _descriptor_for(name: str, file: FileDescriptorProto, made: dict[str, DescriptorProto]) -> DescriptorProto:
    if name not in made:
        outer, _, inner = name.rpartition(".")
        made[name] = (
            _descriptor_for(outer, file, made).nested_type.add(name=inner)
            if outer
            else file.message_type.add(name=name)
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
