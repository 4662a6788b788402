"""The provider process: the gRPC server, the services that every go-plugin offers, signals and shutdown."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, TextIO

import grpc

from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.provider import Provider
from setpoint.terraform.rpc import hclog
from setpoint.terraform.rpc.handshake import PluginHandshake, handshake_line, read_handshake, reattach_config
from setpoint.terraform.rpc.protobuf import PROVIDER_SERVICE, ProtoMessage, plugin_messages, provider_messages
from setpoint.terraform.rpc.service import METHODS, STOP, ProviderService
from setpoint.terraform.rpc.tls_proxy import TlsProxy, cache_directory, load_or_create_certificate, mutual_tls

# The limit of Terraform itself.
_MAX_MESSAGE_BYTES: Final = 64 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    # The proxy opens its connections at the start; one may stay idle for as long as Terraform runs.
    ("grpc.server_handshake_timeout_ms", 2**31 - 1),
    ("grpc.so_reuseport", 0),
)
_SHUTDOWN_S: Final = 0.2
# The path of a socket has at most 104 bytes on some systems, and its name below the directory takes 34.
_MAX_DIRECTORY_LENGTH: Final = 70
_HEALTH_SERVING: Final = 1


class PluginServices:
    """The services of every go-plugin: controller, standard streams, broker, health.

    `shutdown` is set when Terraform asks the plugin to exit.
    """

    def __init__(self) -> None:
        self.shutdown = asyncio.Event()
        self._messages = plugin_messages()

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """A gRPC handler for each service."""
        empty, health = self._messages["Empty"], self._messages["HealthCheckRequest"]
        services: Mapping[str, Mapping[str, grpc.RpcMethodHandler]] = {
            "plugin.GRPCController": {
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown, empty.FromString, _serialized),
            },
            "plugin.GRPCStdio": {
                "StreamStdio": grpc.unary_stream_rpc_method_handler(self._stream_stdio, empty.FromString, _serialized),
            },
            "plugin.GRPCBroker": {
                "StartStream": grpc.stream_stream_rpc_method_handler(
                    self._start_stream, self._messages["ConnInfo"].FromString, _serialized
                ),
            },
            "grpc.health.v1.Health": {
                "Check": grpc.unary_unary_rpc_method_handler(self._check, health.FromString, _serialized),
            },
        }
        return [grpc.method_handlers_generic_handler(name, dict(methods)) for name, methods in services.items()]

    async def _shutdown(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
        self.shutdown.set()
        return self._messages["Empty"]()

    async def _stream_stdio(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> None:
        # Nothing to stream: all output goes to standard error, which Terraform reads anyway.
        await self.shutdown.wait()

    async def _start_stream(self, requests: AsyncIterator[ProtoMessage], context: grpc.aio.ServicerContext) -> None:
        # Through the broker a plugin can call its host. A provider has no such call.
        await self.shutdown.wait()

    async def _check(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
        return self._messages["HealthCheckResponse"](status=_HEALTH_SERVING)


def build_all_messages() -> None:
    """Builds the classes of all messages, for this process and its forks."""
    provider_messages()
    plugin_messages()


def serve(provider: Provider) -> NoReturn:
    """Serves `provider` to the Terraform that started this process, and ends the process."""
    handshake = read_handshake(os.environ)
    if handshake is None:
        sys.exit("This is a provider for Terraform, which starts it by itself: it is no command to be typed.")
    # Standard output belongs to the handshake line: what libraries print goes to standard error.
    handshake_output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    hclog.configure(os.environ, sys.stderr)
    with _private_directory(handshake.directory) as directory:
        asyncio.run(_serve(provider, directory, handshake, handshake_output))
    sys.stderr.flush()
    # Everything is closed, and Terraform waits for the process to end: skip the interpreter's own shutdown.
    os._exit(0)


def serve_for_reattach(provider: Provider, address: str) -> None:
    """Serves `provider` until interrupted, to any Terraform that has the printed TF_REATTACH_PROVIDERS line.

    `address` is the provider's source address: `registry.terraform.io/acme/probe`.
    """
    hclog.configure(os.environ, sys.stderr)
    with _private_directory("") as directory:
        asyncio.run(_serve_for_reattach(provider, directory, address))


@contextmanager
def _private_directory(parent: str) -> Iterator[Path]:
    # `tempfile` and `shutil` would do the same: importing them takes 4 ms of every start.
    name = f"setpoint-{os.urandom(8).hex()}"
    parents = (parent, os.environ.get("TMPDIR", ""), "/tmp")
    directory = next(Path(one, name) for one in parents if 0 < len(one) <= _MAX_DIRECTORY_LENGTH)
    directory.mkdir(mode=0o700)
    try:
        yield directory
    finally:
        for file in directory.iterdir():
            file.unlink(missing_ok=True)
        directory.rmdir()


async def _serve(provider: Provider, directory: Path, handshake: PluginHandshake, handshake_output: TextIO) -> None:
    calls, services, proxy = ActiveCalls(), PluginServices(), TlsProxy()
    context, server_certificate = None, b""
    if handshake.client_certificate:
        certificate = load_or_create_certificate(directory, cache_directory(os.environ), datetime.now(UTC))
        context, server_certificate = mutual_tls(certificate, handshake.client_certificate), certificate.der
    server = await start_server(provider, calls, services, directory / "grpc")
    await proxy.start(directory / "provider", directory / "grpc", context)
    # Ctrl-C interrupts Terraform and its providers alike: active calls are stopped, and still answer.
    _on_signal(signal.SIGINT, calls.stop)
    _shut_down_on_sigterm(calls, services.shutdown)
    handshake_output.write(handshake_line(str(directory / "provider"), server_certificate))
    handshake_output.flush()
    await _wait_for_any(services.shutdown, proxy.disconnected)
    # Terraform disconnects once Shutdown is answered; gRPC's own stop would wait for the unused connections.
    await proxy.close(_SHUTDOWN_S)
    await server.stop(0)
    if services.shutdown.is_set():
        provider.shut_down()


async def _serve_for_reattach(provider: Provider, directory: Path, address: str) -> None:
    calls, services = ActiveCalls(), PluginServices()
    server = await start_server(provider, calls, services, directory / "provider")
    _on_signal(signal.SIGINT, services.shutdown.set)
    _shut_down_on_sigterm(calls, services.shutdown)
    sys.stdout.write(f"TF_REATTACH_PROVIDERS='{reattach_config(address, str(directory / 'provider'), os.getpid())}'\n")
    sys.stdout.flush()
    await services.shutdown.wait()
    await server.stop(_SHUTDOWN_S)
    provider.shut_down()


async def start_server(
    provider: Provider, calls: ActiveCalls, services: PluginServices, socket: Path
) -> grpc.aio.Server:
    """A gRPC server with all services, listening on `socket`."""
    service = ProviderService(provider, provider_messages(), calls)
    server = grpc.aio.server(handlers=(*services.handlers(), _provider_handler(service)), options=_OPTIONS)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


def _provider_handler(service: ProviderService) -> grpc.GenericRpcHandler:
    def handler_of(method: str) -> grpc.RpcMethodHandler:
        async def handle(request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
            return await service.handle(method, request)

        return grpc.unary_unary_rpc_method_handler(handle, service.request_type(method).FromString, _serialized)

    return grpc.method_handlers_generic_handler(
        PROVIDER_SERVICE, {method: handler_of(method) for method in (*METHODS, STOP)}
    )


def _serialized(message: ProtoMessage) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _on_signal(number: signal.Signals, action: Callable[[], object]) -> None:
    asyncio.get_running_loop().add_signal_handler(number, action)


def _shut_down_on_sigterm(calls: ActiveCalls, shutdown: asyncio.Event) -> None:
    tasks: set[asyncio.Task[None]] = set()

    async def drain() -> None:
        await calls.drain()
        shutdown.set()

    _on_signal(signal.SIGTERM, lambda: tasks.add(asyncio.ensure_future(drain())))


async def _wait_for_any(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
