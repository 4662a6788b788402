"""The door of a provider: a socket that only Terraform may use, with TLS on both sides.

Terraform proves who it is with a key on the curve P-521. Python's TLS takes it; the one inside gRPC does not ask for
signatures on that curve, so a client with such a key sends no certificate at all. So TLS ends here, and gRPC is behind
it. All connections to gRPC that there will ever be are made at the start, and its socket is removed: who is the same
user, and so may enter the folder, would have to be there within those milliseconds.
"""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from setpoint.terraform.certificate import Certificate

# Terraform uses one connection, and makes another only when that one breaks.
_CONNECTIONS: Final = 3
_CHUNK: Final = 1 << 18
# How long nobody may be connected: Terraform that died does not say good-bye.
_LONELY_S: Final = 2.0
_FIRST_S: Final = 60.0
# How long Terraform may take to say good-bye when it is asked to.
_FAREWELL_S: Final = 1.0

_Connection: TypeAlias = tuple[StreamReader, StreamWriter]


def mutual_tls(certificate: Certificate, client_certificate: str) -> ssl.SSLContext:
    """TLS that lets in who has the key of `client_certificate`, and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.file)
    context.load_verify_locations(cadata=client_certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


class Front:
    """Passes bytes on between Terraform and gRPC."""

    def __init__(self) -> None:
        self._behind: list[_Connection] = []
        # Who is there, and both ends of what is passed on.
        self._serving: dict[asyncio.Task[object], tuple[StreamWriter, StreamWriter]] = {}
        self._server: asyncio.Server | None = None
        self._leaving: asyncio.TimerHandle | None = None
        # Set when nobody is there any more.
        self.left = asyncio.Event()

    async def start(self, socket: Path, behind: Path, context: ssl.SSLContext | None) -> None:
        """Listens on `socket` for those that `context` lets in; gRPC listens on `behind`, which is removed."""
        self._behind = [await asyncio.open_unix_connection(behind) for _ in range(_CONNECTIONS)]
        behind.unlink()
        patience = None if context is None else _FAREWELL_S
        self._server = await asyncio.start_unix_server(self._serve, socket, ssl=context, ssl_shutdown_timeout=patience)
        self._leave_after(_FIRST_S)

    async def close(self, farewell_s: float = 0) -> None:
        """Lets nobody in any more, and lets go of who does not go within `farewell_s` seconds."""
        if self._server is not None:
            self._server.close()
        if self._serving:
            await asyncio.wait(tuple(self._serving), timeout=farewell_s)
        await _closed(*(writer for both in self._serving.values() for writer in both))
        await asyncio.gather(*self._serving)
        self._stay()
        await _closed(*(writer for _, writer in self._behind))

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        # Only who passed TLS gets here.
        task = asyncio.current_task()
        if task is None or not self._behind:
            await _closed(writer)
            return
        self._stay()
        inner_reader, inner_writer = self._behind.pop()
        self._serving[task] = (writer, inner_writer)
        try:
            await asyncio.gather(_passed_on(reader, inner_writer), _passed_on(inner_reader, writer))
        finally:
            await _closed(writer, inner_writer)
            del self._serving[task]
            if not self._serving:
                self._leave_after(_LONELY_S)

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()

    def _leave_after(self, seconds: float) -> None:
        self._leaving = asyncio.get_running_loop().call_later(seconds, self.left.set)


async def _passed_on(reader: StreamReader, writer: StreamWriter) -> None:
    # Either side may go at any moment; then the other is let go, too.
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _closed(*writers: StreamWriter) -> None:
    for writer in writers:
        writer.close()
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()
