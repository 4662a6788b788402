"""A handler for each RPC of the provider service, named after the RPC."""

from setpoint.terraform.cty.codec import decode_state
from setpoint.terraform.cty.types import CtyType
from setpoint.terraform.cty.values import AttributeValues, format_path, nullify_unknown, unknown_paths
from setpoint.terraform.framework.call import InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.provider import (
    CreateRequest,
    FunctionFailed,
    ManagedResource,
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


async def get_metadata(exchange: RpcContext) -> None:
    """GetMetadata: the names of everything."""
    answer, provider = exchange.answer, exchange.provider
    _write_capabilities(answer.server_capabilities)
    for name in provider.resources:
        answer.resources.add(type_name=name)
    for name in provider.data_sources:
        answer.data_sources.add(type_name=name)
    for name in provider.functions:
        answer.functions.add(name=name)


async def get_provider_schema(exchange: RpcContext) -> None:
    """GetProviderSchema: everything that a configuration may say."""
    answer, provider = exchange.answer, exchange.provider
    _write_capabilities(answer.server_capabilities)
    write_schema(answer.provider, provider.schema)
    for name, resource in provider.resources.items():
        write_schema(answer.resource_schemas[name], resource.schema)
    for name, source in provider.data_sources.items():
        write_schema(answer.data_source_schemas[name], source.schema)
    await get_functions(exchange)


def _write_capabilities(message: ProtoMessage) -> None:
    # Deletions are planned here, too; and a schema that another process was told is as good.
    message.plan_destroy = message.get_provider_schema_optional = True


async def get_functions(exchange: RpcContext) -> None:
    """GetFunctions."""
    for name, function in exchange.provider.functions.items():
        write_function(exchange.answer.functions[name], function)


async def get_resource_identity_schemas(exchange: RpcContext) -> None:
    """GetResourceIdentitySchemas: there are none."""


async def validate_provider_config(exchange: RpcContext) -> None:
    """ValidateProviderConfig."""
    exchange.use_schema(exchange.provider.schema)
    await exchange.provider.validate(exchange.values("config"), exchange.call)


async def configure_provider(exchange: RpcContext) -> None:
    """ConfigureProvider."""
    exchange.use_schema(exchange.provider.schema)
    await exchange.provider.configure(exchange.values("config"), exchange.call)


async def validate_data_resource_config(exchange: RpcContext) -> None:
    """ValidateDataResourceConfig."""
    source = exchange.about(exchange.provider.data_sources)
    await source.validate(exchange.values("config"), exchange.call)


async def read_data_source(exchange: RpcContext) -> None:
    """ReadDataSource."""
    source = exchange.about(exchange.provider.data_sources)
    exchange.put("state", await source.read(exchange.values("config"), exchange.call))


async def call_function(exchange: RpcContext) -> None:
    """CallFunction."""
    name = exchange.request.name
    if name not in exchange.provider.functions:
        raise FunctionFailed(f"This provider has no function {name}.")
    function = exchange.provider.functions[name]
    given = exchange.request.arguments
    arguments = [read_value(one, _parameter_type(function, place)) for place, one in enumerate(given)]
    result = await function.call(arguments, exchange.call)
    write_value(exchange.answer.result, result, function.returns)


def _parameter_type(function: ProviderFunction, place: int) -> CtyType:
    if place < len(function.parameters):
        return function.parameters[place].type
    if function.variadic is None:
        raise FunctionFailed("There are more arguments than parameters.", place)
    return function.variadic.type


async def validate_resource_config(exchange: RpcContext) -> None:
    """ValidateResourceConfig."""
    resource, config = exchange.about(exchange.provider.resources), exchange.values("config")
    if not exchange.request.client_capabilities.write_only_attributes_allowed:
        _refuse_write_only(resource.schema, config)
    await resource.validate(config, exchange.call)


def _refuse_write_only(schema: TerraformSchema, config: AttributeValues) -> None:
    # A client that does not know them would take them for values to be stored.
    paths = write_only_paths(schema, config)
    if paths:
        detail = "They take Terraform 1.11 or newer. An older one would not keep the value out of its state."
        raise DiagnosticsError(*(error("Write-only attributes are not supported here", detail, path) for path in paths))


async def upgrade_resource_state(exchange: RpcContext) -> None:
    """UpgradeResourceState: a state of this version goes back as it came."""
    resource = exchange.about(exchange.provider.resources)
    raw, version = exchange.request.raw_state.json, exchange.request.version
    if version == resource.schema.version:
        exchange.answer.upgraded_state.json = raw
        return
    exchange.put("upgraded_state", await resource.upgrade(decode_state(raw), version, exchange.call))


async def read_resource(exchange: RpcContext) -> None:
    """ReadResource: null when the object is gone."""
    resource = exchange.about(exchange.provider.resources)
    stored = InstanceState(exchange.values("current_state"), exchange.request.private)
    found = await resource.read(stored, exchange.call)
    if found is None:
        exchange.put("new_state", None)
        return
    _refuse_unknowns(found.state)
    exchange.put("new_state", without_write_only(resource.schema, found.state))
    exchange.answer.private = found.private


async def plan_resource_change(exchange: RpcContext) -> None:
    """PlanResourceChange: of a creation, an update or a deletion."""
    resource, request = exchange.about(exchange.provider.resources), exchange.request
    prior, proposed = exchange.attributes_or_null("prior_state"), exchange.attributes_or_null("proposed_new_state")
    if proposed is None:
        exchange.put("planned_state", None)
        stored = InstanceState(prior or {}, request.prior_private)
        exchange.answer.planned_private = await resource.plan_deletion(stored, exchange.call)
        return
    config = exchange.values("config")
    proposed = mark_computed_unknown(resource.schema, config, prior, proposed)
    planned = await resource.plan(PlanRequest(config, prior, proposed, request.prior_private), exchange.call)
    state = without_write_only(resource.schema, planned.state)
    exchange.put("planned_state", state)
    exchange.answer.planned_private = planned.private
    if prior is not None:
        for path in dict.fromkeys((*paths_requiring_replace(resource.schema, prior, state), *planned.requires_replace)):
            write_path(exchange.answer.requires_replace.add(), path, exchange.type)


async def apply_resource_change(exchange: RpcContext) -> None:
    """ApplyResourceChange: whatever fails, what is there is kept in the state."""
    # Before anything can fail: what was there is there.
    exchange.answer.new_state.CopyFrom(exchange.request.prior_state)
    exchange.answer.private = exchange.request.planned_private
    resource = exchange.about(exchange.provider.resources)
    prior, planned = exchange.attributes_or_null("prior_state"), exchange.attributes_or_null("planned_state")

    def keep(stored: InstanceState | None) -> None:
        state = None if stored is None else nullify_unknown(without_write_only(resource.schema, stored.state))
        exchange.put("new_state", state)
        exchange.answer.private = b"" if stored is None else stored.private

    exchange.call.on_partial_state(keep)
    stored = await _apply_change(exchange, resource, prior, planned)
    keep(stored)
    if stored is not None:
        _refuse_unknowns(stored.state)


async def _apply_change(
    exchange: RpcContext, resource: ManagedResource, prior: AttributeValues | None, planned: AttributeValues | None
) -> InstanceState | None:
    private, call = exchange.request.planned_private, exchange.call
    if planned is None:
        await resource.delete(InstanceState(prior or {}, private), call)
        return None
    config = exchange.values("config")
    if prior is None:
        return await resource.create(CreateRequest(config, planned, private), call)
    return await resource.update(UpdateRequest(config, prior, planned, private), call)


def _refuse_unknowns(state: AttributeValues) -> None:
    # Terraform would say so, too, but not whose mistake it is.
    unknown = [format_path(path) for path in unknown_paths(state)]
    if unknown:
        raise DiagnosticsError(
            error("The provider left values unknown", f"By now these should be known: {', '.join(unknown)}.")
        )


async def import_resource_state(exchange: RpcContext) -> None:
    """ImportResourceState."""
    resource = exchange.about(exchange.provider.resources)
    found = await resource.import_state(exchange.request.id, exchange.call)
    added = exchange.answer.imported_resources.add(type_name=exchange.request.type_name, private=found.private)
    write_value(added.state, without_write_only(resource.schema, found.state), exchange.type)


async def move_resource_state(exchange: RpcContext) -> None:
    """MoveResourceState: refused."""
    request = exchange.request
    raise DiagnosticsError(
        error(
            f"{request.source_type_name} cannot become {request.target_type_name}",
            "This provider does not take over the state of other resources. Import the object instead.",
        )
    )
