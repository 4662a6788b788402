"""A provider as a process: started by Terraform, gone when Terraform has no more use for it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, TextIO

import grpc

from setpoint.terraform import hclog
from setpoint.terraform.calls import Calls
from setpoint.terraform.certificate import cache_folder, certificate_for
from setpoint.terraform.front import Front, mutual_tls
from setpoint.terraform.handshake import Invitation, invitation_in, line, reattachment
from setpoint.terraform.plugin_services import PluginServices, provider_handler
from setpoint.terraform.provider import Provider
from setpoint.terraform.service import Service
from setpoint.terraform.wire import provider_messages

# As much as Terraform itself takes.
_MOST_BYTES: Final = 64 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MOST_BYTES),
    ("grpc.max_send_message_length", _MOST_BYTES),
    # A connection of the front may wait for Terraform for as long as it takes.
    ("grpc.server_handshake_timeout_ms", 2**31 - 1),
    ("grpc.so_reuseport", 0),
)
_FAREWELL_S: Final = 0.2
# The path of a socket has at most 104 bytes on some systems, and its name within the place takes 34.
_LONGEST_PLACE: Final = 70


def serve(provider: Provider) -> NoReturn:
    """Serves `provider` to the Terraform that started this process, and ends the process."""
    invitation = invitation_in(os.environ)
    if invitation is None:
        sys.exit("This is a provider for Terraform, which starts it by itself: it is no command to be typed.")
    # What any library prints must not get between Terraform and the line that it waits for.
    announced = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    hclog.configure(os.environ, sys.stderr)
    with _private_folder(invitation.folder) as folder:
        asyncio.run(_serve(provider, folder, invitation, announced))
    sys.stderr.flush()
    # Nothing is left to be tidied up, and Terraform waits for the process to end.
    os._exit(0)


def serve_for_reattaching(provider: Provider, address: str) -> None:
    """Serves `provider` until somebody interrupts, to every Terraform that is told the line on standard output.

    `address` is what configurations call it: `registry.terraform.io/acme/probe`.
    """
    hclog.configure(os.environ, sys.stderr)
    with _private_folder("") as folder:
        asyncio.run(_serve_for_reattaching(provider, folder, address))


@contextmanager
def _private_folder(above: str) -> Iterator[Path]:
    # As `tempfile` and `shutil` would do it: loading those takes 4 ms of every start.
    name = f"setpoint-{os.urandom(8).hex()}"
    places = (above, os.environ.get("TMPDIR", ""), "/tmp")
    folder = next(Path(one, name) for one in places if 0 < len(one) <= _LONGEST_PLACE)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        folder.rmdir()


async def _serve(provider: Provider, folder: Path, invitation: Invitation, announced: TextIO) -> None:
    calls, services, front = Calls(), PluginServices(), Front()
    context, proof = None, b""
    if invitation.client_certificate:
        certificate = certificate_for(folder, cache_folder(os.environ), datetime.now(UTC))
        context, proof = mutual_tls(certificate, invitation.client_certificate), certificate.der
    server = await started(provider, calls, services, folder / "grpc")
    await front.start(folder / "provider", folder / "grpc", context)
    # Who presses Ctrl-C interrupts Terraform and its providers alike: calls end, and their answers are still heard.
    _on(signal.SIGINT, calls.stop)
    _end_on_sigterm(calls, services.ended)
    announced.write(line(str(folder / "provider"), proof))
    announced.flush()
    await _first(services.ended, front.left)
    # Terraform hears that it may go, and goes; gRPC would wait for connections that nobody used.
    await front.close(_FAREWELL_S)
    await server.stop(0)


async def _serve_for_reattaching(provider: Provider, folder: Path, address: str) -> None:
    calls, services = Calls(), PluginServices()
    server = await started(provider, calls, services, folder / "provider")
    _on(signal.SIGINT, services.ended.set)
    _end_on_sigterm(calls, services.ended)
    sys.stdout.write(f"TF_REATTACH_PROVIDERS='{reattachment(address, str(folder / 'provider'), os.getpid())}'\n")
    sys.stdout.flush()
    await services.ended.wait()
    await server.stop(_FAREWELL_S)


async def started(provider: Provider, calls: Calls, services: PluginServices, socket: Path) -> grpc.aio.Server:
    """gRPC with all services, listening on `socket`."""
    service = Service(provider, provider_messages(), calls)
    server = grpc.aio.server(handlers=(*services.handlers(), provider_handler(service)), options=_OPTIONS)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


def _on(number: signal.Signals, action: Callable[[], object]) -> None:
    asyncio.get_running_loop().add_signal_handler(number, action)


def _end_on_sigterm(calls: Calls, ended: asyncio.Event) -> None:
    ending: set[asyncio.Task[None]] = set()

    async def end() -> None:
        await calls.end()
        ended.set()

    _on(signal.SIGTERM, lambda: ending.add(asyncio.ensure_future(end())))


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()
