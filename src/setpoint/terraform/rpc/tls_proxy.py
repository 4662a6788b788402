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

from setpoint.file_creation import create_file

# Terraform uses one connection, and opens another only when that one breaks.
_GRPC_CONNECTIONS: Final = 3
_CHUNK_BYTES: Final = 1 << 18
# Without a connection for this long the process ends: a Terraform that was killed sends no Shutdown.
_DISCONNECTED_S: Final = 2.0
_FIRST_CONNECTION_S: Final = 60.0
_TLS_SHUTDOWN_S: Final = 1.0

_VALIDITY: Final = timedelta(days=30)
# A cached certificate is used while it is valid for this much longer: no run of Terraform takes more.
_MIN_REMAINING: Final = timedelta(days=2)
_CERTIFICATE_FILE: Final = "server.pem"
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_Connection: TypeAlias = tuple[StreamReader, StreamWriter]


class TlsProxy:
    """Forwards bytes between Terraform and gRPC."""

    def __init__(self, disconnected_s: float = _DISCONNECTED_S) -> None:
        self._disconnected_s = disconnected_s
        self._idle: list[_Connection] = []
        # The connections in use: the writer to Terraform and the writer to gRPC of each.
        self._active: dict[asyncio.Task[object], tuple[StreamWriter, StreamWriter]] = {}
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Set when Terraform has had no connection for too long.
        self.disconnected = asyncio.Event()

    async def start(self, socket: Path, grpc_socket: Path, context: ssl.SSLContext | None) -> None:
        """Listens on `socket` for the clients that `context` accepts. gRPC listens on `grpc_socket`; it is removed."""
        self._idle = [await asyncio.open_unix_connection(grpc_socket) for _ in range(_GRPC_CONNECTIONS)]
        grpc_socket.unlink()
        timeout = None if context is None else _TLS_SHUTDOWN_S
        self._server = await asyncio.start_unix_server(self._serve, socket, ssl=context, ssl_shutdown_timeout=timeout)
        self._start_timer(_FIRST_CONNECTION_S)

    async def close(self, timeout_s: float = 0) -> None:
        """Stops listening, and closes the connections that Terraform has not closed within `timeout_s` seconds."""
        if self._server is not None:
            self._server.close()
        if self._active:
            await asyncio.wait(tuple(self._active), timeout=timeout_s)
        await _close(*(writer for both in self._active.values() for writer in both))
        await asyncio.gather(*self._active)
        self._stop_timer()
        await _close(*(writer for _, writer in self._idle))

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        # Called for a client once TLS has accepted it.
        task = asyncio.current_task()
        if task is None or not self._idle:
            await _close(writer)
            return
        self._stop_timer()
        grpc_reader, grpc_writer = self._idle.pop()
        self._active[task] = (writer, grpc_writer)
        try:
            await asyncio.gather(_forward(reader, grpc_writer), _forward(grpc_reader, writer))
        finally:
            await _close(writer, grpc_writer)
            del self._active[task]
            if not self._active:
                self._start_timer(self._disconnected_s)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start_timer(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.disconnected.set)


async def _forward(reader: StreamReader, writer: StreamWriter) -> None:
    # Either side may disconnect at any moment; then the other side is closed as well.
    with suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _close(*writers: StreamWriter) -> None:
    for writer in writers:
        writer.close()
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()


# --- The server certificate ------------------------------------------------------------------------------------------


class PluginCertificate(msgspec.Struct, frozen=True):
    """A certificate in DER, and the file that holds it with its key."""

    file: Path
    der: bytes


def mutual_tls(certificate: PluginCertificate, client_certificate: str) -> ssl.SSLContext:
    """TLS that accepts only clients with the key of `client_certificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.file)
    context.load_verify_locations(cadata=client_certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


def cache_directory(environment: Mapping[str, str]) -> Path | None:
    """The user's cache directory for the provider; None when the environment names none."""
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "setpoint", "terraform")
    return Path(environment["HOME"], ".cache", "setpoint", "terraform") if environment.get("HOME") else None


def load_or_create_certificate(run: Path, cache: Path | None, now: datetime) -> PluginCertificate:
    """The certificate cached in `cache`, or a new one, as a file in `run`, the private directory of this process.

    The file is a copy: another process may replace the cached one at any moment.
    """
    pem = None if cache is None else _cached_pem(cache, now)
    if pem is None:
        pem = _new_pem(now)
        if cache is not None:
            _write_cache(cache, pem)
    _write_private(run / _CERTIFICATE_FILE, pem)
    return PluginCertificate(run / _CERTIFICATE_FILE, ssl.PEM_cert_to_DER_cert(_certificate_block(pem)))


def _cached_pem(cache: Path, now: datetime) -> str | None:
    file = cache / _CERTIFICATE_FILE
    try:
        # A key that another user could have read or written is not trusted.
        if not (_is_private(cache.lstat(), stat.S_IFDIR) and _is_private(file.lstat(), stat.S_IFREG)):
            return None
        pem = file.read_text(encoding="ascii")
        not_before, not_after = _validity_period(pem)
        return pem if not_before <= now and not_after - now > _MIN_REMAINING else None
    except (OSError, ValueError):
        return None


def _is_private(found: os.stat_result, file_type: int) -> bool:
    return stat.S_IFMT(found.st_mode) == file_type and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _certificate_block(pem: str) -> str:
    return pem[pem.index(_BEGIN) :]


def _validity_period(pem: str) -> tuple[datetime, datetime]:
    """`notBefore` and `notAfter` of a certificate; OSError or ValueError when `pem` holds none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(cadata=_certificate_block(pem))
    (found,) = context.get_ca_certs()
    return _certificate_time(str(found["notBefore"])), _certificate_time(str(found["notAfter"]))


def _certificate_time(text: str) -> datetime:
    """A time such as `Jan  5 09:34:43 2026 GMT`. `ssl.cert_time_to_seconds` would import 5 ms of `strptime`."""
    month, day, time, year, _ = text.split()
    hour, minute, second = map(int, time.split(":"))
    return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)


def _write_cache(cache: Path, pem: str) -> None:
    # Without a home directory, or with a read-only one, each process makes its own certificate.
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        cache.chmod(0o700)
        temporary = cache / f"{_CERTIFICATE_FILE}.{os.getpid()}"
        _write_private(temporary, pem)
        # Atomic: another process reads the old file or the new one.
        temporary.replace(cache / _CERTIFICATE_FILE)


def _write_private(file: Path, pem: str) -> None:
    file.unlink(missing_ok=True)
    # Not synced: a certificate that is lost is made anew.
    create_file(file, [pem.encode("ascii")], sync=False)


def _new_pem(now: datetime) -> str:
    """A new key with a certificate for localhost, the name that Terraform verifies."""
    # Imported only when a certificate is made: it takes long to load.
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
