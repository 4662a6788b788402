"""A real PostgreSQL server for the tests: found or installed, started once, ended with the tests even after kill -9."""

import ipaddress
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from checks.apt_packages import found_or_installed
from setpoint_postgresql.connections import Access, Connection, TlsFolder, is_alive, open_connection
from setpoint_postgresql.server import Server

PASSWORD: Final = "the password of the administrator"
_SECONDS: Final = 60.0
# What a server of the tests may take, with its log: containers often have less memory to share.
_ROOM: Final = 2 * 1024**3
# Without durability a server starts and creates databases in a fraction of the time. For tests alone.
_SETTINGS: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "wal_level": "logical",
    "ssl": "on",
    "password_encryption": "scram-sha-256",
    "log_statement": "all",
    "logging_collector": "off",
}
# The other writer logs in by the socket; setpoint over TLS, with a password.
_HBA: Final = (
    "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\nhostnossl all all 127.0.0.1/32 scram-sha-256\n"
)
# Linux ends the program together with the tests. The credentials change before: that would undo it.
_DIE_WITH_PARENT: Final = """
import ctypes, os, pwd, signal, sys
parent, user, *command = sys.argv[1:]
if user:
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
    if os.getppid() != int(parent):
        sys.exit("the tests are gone")
os.execv(command[0], command)
"""


class NoServer(Exception):
    """There is no PostgreSQL on this machine, and none could be installed."""


@cache
def binaries() -> Path:
    """The folder with `postgres`, `initdb` and `psql`; installed from Debian's package where root runs the tests."""
    found, printed = found_or_installed(_find_binaries, "postgresql")
    if found is None and printed:
        raise NoServer(f"PostgreSQL could not be installed by apt-get:\n{printed}")
    if found is None:
        raise NoServer("PostgreSQL is neither on the PATH nor below /usr/lib/postgresql: install it")
    return found


def _find_binaries() -> Path | None:
    named = os.environ.get("SETPOINT_POSTGRESQL_BIN")
    on_path = shutil.which("postgres")
    below = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name), reverse=True)
    candidates = [*([Path(named)] if named else []), *([Path(on_path).resolve().parent] if on_path else []), *below]
    return next((one for one in candidates if (one / "postgres").exists() and (one / "initdb").exists()), None)


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM texts: of an authority, and of a server that it signed."""

    authority: str
    certificate: str
    key: str


@cache
def certificates(name: str = "tests") -> Certificates:
    """A new authority with this name, and a certificate for the loopback address."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    root = _builder(authority, authority, authority_key).add_extension(x509.BasicConstraints(True, None), True)
    leaf = _builder(subject, authority, server_key).add_extension(names, False)
    private = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signed = [one.sign(authority_key, hashes.SHA256()) for one in (root, leaf)]
    texts = [one.public_bytes(serialization.Encoding.PEM).decode() for one in signed]
    return Certificates(texts[0], texts[1], private.decode())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


class KeptConnection(psycopg.AsyncConnection[tuple[object, ...]]):
    """A connection that returns to where it was taken from when it is closed."""

    kept: "list[KeptConnection] | None" = None

    async def close(self) -> None:
        is_idle = self.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if self.kept is None or self.closed or not is_idle:
            await super().close()
        else:
            self.kept.append(self)

    def finish(self) -> None:
        """Closes it for good, and needs no event loop for that: psycopg awaits nothing meanwhile."""
        with suppress(StopIteration):
            super().close().send(None)


@dataclass(slots=True)
class KeptSessions:
    """Connections of clients that were closed, for the next client."""

    _kept: dict[tuple[Server, str, Access], list[KeptConnection]] = field(default_factory=dict)

    async def connect(self, server: Server, database: str, access: Access, files: TlsFolder) -> Connection:
        """One that was kept and still works, else a new one."""
        kept = self._kept.setdefault((server, database, access), [])
        while kept:
            connection = kept.pop()
            if await is_alive(connection):
                return connection
        opened = await open_connection(server, database, access, files, of=KeptConnection)
        assert isinstance(opened, KeptConnection)
        opened.kept = kept
        return opened

    def close(self) -> None:
        """Closes all that are kept."""
        for kept in self._kept.values():
            while kept:
                kept.pop().finish()


