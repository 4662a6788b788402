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
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown, empty.FromString, _serialized),
            },
            "plugin.GRPCStdio": {
                "StreamStdio": grpc.unary_stream_rpc_method_handler(self._streams, empty.FromString, _serialized),
            },
            "plugin.GRPCBroker": {
                "StartStream": grpc.stream_stream_rpc_method_handler(
                    self._broker, self._messages["ConnInfo"].FromString, _serialized
                ),
            },
            "grpc.health.v1.Health": {
                "Check": grpc.unary_unary_rpc_method_handler(self._health, health.FromString, _serialized),
            },
        }
        return [grpc.method_handlers_generic_handler(name, dict(those)) for name, those in methods.items()]

    async def _shutdown(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
        self.ended.set()
        return self._messages["Empty"]()

    async def _streams(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> None:
        # What is written goes to standard error, which Terraform reads anyway.
        await self.ended.wait()

    async def _broker(self, requests: AsyncIterator[ProtoMessage], context: grpc.aio.ServicerContext) -> None:
        # Through a broker a plugin could call its host back. A provider has nothing to ask.
        await self.ended.wait()

    async def _health(self, request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
        return self._messages["HealthCheckResponse"](status=_SERVING)


def provider_handler(service: ProviderService) -> grpc.GenericRpcHandler:
    """For gRPC: the provider itself."""

    def handler_of(method: str) -> grpc.RpcMethodHandler:
        async def answer(request: ProtoMessage, context: grpc.aio.ServicerContext) -> ProtoMessage:
            return await service.answer(method, request)

        return grpc.unary_unary_rpc_method_handler(answer, service.request_type(method).FromString, _serialized)

    return grpc.method_handlers_generic_handler(
        PROVIDER_SERVICE, {method: handler_of(method) for method in (*METHODS, STOP)}
    )


def _serialized(message: ProtoMessage) -> bytes:
    found: bytes = message.SerializeToString()
    return found


# As much as Terraform itself takes.
_MAX_MESSAGE_BYTES: Final = 64 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    # A connection of the front may wait for Terraform for as long as it takes.
    ("grpc.server_handshake_timeout_ms", 2**31 - 1),
    ("grpc.so_reuseport", 0),
)
_SHUTDOWN_S: Final = 0.2
# The path of a socket has at most 104 bytes on some systems, and its name within the place takes 34.
_MAX_DIRECTORY_LENGTH: Final = 70


def serve(provider: Provider) -> NoReturn:
    """Serves `provider` to the Terraform that started this process, and ends the process."""
    invitation = read_handshake(os.environ)
    if invitation is None:
        sys.exit("This is a provider for Terraform, which starts it by itself: it is no command to be typed.")
    # What any library prints must not get between Terraform and the line that it waits for.
    announced = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    hclog.configure(os.environ, sys.stderr)
    with _private_directory(invitation.folder) as folder:
        asyncio.run(_serve(provider, folder, invitation, announced))
    sys.stderr.flush()
    # Nothing is left to be tidied up, and Terraform waits for the process to end.
    os._exit(0)


def serve_for_reattach(provider: Provider, address: str) -> None:
    """Serves `provider` until somebody interrupts, to every Terraform that is told the line on standard output.

    `address` is what configurations call it: `registry.terraform.io/acme/probe`.
    """
    hclog.configure(os.environ, sys.stderr)
    with _private_directory("") as folder:
        asyncio.run(_serve_for_reattach(provider, folder, address))


@contextmanager
def _private_directory(above: str) -> Iterator[Path]:
    # As `tempfile` and `shutil` would do it: loading those takes 4 ms of every start.
    name = f"setpoint-{os.urandom(8).hex()}"
    places = (above, os.environ.get("TMPDIR", ""), "/tmp")
    folder = next(Path(one, name) for one in places if 0 < len(one) <= _MAX_DIRECTORY_LENGTH)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        folder.rmdir()


async def _serve(provider: Provider, folder: Path, invitation: PluginHandshake, announced: TextIO) -> None:
    calls, services, front = ActiveCalls(), PluginServices(), TlsProxy()
    context, proof = None, b""
    if invitation.client_certificate:
        certificate = load_or_create_certificate(folder, cache_directory(os.environ), datetime.now(UTC))
        context, proof = mutual_tls(certificate, invitation.client_certificate), certificate.der
    server = await start_server(provider, calls, services, folder / "grpc")
    await front.start(folder / "provider", folder / "grpc", context)
    # Who presses Ctrl-C interrupts Terraform and its providers alike: calls end, and their answers are still heard.
    _on_signal(signal.SIGINT, calls.stop)
    _end_on_sigterm(calls, services.ended)
    announced.write(handshake_line(str(folder / "provider"), proof))
    announced.flush()
    await _wait_for_any(services.ended, front.left)
    # Terraform hears that it may go, and goes; gRPC would wait for connections that nobody used.
    await front.close(_SHUTDOWN_S)
    await server.stop(0)


async def _serve_for_reattach(provider: Provider, folder: Path, address: str) -> None:
    calls, services = ActiveCalls(), PluginServices()
    server = await start_server(provider, calls, services, folder / "provider")
    _on_signal(signal.SIGINT, services.ended.set)
    _end_on_sigterm(calls, services.ended)
    sys.stdout.write(f"TF_REATTACH_PROVIDERS='{reattach_config(address, str(folder / 'provider'), os.getpid())}'\n")
    sys.stdout.flush()
    await services.ended.wait()
    await server.stop(_SHUTDOWN_S)


async def start_server(
    provider: Provider, calls: ActiveCalls, services: PluginServices, socket: Path
) -> grpc.aio.Server:
    """gRPC with all services, listening on `socket`."""
    service = ProviderService(provider, provider_messages(), calls)
    server = grpc.aio.server(handlers=(*services.handlers(), provider_handler(service)), options=_OPTIONS)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


def _on_signal(number: signal.Signals, action: Callable[[], object]) -> None:
    asyncio.get_running_loop().add_signal_handler(number, action)


def _end_on_sigterm(calls: ActiveCalls, ended: asyncio.Event) -> None:
    ending: set[asyncio.Task[None]] = set()

    async def end() -> None:
        await calls.end()
        ended.set()

    _on_signal(signal.SIGTERM, lambda: ending.add(asyncio.ensure_future(end())))


async def _wait_for_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()
