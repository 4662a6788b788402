"""Mutual TLS in front of the gRPC server, and the cached server certificate.

Terraform proves its identity with a key on the curve P-521. Python's TLS accepts it; the TLS inside gRPC does not offer
signatures on that curve, so that a client with such a key sends no certificate at all. So TLS ends here, and gRPC is
behind it. All connections to gRPC are opened at the start, and its socket is then removed: another process of the same
user could reach that socket only within those milliseconds.
"""

import asyncio
import os
import ssl
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

_VALIDITY: Final = timedelta(days=30)
# What is used has this much life left: no run of Terraform's takes longer.
_MIN_REMAINING: Final = timedelta(days=2)
_CERTIFICATE_FILE: Final = "server.pem"
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


class PluginCertificate(msgspec.Struct, frozen=True):
    """A certificate in DER, and the file that holds it with its key."""

    file: Path
    der: bytes


def cache_directory(environment: Mapping[str, str]) -> Path | None:
    """Where certificates are kept; None when there is no place for them."""
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "setpoint", "terraform")
    return Path(environment["HOME"], ".cache", "setpoint", "terraform") if environment.get("HOME") else None


def load_or_create_certificate(run: Path, cache: Path | None, now: datetime) -> PluginCertificate:
    """The certificate kept in `cache`, or a new one, as a file in `run`, the private folder of this process.

    The file is a copy: another process may replace the kept one at any moment.
    """
    pem = None if cache is None else _cached_pem(cache, now)
    if pem is None:
        pem = _new_pem(now)
        if cache is not None:
            _write_cache(cache, pem)
    _write_exclusively(run / _CERTIFICATE_FILE, pem)
    return PluginCertificate(run / _CERTIFICATE_FILE, ssl.PEM_cert_to_DER_cert(_certificate_block(pem)))


def _cached_pem(cache: Path, now: datetime) -> str | None:
    file = cache / _CERTIFICATE_FILE
    try:
        # A key that others could have read, or put there, is none.
        if not (_is_private(cache.lstat(), stat.S_IFDIR) and _is_private(file.lstat(), stat.S_IFREG)):
            return None
        pem = file.read_text(encoding="ascii")
        begin, end = _validity_period(pem)
        return pem if begin <= now and end - now > _MIN_REMAINING else None
    except (OSError, ValueError):
        return None


def _is_private(found: os.stat_result, sort: int) -> bool:
    return stat.S_IFMT(found.st_mode) == sort and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _certificate_block(pem: str) -> str:
    return pem[pem.index(_BEGIN) :]


def _validity_period(pem: str) -> tuple[datetime, datetime]:
    """From when until when a certificate is good; OSError or ValueError when it is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(cadata=_certificate_block(pem))
    (found,) = context.get_ca_certs()
    begin, end = (ssl.cert_time_to_seconds(str(found[name])) for name in ("notBefore", "notAfter"))
    return datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC)


def _write_cache(cache: Path, pem: str) -> None:
    # Without a home, or with a read-only one, each process makes its own.
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        cache.chmod(0o700)
        fresh = cache / f"{_CERTIFICATE_FILE}.{os.getpid()}"
        _write_exclusively(fresh, pem)
        # Others see the old file or the new one, never half of it.
        fresh.replace(cache / _CERTIFICATE_FILE)


def _write_exclusively(file: Path, pem: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        opened.write(pem)


def _new_pem(now: datetime) -> str:
    """A key and a certificate for it, for localhost: that is whom Terraform asks for."""
    # Only who makes a certificate pays for loading this.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode("ascii")


# Terraform uses one connection, and makes another only when that one breaks.
_GRPC_CONNECTIONS: Final = 3
_CHUNK: Final = 1 << 18
# How long nobody may be connected: Terraform that died does not say good-bye.
_DISCONNECTED_S: Final = 2.0
_FIRST_CONNECTION_S: Final = 60.0
# How long Terraform may take to say good-bye when it is asked to.
_TLS_SHUTDOWN_S: Final = 1.0

_Connection: TypeAlias = tuple[StreamReader, StreamWriter]


def mutual_tls(certificate: PluginCertificate, client_certificate: str) -> ssl.SSLContext:
    """TLS that lets in who has the key of `client_certificate`, and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.file)
    context.load_verify_locations(cadata=client_certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


class TlsProxy:
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
        self._behind = [await asyncio.open_unix_connection(behind) for _ in range(_GRPC_CONNECTIONS)]
        behind.unlink()
        patience = None if context is None else _TLS_SHUTDOWN_S
        self._server = await asyncio.start_unix_server(self._serve, socket, ssl=context, ssl_shutdown_timeout=patience)
        self._leave_after(_FIRST_CONNECTION_S)

    async def close(self, farewell_s: float = 0) -> None:
        """Lets nobody in any more, and lets go of who does not go within `farewell_s` seconds."""
        if self._server is not None:
            self._server.close()
        if self._serving:
            await asyncio.wait(tuple(self._serving), timeout=farewell_s)
        await _close(*(writer for both in self._serving.values() for writer in both))
        await asyncio.gather(*self._serving)
        self._stay()
        await _close(*(writer for _, writer in self._behind))

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        # Only who passed TLS gets here.
        task = asyncio.current_task()
        if task is None or not self._behind:
            await _close(writer)
            return
        self._stay()
        inner_reader, inner_writer = self._behind.pop()
        self._serving[task] = (writer, inner_writer)
        try:
            await asyncio.gather(_forward(reader, inner_writer), _forward(inner_reader, writer))
        finally:
            await _close(writer, inner_writer)
            del self._serving[task]
            if not self._serving:
                self._leave_after(_DISCONNECTED_S)

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()

    def _leave_after(self, seconds: float) -> None:
        self._leaving = asyncio.get_running_loop().call_later(seconds, self.left.set)


async def _forward(reader: StreamReader, writer: StreamWriter) -> None:
    # Either side may go at any moment; then the other is let go, too.
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _close(*writers: StreamWriter) -> None:
    for writer in writers:
        writer.close()
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()
