"""Credentials for an API server: TLS context, exec plugins, and an identity shared by all requests until it expires."""

import asyncio
import base64
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Final, assert_never
from urllib.parse import quote

import msgspec
from msgspec import Struct
from multidict import CIMultiDict

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.http import TlsOptions
from setpoint.clients.kubernetes.kubeconfig import (
    BasicAuth,
    BearerToken,
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    ExecPlugin,
    FileText,
    InteractiveMode,
    NoLogin,
    ServerTrust,
    SkipVerify,
    SystemRoots,
)
from setpoint.clients.write_guard import exempt_from_guard
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable


@dataclass(frozen=True, slots=True)
class PemKeyPair:
    """A client certificate, with those that signed it, and its key: both in PEM."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)


def tls_context(connection: ClusterConnection, pair: PemKeyPair | None) -> ssl.SSLContext:
    """A context that trusts as `connection` says, and shows `pair`; RemoteRefused when one of them is broken."""
    try:
        context = _context_trusting(connection.trust)
    except (ssl.SSLError, ValueError) as error:
        raise RemoteRefused(
            f"{connection.name}: its certificate authority is no certificate in PEM: write it anew"
        ) from error
    # What Python asks for beyond RFC 5280 since 3.13, the authorities of many clusters lack; Go does not ask for it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if pair is not None:
        try:
            _load_key_pair(context, pair)
        except (ssl.SSLError, ValueError) as error:
            raise RemoteRefused(
                f"{connection.name}: its client certificate and key do not fit together, or are not in PEM, or the key "
                "has a password: write them anew"
            ) from error
    return context


def _context_trusting(trust: ServerTrust) -> ssl.SSLContext:
    match trust:
        case SystemRoots():
            return ssl.create_default_context()
        case CertificateAuthority(pem):
            # Without a single certificate OpenSSL would be left to trust whom this machine trusts.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=pem)
            return context
        case SkipVerify():
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        case _:
            assert_never(trust)


def _load_key_pair(context: ssl.SSLContext, pair: PemKeyPair) -> None:
    # OpenSSL takes a certificate and its key from a file alone; this one is ours, and gone at once.
    handle, path = tempfile.mkstemp(prefix="setpoint-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{pair.certificate}\n{pair.key}\n")
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(path, password="")
    finally:
        os.unlink(path)


EXEC_INFO_VARIABLE: Final = "KUBERNETES_EXEC_INFO"
# Somebody at a terminal has to find a browser, and a password.
SECONDS, SECONDS_AT_A_TERMINAL = 60.0, 300.0
# What is about to expire is not used any more: the call has to get there.
_MARGIN: Final = 10.0
_MAX_STDERR: Final = 500


class _Status(Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Credential(Struct, rename="camel"):
    api_version: str = ""
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Credential)


@dataclass(frozen=True, slots=True)
class LoginResult:
    """What shows who we are: a header, a certificate, or both. It holds for `seconds`; without them, until refused."""

    authorization: str | None = field(default=None, repr=False)
    pair: PemKeyPair | None = field(default=None, repr=False)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ExecEnvironment:
    """What a command finds around it: variables, maybe a terminal with somebody at it, and the time."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    has_terminal: bool = field(default_factory=lambda: sys.stdin is not None and sys.stdin.isatty())
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def bearer_header(text: str, where: object) -> str:
    """The header for the token in `text`; RemoteRefused when that is none. `where` is whose it is."""
    token = text.strip()
    if not token or not token.isascii() or len(token.split()) > 1:
        raise RemoteRefused(f"the token of {where} is none: it is empty, or has spaces in it; write it anew")
    return f"Bearer {token}"


