"""A handler for each RPC of the provider service, named after the RPC."""

from setpoint.terraform.cty.codec import decode_state
from setpoint.terraform.cty.types import CtyType
from setpoint.terraform.cty.values import AttributeValues, format_path, nullify_unknown, unknown_paths
from setpoint.terraform.framework.call import InstanceState
from setpoint.terraform.framework.consistency import deviation_error, deviations
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.provider import (
    CreateRequest,
    FunctionFailed,
    ManagedResource,
    MovedState,
    PlanRequest,
    ProviderFunction,
    UpdateRequest,
)
from setpoint.terraform.framework.schema import (
    TerraformSchema,
    mark_computed_unknown,
    paths_requiring_replace,
    without_write_only,
    write_only_paths,
)
from setpoint.terraform.rpc.context import RpcContext, read_value, write_function, write_path, write_schema, write_value
from setpoint.terraform.rpc.protobuf import ProtoMessage


async def get_metadata(context: RpcContext) -> None:
    """GetMetadata: the names of all resources, data sources, functions and ephemeral resources."""
    response, provider = context.response, context.provider
    _write_capabilities(response.server_capabilities)
    for name in provider.resources:
        response.resources.add(type_name=name)
    for name in provider.data_sources:
        response.data_sources.add(type_name=name)
    for name in provider.functions:
        response.functions.add(name=name)
    for name in provider.ephemeral_resources:
        response.ephemeral_resources.add(type_name=name)


async def get_provider_schema(context: RpcContext) -> None:
    """GetProviderSchema: the schemas of the provider and of everything it has, and its functions."""
    response, provider = context.response, context.provider
    _write_capabilities(response.server_capabilities)
    write_schema(response.provider, provider.schema)
    for name, resource in provider.resources.items():
        write_schema(response.resource_schemas[name], resource.schema)
    for name, source in provider.data_sources.items():
        write_schema(response.data_source_schemas[name], source.schema)
    for name, ephemeral in provider.ephemeral_resources.items():
        write_schema(response.ephemeral_resource_schemas[name], ephemeral.schema)
    await get_functions(context)


def _write_capabilities(message: ProtoMessage) -> None:
    # Deletions are planned here as well; and the schema is the same in every process, so Terraform may cache it.
    message.plan_destroy = message.get_provider_schema_optional = message.move_resource_state = True


async def get_functions(context: RpcContext) -> None:
    """GetFunctions."""
    for name, function in context.provider.functions.items():
        write_function(context.response.functions[name], function)


async def get_resource_identity_schemas(context: RpcContext) -> None:
    """GetResourceIdentitySchemas: there are none."""


async def validate_provider_config(context: RpcContext) -> None:
    """ValidateProviderConfig."""
    context.use_schema(context.provider.schema)
    await context.provider.validate(context.attributes("config"), context.call)


async def configure_provider(context: RpcContext) -> None:
    """ConfigureProvider."""
    context.use_schema(context.provider.schema)
    await context.provider.configure(context.attributes("config"), context.call)


async def validate_data_resource_config(context: RpcContext) -> None:
    """ValidateDataResourceConfig."""
    source = context.find(context.provider.data_sources)
    await source.validate(context.attributes("config"), context.call)


async def read_data_source(context: RpcContext) -> None:
    """ReadDataSource."""
    source = context.find(context.provider.data_sources)
    context.respond("state", await source.read(context.attributes("config"), context.call))


async def call_function(context: RpcContext) -> None:
    """CallFunction."""
    name = context.request.name
    if name not in context.provider.functions:
        raise FunctionFailed(f"This provider has no function {name}.")
    function = context.provider.functions[name]
    given = context.request.arguments
    arguments = [read_value(one, _parameter_type(function, position)) for position, one in enumerate(given)]
    result = await function.call(arguments, context.call)
    write_value(context.response.result, result, function.returns)


def _parameter_type(function: ProviderFunction, position: int) -> CtyType:
    if position < len(function.parameters):
        return function.parameters[position].type
    if function.variadic is None:
        raise FunctionFailed("There are more arguments than parameters.", position)
    return function.variadic.type


async def validate_resource_config(context: RpcContext) -> None:
    """ValidateResourceConfig."""
    resource, config = context.find(context.provider.resources), context.attributes("config")
    if not context.request.client_capabilities.write_only_attributes_allowed:
        _reject_write_only(resource.schema, config)
    await resource.validate(config, context.call)


def _reject_write_only(schema: TerraformSchema, config: AttributeValues) -> None:
    # A client that does not support write-only attributes would store their values.
    paths = write_only_paths(schema, config)
    if paths:
        detail = "They take Terraform 1.11 or newer. An older one would not keep the value out of its state."
        raise DiagnosticsError(*(error("Write-only attributes are not supported here", detail, path) for path in paths))


async def upgrade_resource_state(context: RpcContext) -> None:
    """UpgradeResourceState: a state of the current version is returned unchanged."""
    resource = context.find(context.provider.resources)
    raw, version = context.request.raw_state.json, context.request.version
    if version == resource.schema.version:
        context.response.upgraded_state.json = raw
        return
    context.respond("upgraded_state", await resource.upgrade(decode_state(raw), version, context.call))


