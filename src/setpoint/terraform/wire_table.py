"""What stands on the wire between Terraform and a provider: protocol 6, and the services of every plugin.

One line for each message: its name, then its fields as `name:type=number`. `*` means any number of them, `{}` a map
from text. Enumerations are whole numbers on the wire, and here. Only what is asked or answered here is listed: more in
a message is skipped, and a method that is not listed is answered with UNIMPLEMENTED.
"""

from typing import Final

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
  data_sources:*GetMetadata.DataSource=3 resources:*GetMetadata.Resource=4 functions:*GetMetadata.Function=5
GetMetadata.DataSource type_name:string=1
GetMetadata.Resource type_name:string=1
GetMetadata.Function name:string=1

GetProviderSchema.Request
GetProviderSchema.Response provider:Schema=1 resource_schemas:{Schema}=2 data_source_schemas:{Schema}=3 \
  diagnostics:*Diagnostic=4 provider_meta:Schema=5 server_capabilities:ServerCapabilities=6 functions:{Function}=7

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

GetFunctions.Request
GetFunctions.Response functions:{Function}=1 diagnostics:*Diagnostic=2

CallFunction.Request name:string=1 arguments:*DynamicValue=2
CallFunction.Response result:DynamicValue=1 error:FunctionError=2

StopProvider.Request
StopProvider.Response Error:string=1
"""

# What every go-plugin offers besides: controller, standard streams, broker; and gRPC's health.
PLUGIN_MESSAGES: Final = """
Empty
StdioData channel:int32=1 data:bytes=2
ConnInfo service_id:uint32=1 network:string=2 address:string=3 knock:ConnInfo.Knock=4
ConnInfo.Knock knock:bool=1 ack:bool=2 error:string=3
HealthCheckRequest service:string=1
HealthCheckResponse status:int32=1
"""
