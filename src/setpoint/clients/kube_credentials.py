"""Who we are to a cluster: found out once for all who ask, and again when it is no longer true."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, assert_never
from urllib.parse import quote

from multidict import CIMultiDict

from setpoint.clients.clock import Clock, LoopClock
from setpoint.clients.http import Tls
from setpoint.clients.kube_connection import Bearer, Certificate, Connection, Exec, File, Nobody, Password
from setpoint.clients.kube_exec import Proof, Surroundings, bearer, log_in
from setpoint.clients.kube_tls import Pair, context_for
from setpoint.errors import RemoteError, RemoteRefused

# A file may be another one by then: the tokens of pods are.
REREAD: Final = 60.0
# What a command has just said is not asked for again: neither when it failed, nor when the server does not take it.
PAUSE: Final = 5.0
# What the name of a header may hold.
_HEADER: Final = "!#$&'*+-.^_`|~"


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """What a request brings along to show who we are. One that was refused is told apart by being the same object."""

    headers: Mapping[str, str] = field(repr=False)
    tls: Tls | None = None


class KubeCredentials:
    """Many may ask at once: one of them finds out, and the others wait for it."""

    def __init__(self, connection: Connection, around: Surroundings | None = None, clock: Clock | None = None) -> None:
        self._connection = connection
        self._is_secure = connection.server.startswith("https://")
        self._around = around or Surroundings()
        self._clock = clock or LoopClock()
        self._held: tuple[Proof, Identity] | None = None
        self._fresh_until = -inf
        self._failure: RemoteError | None = None
        self._asked_at = -inf
        self._asking: asyncio.Task[Identity] | None = None

    async def identity(self, refused: Identity | None = None) -> Identity:
        """Who we are, and another than the server `refused`; the same when nothing else can be found out.

        RemoteRefused when a file cannot be read or a command fails; RemoteUnavailable when it takes too long.
        """
        now = self._clock.monotonic()
        held = None if self._held is None else self._held[1]
        if held is not None and held is not refused and now < self._fresh_until:
            return held
        if isinstance(self._connection.login, Exec) and now < self._asked_at + PAUSE:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if held is not None:
                return held
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        # Whoever is cancelled leaves the others waiting for the same answer.
        return await asyncio.shield(self._asking)

    async def _ask(self) -> Identity:
        try:
            proof = await self._prove()
            identity = self._identity(proof)
        except RemoteError as error:
            if self._held is not None and not isinstance(self._connection.login, Exec):
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

    def _asked(self, task: asyncio.Task[Identity]) -> None:
        self._asking = None
        if not task.cancelled():
            # It is on record; when nobody waits for it any more, that is all right.
            task.exception()

    def _identity(self, proof: Proof) -> Identity:
        """The one there is, when nothing has changed: whoever was refused sees that."""
        if self._held is not None:
            known, identity = self._held
            if (known.authorization, known.pair) == (proof.authorization, proof.pair):
                return identity
        if not self._is_secure:
            return Identity({})
        return Identity(_headers(self._connection, proof), self._tls_with(proof.pair))

    def _tls_with(self, pair: Pair | None) -> Tls:
        """The one there is, when the certificate has not changed: a new token needs no new connections."""
        if self._held is not None:
            known, identity = self._held
            if known.pair == pair and identity.tls is not None:
                return identity.tls
        return Tls(context_for(self._connection, pair), self._connection.server_name)

    async def _prove(self) -> Proof:
        connection = self._connection
        if not self._is_secure:
            # As with kubectl: a token goes nowhere where others can read it.
            return Proof()
        match connection.login:
            case Exec() as login:
                return await log_in(login, self._around)
            case Nobody():
                authorization = None
            case Bearer() as login:
                authorization = _authorization(login)
            case Password(username, password):
                authorization = f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
            case _:
                assert_never(connection.login)
        return Proof(authorization, _pair(connection.certificate), REREAD if _is_in_files(connection) else None)


def _authorization(login: Bearer) -> str:
    try:
        text = login.token.read()
    except RemoteRefused:
        if login.otherwise is None:
            raise
        text = login.otherwise
    return bearer(text, login.token.path if isinstance(login.token, File) else "the kubeconfig")


def _pair(certificate: Certificate | None) -> Pair | None:
    return None if certificate is None else Pair(certificate.certificate.read(), certificate.key.read())


def _is_in_files(connection: Connection) -> bool:
    token = connection.login.token if isinstance(connection.login, Bearer) else None
    certificate = connection.certificate
    pair = () if certificate is None else (certificate.certificate, certificate.key)
    return any(isinstance(one, File) for one in (token, *pair))


def _headers(connection: Connection, proof: Proof) -> Mapping[str, str]:
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
                headers.add(f"Impersonate-Extra-{quote(name, safe=_HEADER)}", value)
    return headers
