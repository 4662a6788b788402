"""The services of a plugin besides the provider, over a real connection."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.rpc.protobuf import plugin_messages, provider_messages
from setpoint.terraform.rpc.server import PluginServices, start_server
from tests.terraform.probe.provider import ProbeProvider

T = TypeVar("T")


class Connection:
    """A connection to a server with the probe provider."""

    def __init__(self, channel: Any, services: PluginServices) -> None:
        self.channel = channel
        self.services = services

    async def call(self, method: str, data: bytes = b"") -> bytes:
        found: bytes = await self.channel.unary_unary(method)(data)
        return found

    async def streamed(self, method: str) -> list[bytes]:
        return [one async for one in self.channel.unary_stream(method)(b"")]


def over_connection(folder: Path, calls: Callable[[Connection], Awaitable[T]]) -> T:
    """The result of `calls`, on a new connection."""

    async def run() -> T:
        services = PluginServices()
        server = await start_server(ProbeProvider(), ActiveCalls(), services, folder / "s")
        async with grpc.aio.insecure_channel(f"unix:{folder / 's'}") as channel:
            try:
                return await calls(Connection(channel, services))
            finally:
                await server.stop(0)

    return asyncio.run(run())


def test_the_health_check_reports_serving(tmp_path: Path) -> None:
    request = plugin_messages()["HealthCheckRequest"](service="plugin").SerializeToString()
    answer = over_connection(tmp_path, lambda one: one.call("/grpc.health.v1.Health/Check", request))

    assert answer == b"\x08\x01"


def test_shutdown_ends_the_streams(tmp_path: Path) -> None:
    async def calls(one: Connection) -> tuple[list[bytes], bytes, bool]:
        streams = asyncio.ensure_future(one.streamed("/plugin.GRPCStdio/StreamStdio"))
        answer = await one.call("/plugin.GRPCController/Shutdown")
        return await streams, answer, one.services.shutdown.is_set()

    assert over_connection(tmp_path, calls) == ([], b"", True)


def test_the_broker_sends_nothing(tmp_path: Path) -> None:
    async def calls(one: Connection) -> list[bytes]:
        broker = one.channel.stream_stream("/plugin.GRPCBroker/StartStream")()
        await broker.write(b"")
        one.services.shutdown.set()
        return [message async for message in broker]

    assert over_connection(tmp_path, calls) == []


def test_schemas_are_encoded(tmp_path: Path) -> None:
    answer = over_connection(tmp_path, lambda one: one.call("/tfplugin6.Provider/GetProviderSchema"))
    found = provider_messages()["GetProviderSchema.Response"].FromString(answer)
    attributes = {one.name: one for one in found.resource_schemas["probe_thing"].block.attributes}

    assert found.resource_schemas["probe_thing"].version == 1
    assert (attributes["name"].required, attributes["name"].type) == (True, b'"string"')
    assert (attributes["enabled"].optional, attributes["enabled"].computed) == (True, True)
    assert (attributes["password"].sensitive, attributes["password_wo"].write_only) == (True, True)
    assert [one.name for one in attributes["rules"].nested_type.attributes] == ["note", "port"]
    assert getattr(found.functions["describe"], "return").type == b'"string"'


def test_a_value_of_20_mib_is_accepted(tmp_path: Path) -> None:
    config = b'{"behaviour": "warn", "password": "%s"}' % (b"x" * (20 << 20))
    request = provider_messages()["ValidateResourceConfig.Request"](type_name="probe_thing", config={"json": config})
    method = "/tfplugin6.Provider/ValidateResourceConfig"
    answer = over_connection(tmp_path, lambda one: one.call(method, request.SerializeToString()))

    assert b"Think twice" in answer


@pytest.mark.parametrize("method", ["ListResource", "InvokeAction", "Nonsense"])
def test_an_unknown_method_is_unimplemented(tmp_path: Path, method: str) -> None:
    async def calls(one: Connection) -> Any:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await one.call(f"/tfplugin6.Provider/{method}")
        return refused.value.code()

    assert over_connection(tmp_path, calls) is grpc.StatusCode.UNIMPLEMENTED