@dataclass(slots=True)
class PostgresServer:
    """A server of the tests. `superuser` changes it as another writer would."""

    folder: Path
    port: int
    user: str | None
    _process: "subprocess.Popen[bytes] | None" = None
    # Connections of the clients of the contract.
    sessions: KeptSessions = field(default_factory=KeptSessions)
    _superusers: dict[str, "psycopg.Connection[Any]"] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """All that the server has logged, statements included."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        command = [str(binaries() / "postgres"), "-D", str(self.folder / "data")]
        # To Linux the parent is a thread: the server ends together with the thread that started it.
        self._process = _lasting_thread().submit(_open, command, self.folder, self.user).result()
        until(self._answers, f"PostgreSQL does not start:\n{self.log[-2000:]}")

    def stop(self) -> None:
        """A fast shutdown: sessions are ended."""
        self.sessions.close()
        for connection in self._superusers.values():
            connection.close()
        self._superusers.clear()
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_SECONDS)
            self._process = None

    def session(self, database: str = "postgres") -> "psycopg.Connection[Any]":
        """The connection of the other writer to a database, which is kept."""
        connection = self._superusers.get(database)
        if connection is None or connection.closed:
            connection = self._superusers[database] = self.connect(database)
        return connection

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What another writer does, as the superuser."""
        try:
            cursor = self.session(database).execute(statement.encode())
        except psycopg.OperationalError:
            # The session was ended meanwhile.
            self.leave(database)
            cursor = self.session(database).execute(statement.encode())
        return cursor.fetchall() if cursor.description is not None else []

    def leave(self, database: str) -> None:
        """Closes the other writer's connection to a database: it could not be dropped."""
        connection = self._superusers.pop(database, None)
        if connection is not None:
            connection.close()

    def connect(self, database: str = "postgres") -> "psycopg.Connection[Any]":
        """A connection of the superuser, by the socket."""
        return psycopg.connect(host=str(self.folder), port=self.port, user="postgres", dbname=database, autocommit=True)

    def psql(self, script: str, database: str = "postgres") -> None:
        """Runs a script with psql; errors of single statements are ignored."""
        command = [str(binaries() / "psql"), "-X", "-q", "-h", str(self.folder), "-p", str(self.port)]
        subprocess.run(
            [*command, "-U", "postgres", database],
            input=script.encode(),
            capture_output=True,
            check=True,
            timeout=_SECONDS,
        )

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"PostgreSQL has ended:\n{self.log[-2000:]}")
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A new server in a folder of its own, for as long as the context lasts."""
    # initdb refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    prefix = "setpoint-postgresql-tests-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=_memory_folder(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        server = PostgresServer(folder, _free_port(), user)
        _initialize(server)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _memory_folder() -> Path | None:
    """The file system in memory, where there is one with room: a database is three hundred files."""
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK | os.X_OK) or shutil.disk_usage(folder).free < _ROOM:
        return None
    return folder


def _initialize(server: PostgresServer) -> None:
    folder = server.folder
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    _run_as(server.user, [
        str(binaries() / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "scram-sha-256",
        "--pwfile", str(folder / "password"), "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
    ])  # fmt: skip
    data, made = folder / "data", certificates()
    for file, text in (("server.crt", made.certificate), ("server.key", made.key), ("pg_hba.conf", _HBA)):
        (data / file).write_text(text, encoding="utf-8")
        (data / file).chmod(0o600)
        if server.user is not None:
            os.chown(data / file, pwd.getpwnam(server.user).pw_uid, -1)
    settings = {**_SETTINGS, "port": str(server.port), "unix_socket_directories": str(folder)}
    settings["listen_addresses"] = "127.0.0.1"
    with (data / "postgresql.conf").open("a", encoding="utf-8") as config:
        config.writelines(f"{setting} = '{value}'\n" for setting, value in settings.items())


def _run_as(user: str | None, command: Sequence[str]) -> None:
    done = subprocess.run(command, user=user, cwd="/", capture_output=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr.decode()


def _open(command: Sequence[str], folder: Path, user: str | None) -> "subprocess.Popen[bytes]":
    wrapper = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), user or ""]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*wrapper, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@cache
def _lasting_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="postgresql")


def until(holds: Any, failure: str = "it never came true") -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < deadline, failure
        time.sleep(0.02)