async def run_exec_plugin(login: ExecPlugin, around: ExecEnvironment) -> LoginResult:
    """What the command prints; RemoteRefused when it fails or prints something else, RemoteUnavailable without an end.

    Nothing that it prints is ever part of an error, but what it says on stderr is.
    """
    if login.interactive is InteractiveMode.ALWAYS and not around.has_terminal:
        raise RemoteRefused(
            f"{login.command} logs in at a terminal only, and there is none: log in with another user of the kubeconfig"
        )
    printed = await _run(login, around)
    try:
        found = _decoder.decode(printed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteRefused(f"{login.command} logs in, and prints no ExecCredential: {error}: update it") from error
    if found.api_version != login.api_version:
        raise RemoteRefused(
            f"{login.command} prints {found.api_version!r} where the kubeconfig says {login.api_version}: "
            "write the one that the command prints"
        )
    return _login_result(login, found.status or _Status(), around.now())


def _login_result(login: ExecPlugin, status: _Status, now: datetime) -> LoginResult:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise RemoteRefused(f"{login.command} prints a certificate or a key, and not both: update it")
    if not status.token and not certificate:
        raise RemoteRefused(f"{login.command} prints neither a token nor a certificate: see whether you are logged in")
    seconds = None
    if (until := status.expiration_timestamp) is not None:
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds() - _MARGIN
    authorization = bearer_header(status.token, login.command) if status.token else None
    return LoginResult(authorization, PemKeyPair(certificate, key) if certificate else None, seconds)


async def _run(login: ExecPlugin, around: ExecEnvironment) -> bytes:
    """What the command prints when all is well."""
    asks = around.has_terminal and login.interactive is not InteractiveMode.NEVER
    process = await _start(login, around, asks=asks)
    limit = SECONDS_AT_A_TERMINAL if asks else SECONDS
    try:
        async with asyncio.timeout(limit):
            printed, said = await process.communicate()
    except TimeoutError as error:
        raise RemoteUnavailable(
            f"{login.command} logs in, and takes longer than {limit:g} s: run it by hand"
        ) from error
    finally:
        await _kill(process, is_leader=not asks)
    if process.returncode:
        words = " ".join((said or b"").decode(errors="replace").split())[:_MAX_STDERR]
        raise RemoteRefused(
            f"{login.command} cannot log in: it ends with {process.returncode} and says: {words or 'nothing'}"
        )
    return printed


async def _start(login: ExecPlugin, around: ExecEnvironment, *, asks: bool) -> asyncio.subprocess.Process:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environment = {**around.environment, **dict(login.env), EXEC_INFO_VARIABLE: _exec_info(login, asks=asks)}
    try:
        with exempt_from_guard():
            return await asyncio.create_subprocess_exec(
                login.command,
                *login.args,
                env=environment,
                stdin=None if asks else nothing,
                stdout=pipe,
                # Whoever sits at the terminal has to see what the command asks for.
                stderr=None if asks else pipe,
                start_new_session=not asks,
            )
    except OSError as error:
        hint = " ".join(login.install_hint.split()) or "the kubeconfig does not say how"
        raise RemoteRefused(
            f"cannot run {login.command}, which logs in: {error.strerror}: install it ({hint})"
        ) from error


async def _kill(process: asyncio.subprocess.Process, *, is_leader: bool) -> None:
    """Nothing of the command is left: it has ended, or nobody waits for it any more."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if is_leader:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()


def _exec_info(login: ExecPlugin, *, asks: bool) -> str:
    spec = {"interactive": asks} if login.cluster is None else {"cluster": login.cluster, "interactive": asks}
    told = {"apiVersion": login.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(told).decode()


# A file may be another one by then: the tokens of pods are.
FILE_REREAD_SECONDS: Final = 60.0
# What a command has just said is not asked for again: neither when it failed, nor when the server does not take it.
EXEC_PAUSE_SECONDS: Final = 5.0
# What the name of a header may hold.
_HEADER_CHARACTERS: Final = "!#$&'*+-.^_`|~"


@dataclass(frozen=True, slots=True, eq=False)
class ClusterIdentity:
    """What a request brings along to show who we are. One that was refused is told apart by being the same object."""

    headers: Mapping[str, str] = field(repr=False)
    tls: TlsOptions | None = None


class KubeconfigCredentials:
    """Many may ask at once: one of them finds out, and the others wait for it."""

    def __init__(
        self, connection: ClusterConnection, around: ExecEnvironment | None = None, clock: MonotonicClock | None = None
    ) -> None:
        self._connection = connection
        self._is_secure = connection.server.startswith("https://")
        self._around = around or ExecEnvironment()
        self._clock = clock or EventLoopClock()
        self._held: tuple[LoginResult, ClusterIdentity] | None = None
        self._fresh_until = -inf
        self._failure: RemoteError | None = None
        self._asked_at = -inf
        self._asking: asyncio.Task[ClusterIdentity] | None = None

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        """Who we are, and another than the server `refused`; the same when nothing else can be found out.

        RemoteRefused when a file cannot be read or a command fails; RemoteUnavailable when it takes too long.
        """
        now = self._clock.monotonic()
        held = None if self._held is None else self._held[1]
        if held is not None and held is not refused and now < self._fresh_until:
            return held
        if isinstance(self._connection.login, ExecPlugin) and now < self._asked_at + EXEC_PAUSE_SECONDS:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if held is not None:
                return held
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        # Whoever is cancelled leaves the others waiting for the same answer.
        return await asyncio.shield(self._asking)

    async def _ask(self) -> ClusterIdentity:
        try:
            proof = await self._prove()
            identity = self._identity(proof)
        except RemoteError as error:
            if self._held is not None and not isinstance(self._connection.login, ExecPlugin):
                # A file that is being replaced: what it said before may still do.
                proof, identity = self._held
            else:
                self._failure = error
                raise
        finally:
            self._asked_at = self._clock.monotonic()
        self._failure = None
        self._held = proof, identity
        self._fresh_until = self._asked_at + (inf if proof.seconds is None else proof.seconds)
        return identity

    def _asked(self, task: asyncio.Task[ClusterIdentity]) -> None:
        self._asking = None
        if not task.cancelled():
            # It is on record; when nobody waits for it any more, that is all right.
            task.exception()

    def _identity(self, proof: LoginResult) -> ClusterIdentity:
        """The one there is, when nothing has changed: whoever was refused sees that."""
        if self._held is not None:
            known, identity = self._held
            if (known.authorization, known.pair) == (proof.authorization, proof.pair):
                return identity
        if not self._is_secure:
            return ClusterIdentity({})
        return ClusterIdentity(_headers(self._connection, proof), self._tls_with(proof.pair))

    def _tls_with(self, pair: PemKeyPair | None) -> TlsOptions:
        """The one there is, when the certificate has not changed: a new token needs no new connections."""
        if self._held is not None:
            known, identity = self._held
            if known.pair == pair and identity.tls is not None:
                return identity.tls
        return TlsOptions(tls_context(self._connection, pair), self._connection.server_name)

    async def _prove(self) -> LoginResult:
        connection = self._connection
        if not self._is_secure:
            # As with kubectl: a token goes nowhere where others can read it.
            return LoginResult()
        match connection.login:
            case ExecPlugin() as login:
                return await run_exec_plugin(login, self._around)
            case NoLogin():
                authorization = None
            case BearerToken() as login:
                authorization = _authorization(login)
            case BasicAuth(username, password):
                authorization = f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
            case _:
                assert_never(connection.login)
        return LoginResult(
            authorization,
            _read_key_pair(connection.certificate),
            FILE_REREAD_SECONDS if _reads_files(connection) else None,
        )


def _authorization(login: BearerToken) -> str:
    try:
        text = login.token.read()
    except RemoteRefused:
        if login.otherwise is None:
            raise
        text = login.otherwise
    return bearer_header(text, login.token.path if isinstance(login.token, FileText) else "the kubeconfig")


def _read_key_pair(certificate: ClientCertificate | None) -> PemKeyPair | None:
    return None if certificate is None else PemKeyPair(certificate.certificate.read(), certificate.key.read())


def _reads_files(connection: ClusterConnection) -> bool:
    token = connection.login.token if isinstance(connection.login, BearerToken) else None
    certificate = connection.certificate
    pair = () if certificate is None else (certificate.certificate, certificate.key)
    return any(isinstance(one, FileText) for one in (token, *pair))


def _headers(connection: ClusterConnection, proof: LoginResult) -> Mapping[str, str]:
    headers: CIMultiDict[str] = CIMultiDict()
    if proof.authorization is not None:
        headers["Authorization"] = proof.authorization
    if not connection.compressed:
        headers["Accept-Encoding"] = "identity"
    if (other := connection.impersonation) is not None:
        headers["Impersonate-User"] = other.user
        if other.uid:
            headers["Impersonate-Uid"] = other.uid
        for group in other.groups:
            headers.add("Impersonate-Group", group)
        for name, values in other.extra:
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(name, safe=_HEADER_CHARACTERS)}", value)
    return headers
