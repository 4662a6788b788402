"""What Terraform asks of the provider as a whole, of its data sources and its functions."""

from setpoint.terraform.cty_types import Type
from setpoint.terraform.exchange import Exchange
from setpoint.terraform.messages import read_value, write_function, write_schema, write_value
from setpoint.terraform.provider import Function, FunctionFailed
from setpoint.terraform.wire import Wire


async def metadata(exchange: Exchange) -> None:
    """GetMetadata: the names of everything."""
    answer, provider = exchange.answer, exchange.provider
    _write_capabilities(answer.server_capabilities)
    for name in provider.resources:
        answer.resources.add(type_name=name)
    for name in provider.data_sources:
        answer.data_sources.add(type_name=name)
    for name in provider.functions:
        answer.functions.add(name=name)


async def schemas(exchange: Exchange) -> None:
    """GetProviderSchema: everything that a configuration may say."""
    answer, provider = exchange.answer, exchange.provider
    _write_capabilities(answer.server_capabilities)
    write_schema(answer.provider, provider.schema)
    for name, resource in provider.resources.items():
        write_schema(answer.resource_schemas[name], resource.schema)
    for name, source in provider.data_sources.items():
        write_schema(answer.data_source_schemas[name], source.schema)
    await functions(exchange)


def _write_capabilities(message: Wire) -> None:
    # Deletions are planned here, too; and a schema that another process was told is as good.
    message.plan_destroy = message.get_provider_schema_optional = True


async def functions(exchange: Exchange) -> None:
    """GetFunctions."""
    for name, function in exchange.provider.functions.items():
        write_function(exchange.answer.functions[name], function)


async def identities(exchange: Exchange) -> None:
    """GetResourceIdentitySchemas: there are none."""


async def validate(exchange: Exchange) -> None:
    """ValidateProviderConfig."""
    exchange.about_schema(exchange.provider.schema)
    await exchange.provider.validate(exchange.values("config"), exchange.call)


async def configure(exchange: Exchange) -> None:
    """ConfigureProvider."""
    exchange.about_schema(exchange.provider.schema)
    await exchange.provider.configure(exchange.values("config"), exchange.call)


async def validate_data_source(exchange: Exchange) -> None:
    """ValidateDataResourceConfig."""
    source = exchange.about(exchange.provider.data_sources)
    await source.validate(exchange.values("config"), exchange.call)


async def read_data_source(exchange: Exchange) -> None:
    """ReadDataSource."""
    source = exchange.about(exchange.provider.data_sources)
    exchange.put("state", await source.read(exchange.values("config"), exchange.call))


async def call_function(exchange: Exchange) -> None:
    """CallFunction."""
    name = exchange.request.name
    if name not in exchange.provider.functions:
        raise FunctionFailed(f"This provider has no function {name}.")
    function = exchange.provider.functions[name]
    given = exchange.request.arguments
    arguments = [read_value(one, _parameter_type(function, place)) for place, one in enumerate(given)]
    result = await function.call(arguments, exchange.call)
    write_value(exchange.answer.result, result, function.returns)


def _parameter_type(function: Function, place: int) -> Type:
    if place < len(function.parameters):
        return function.parameters[place].type
    if function.variadic is None:
        raise FunctionFailed("There are more arguments than parameters.", place)
    return function.variadic.type
