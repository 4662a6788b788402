"""Credentials for an API server: an identity (headers, TLS context) that all requests share until it expires."""

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import field
from math import inf
from typing import Final, assert_never
from urllib.parse import quote

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.kubernetes.exec_plugin import (
    ExecEnvironment,
    LoginResult,
    PemKeyPair,
    bearer_header,
    run_exec_plugin,
)
from setpoint.clients.kubernetes.kubeconfig import (
    BasicAuth,
    BearerToken,
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    ExecPlugin,
    FileText,
    NoLogin,
    ServerTrust,
    SkipVerify,
    SystemRoots,
)
from setpoint.clients.transport.messages import Headers
from setpoint.clients.transport.opening import TlsOptions
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteError, RemoteRefused

# Files are read again: the tokens of pods are replaced.
FILE_REREAD_SECONDS: Final = 60.0
# An exec plugin is not run again for so long, neither after a failure nor after a 401.
EXEC_PAUSE_SECONDS: Final = 5.0
_HEADER_CHARACTERS: Final = "!#$&'*+-.^_`|~"


@dataclass(frozen=True, slots=True, eq=False)
class ClusterIdentity:
    """The authentication of a request: headers and client certificate. Compared by identity: see `refused`."""

    headers: Mapping[str, str] = field(repr=False)
    tls: TlsOptions | None = None


class KubeconfigCredentials:
    """Shares one identity between all requests. A renewal is shared, too, and goes on when a caller is cancelled."""

    def __init__(
        self,
        connection: ClusterConnection,
        environment: ExecEnvironment | None = None,
        clock: MonotonicClock | None = None,
    ) -> None:
        self._connection = connection
        self._is_secure = connection.server.startswith("https://")
        self._environment = environment or ExecEnvironment()
        self._clock = clock or EventLoopClock()
        self._held: tuple[LoginResult, ClusterIdentity] | None = None
        self._fresh_until = -inf
        self._failure: RemoteError | None = None
        self._renewed_at = -inf
        self._renewal: asyncio.Task[ClusterIdentity] | None = None

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        """The identity to send: not the one that was `refused`, unless there is no other.

        RemoteRefused when a file cannot be read or a command fails; RemoteUnavailable when it takes too long.
        """
        now = self._clock.monotonic()
        held = None if self._held is None else self._held[1]
        if held is not None and held is not refused and now < self._fresh_until:
            return held
        if isinstance(self._connection.login, ExecPlugin) and now < self._renewed_at + EXEC_PAUSE_SECONDS:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if held is not None:
                return held
        if self._renewal is None:
            self._renewal = asyncio.get_running_loop().create_task(self._renew())
            self._renewal.add_done_callback(self._renewal_done)
        # Shielded: other callers wait for the same renewal.
        return await asyncio.shield(self._renewal)

    async def _renew(self) -> ClusterIdentity:
        try:
            result = await self._log_in()
            identity = self._identity(result)
        except RemoteError as error:
            if self._held is not None and not isinstance(self._connection.login, ExecPlugin):
                # The file may be being replaced: the credentials from before may still be valid.
                result, identity = self._held
            else:
                self._failure = error
                raise
        finally:
            self._renewed_at = self._clock.monotonic()
        self._failure = None
        self._held = result, identity
        self._fresh_until = self._renewed_at + (inf if result.seconds is None else result.seconds)
        return identity

    def _renewal_done(self, task: asyncio.Task[ClusterIdentity]) -> None:
        self._renewal = None
        if not task.cancelled():
            # Retrieved, so that asyncio does not warn: `_failure` holds it.
            task.exception()

    def _identity(self, result: LoginResult) -> ClusterIdentity:
        """The held one, if nothing has changed: a caller that was refused recognises it."""
        if self._held is not None:
            known, identity = self._held
            if (known.authorization, known.pair) == (result.authorization, result.pair):
                return identity
        if not self._is_secure:
            return ClusterIdentity({})
        return ClusterIdentity(_headers(self._connection, result), self._tls_with(result.pair))

    def _tls_with(self, pair: PemKeyPair | None) -> TlsOptions:
        """The held ones, if the certificate has not changed: a new token needs no new connections."""
        if self._held is not None:
            known, identity = self._held
            if known.pair == pair and identity.tls is not None:
                return identity.tls
        return TlsOptions(tls_context(self._connection, pair), self._connection.server_name)

    async def _log_in(self) -> LoginResult:
        connection = self._connection
        if not self._is_secure:
            # As kubectl does: a token is never sent in the clear.
            return LoginResult()
        match connection.login:
            case ExecPlugin() as login:
                return await run_exec_plugin(login, self._environment)
            case NoLogin():
                authorization = None
            case BearerToken() as login:
                authorization = _authorization(login)
            case BasicAuth(username, password):
                authorization = f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
            case _:
                assert_never(connection.login)
        seconds = FILE_REREAD_SECONDS if _reads_files(connection) else None
        return LoginResult(authorization, _read_key_pair(connection.certificate), seconds)


def _authorization(login: BearerToken) -> str:
    try:
        text = login.token.read()
    except RemoteRefused:
        if login.fallback is None:
            raise
        text = login.fallback
    return bearer_header(text, login.token.path if isinstance(login.token, FileText) else "the kubeconfig")


def _read_key_pair(certificate: ClientCertificate | None) -> PemKeyPair | None:
    return None if certificate is None else PemKeyPair(certificate.certificate.read(), certificate.key.read())


def _reads_files(connection: ClusterConnection) -> bool:
    token = connection.login.token if isinstance(connection.login, BearerToken) else None
    certificate = connection.certificate
    pair = () if certificate is None else (certificate.certificate, certificate.key)
    return any(isinstance(one, FileText) for one in (token, *pair))


def _headers(connection: ClusterConnection, result: LoginResult) -> Mapping[str, str]:
    fields: list[tuple[str, str]] = []
    if result.authorization is not None:
        fields.append(("Authorization", result.authorization))
    if not connection.compressed:
        fields.append(("Accept-Encoding", "identity"))
    if (impersonated := connection.impersonation) is not None:
        fields.append(("Impersonate-User", impersonated.user))
        if impersonated.uid:
            fields.append(("Impersonate-Uid", impersonated.uid))
        fields += [("Impersonate-Group", group) for group in impersonated.groups]
        for name, values in impersonated.extra:
            extra = f"Impersonate-Extra-{quote(name, safe=_HEADER_CHARACTERS)}"
            fields += [(extra, value) for value in values]
    return Headers(fields)


# --- TLS --------------------------------------------------------------------------------------------------------------


def tls_context(connection: ClusterConnection, pair: PemKeyPair | None) -> ssl.SSLContext:
    """The TLS context of a connection with the client certificate `pair`; RemoteRefused when one of them is invalid."""
    try:
        context = _context_trusting(connection.trust)
    except (ssl.SSLError, ValueError) as error:
        raise RemoteRefused(
            f"{connection.name}: its certificate authority is no certificate in PEM: write it anew"
        ) from error
    # Since 3.13 Python is stricter than RFC 5280; the authorities of many clusters would fail. Go does not check it.
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
            # create_default_context would trust the roots of this machine if there were no certificate in it.
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
    # OpenSSL reads a certificate and its key from a file only; this one is private, and removed at once.
    handle, path = tempfile.mkstemp(prefix="setpoint-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{pair.certificate}\n{pair.key}\n")
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(path, password="")
    finally:
        os.unlink(path)