async def read_resource(context: RpcContext) -> None:
    """ReadResource: null when the object does not exist any more."""
    resource = context.find(context.provider.resources)
    stored = InstanceState(context.attributes("current_state"), context.request.private)
    found = await resource.read(stored, context.call)
    if found is None:
        context.respond("new_state", None)
        return
    _reject_unknown(found.state)
    context.respond("new_state", without_write_only(resource.schema, found.state))
    context.response.private = found.private


async def plan_resource_change(context: RpcContext) -> None:
    """PlanResourceChange: plans a create, an update or a delete."""
    resource, request = context.find(context.provider.resources), context.request
    prior, proposed = context.attributes_or_null("prior_state"), context.attributes_or_null("proposed_new_state")
    if proposed is None:
        context.respond("planned_state", None)
        stored = InstanceState(prior or {}, request.prior_private)
        context.response.planned_private = await resource.plan_deletion(stored, context.call)
        return
    config = context.attributes("config")
    proposed = mark_computed_unknown(resource.schema, config, prior, proposed)
    planned = await resource.plan(PlanRequest(config, prior, proposed, request.prior_private), context.call)
    state = without_write_only(resource.schema, planned.state)
    context.respond("planned_state", state)
    context.response.planned_private = planned.private
    if prior is not None:
        for path in dict.fromkeys((*paths_requiring_replace(resource.schema, prior, state), *planned.requires_replace)):
            write_path(context.response.requires_replace.add(), path, context.type)


async def apply_resource_change(context: RpcContext) -> None:
    """ApplyResourceChange: when it fails, the response holds the state of what exists by then."""
    # The response of a failure before the first change: the prior state.
    context.response.new_state.CopyFrom(context.request.prior_state)
    context.response.private = context.request.planned_private
    resource = context.find(context.provider.resources)
    prior, planned = context.attributes_or_null("prior_state"), context.attributes_or_null("planned_state")

    def save(stored: InstanceState | None) -> None:
        state = None if stored is None else nullify_unknown(without_write_only(resource.schema, stored.state))
        context.respond("new_state", state)
        context.response.private = b"" if stored is None else stored.private

    context.call.on_partial_state(save)
    stored = await _apply_change(context, resource, prior, planned)
    save(stored)
    if stored is not None:
        _reject_unknown(stored.state)
        if paths := list(deviations(planned, without_write_only(resource.schema, stored.state), context.type)):
            raise DiagnosticsError(deviation_error(paths))


async def _apply_change(
    context: RpcContext, resource: ManagedResource, prior: AttributeValues | None, planned: AttributeValues | None
) -> InstanceState | None:
    private, call = context.request.planned_private, context.call
    if planned is None:
        await resource.delete(InstanceState(prior or {}, private), call)
        return None
    config = context.attributes("config")
    if prior is None:
        return await resource.create(CreateRequest(config, planned, private), call)
    return await resource.update(UpdateRequest(config, prior, planned, private), call)


def _reject_unknown(state: AttributeValues) -> None:
    # Terraform rejects unknown values as well, but its message does not name the attributes.
    unknown = [format_path(path) for path in unknown_paths(state)]
    if unknown:
        raise DiagnosticsError(
            error("The provider left values unknown", f"By now these should be known: {', '.join(unknown)}.")
        )


async def import_resource_state(context: RpcContext) -> None:
    """ImportResourceState."""
    resource = context.find(context.provider.resources)
    found = await resource.import_state(context.request.id, context.call)
    added = context.response.imported_resources.add(type_name=context.request.type_name, private=found.private)
    write_value(added.state, without_write_only(resource.schema, found.state), context.type)


async def move_resource_state(context: RpcContext) -> None:
    """MoveResourceState: the state of a resource of another type, of this provider or another one."""
    request = context.request
    resource = context.find(context.provider.resources, request.target_type_name)
    source = MovedState(
        request.source_provider_address,
        request.source_type_name,
        request.source_schema_version,
        decode_state(request.source_state.json),
    )
    moved = await resource.move_state(source, context.call)
    context.respond("target_state", without_write_only(resource.schema, moved.state))
    context.response.target_private = moved.private


async def validate_ephemeral_resource_config(context: RpcContext) -> None:
    """ValidateEphemeralResourceConfig."""
    resource = context.find(context.provider.ephemeral_resources)
    await resource.validate(context.attributes("config"), context.call)


async def open_ephemeral_resource(context: RpcContext) -> None:
    """OpenEphemeralResource: its values, which are never stored and need neither renewal nor closing."""
    resource = context.find(context.provider.ephemeral_resources)
    context.respond("result", await resource.open(context.attributes("config"), context.call))


async def renew_ephemeral_resource(context: RpcContext) -> None:
    """RenewEphemeralResource: no value expires."""


async def close_ephemeral_resource(context: RpcContext) -> None:
    """CloseEphemeralResource: nothing was opened that has to be closed."""
