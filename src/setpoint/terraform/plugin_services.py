"""What every plugin of Terraform's offers besides: an end, standard streams, a broker, and its health."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import grpc

from setpoint.terraform.service import METHODS, STOP, Service
from setpoint.terraform.wire import Wire, plugin_messages
from setpoint.terraform.wire_table import PROVIDER_SERVICE

_SERVING: Final = 1


class PluginServices:
    """`ended` is set when Terraform has no more use for the plugin."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._messages = plugin_messages()

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """For gRPC: every service with its methods."""
        empty, health = self._messages["Empty"], self._messages["HealthCheckRequest"]
        methods: Mapping[str, Mapping[str, grpc.RpcMethodHandler]] = {
            "plugin.GRPCController": {
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown, empty.FromString, _bytes),
            },
            "plugin.GRPCStdio": {
                "StreamStdio": grpc.unary_stream_rpc_method_handler(self._streams, empty.FromString, _bytes),
            },
            "plugin.GRPCBroker": {
                "StartStream": grpc.stream_stream_rpc_method_handler(
                    self._broker, self._messages["ConnInfo"].FromString, _bytes
                ),
            },
            "grpc.health.v1.Health": {
                "Check": grpc.unary_unary_rpc_method_handler(self._health, health.FromString, _bytes),
            },
        }
        return [grpc.method_handlers_generic_handler(name, dict(those)) for name, those in methods.items()]

    async def _shutdown(self, request: Wire, context: grpc.aio.ServicerContext) -> Wire:
        self.ended.set()
        return self._messages["Empty"]()

    async def _streams(self, request: Wire, context: grpc.aio.ServicerContext) -> None:
        # What is written goes to standard error, which Terraform reads anyway.
        await self.ended.wait()

    async def _broker(self, requests: AsyncIterator[Wire], context: grpc.aio.ServicerContext) -> None:
        # Through a broker a plugin could call its host back. A provider has nothing to ask.
        await self.ended.wait()

    async def _health(self, request: Wire, context: grpc.aio.ServicerContext) -> Wire:
        return self._messages["HealthCheckResponse"](status=_SERVING)


def provider_handler(service: Service) -> grpc.GenericRpcHandler:
    """For gRPC: the provider itself."""

    def handler_of(method: str) -> grpc.RpcMethodHandler:
        async def answer(request: Wire, context: grpc.aio.ServicerContext) -> Wire:
            return await service.answer(method, request)

        return grpc.unary_unary_rpc_method_handler(answer, service.request_type(method).FromString, _bytes)

    return grpc.method_handlers_generic_handler(
        PROVIDER_SERVICE, {method: handler_of(method) for method in (*METHODS, STOP)}
    )


def _bytes(message: Wire) -> bytes:
    found: bytes = message.SerializeToString()
    return found
