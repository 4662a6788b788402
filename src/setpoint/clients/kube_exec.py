"""Commands that log in to a cluster, and print who we are: the exec plugins of a kubeconfig."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.kube_connection import Exec, Interactive
from setpoint.clients.kube_tls import Pair
from setpoint.clients.seal import trusted
from setpoint.errors import RemoteRefused, RemoteUnavailable

INFO: Final = "KUBERNETES_EXEC_INFO"
# Somebody at a terminal has to find a browser, and a password.
SECONDS, SECONDS_AT_A_TERMINAL = 60.0, 300.0
# What is about to expire is not used any more: the call has to get there.
_MARGIN: Final = 10.0
_LONGEST_WORDS: Final = 500


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
class Proof:
    """What shows who we are: a header, a certificate, or both. It holds for `seconds`; without them, until refused."""

    authorization: str | None = field(default=None, repr=False)
    pair: Pair | None = field(default=None, repr=False)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command finds around it: variables, maybe a terminal with somebody at it, and the time."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    has_terminal: bool = field(default_factory=lambda: sys.stdin is not None and sys.stdin.isatty())
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def bearer(text: str, where: object) -> str:
    """The header for the token in `text`; RemoteRefused when that is none. `where` is whose it is."""
    token = text.strip()
    if not token or not token.isascii() or len(token.split()) > 1:
        raise RemoteRefused(f"the token of {where} is none: it is empty, or has spaces in it; write it anew")
    return f"Bearer {token}"


async def log_in(login: Exec, around: Surroundings) -> Proof:
    """What the command prints; RemoteRefused when it fails or prints something else, RemoteUnavailable without an end.

    Nothing that it prints is ever part of an error, but what it says on stderr is.
    """
    if login.interactive is Interactive.ALWAYS and not around.has_terminal:
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
    return _proof(login, found.status or _Status(), around.now())


def _proof(login: Exec, status: _Status, now: datetime) -> Proof:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise RemoteRefused(f"{login.command} prints a certificate or a key, and not both: update it")
    if not status.token and not certificate:
        raise RemoteRefused(f"{login.command} prints neither a token nor a certificate: see whether you are logged in")
    seconds = None
    if (until := status.expiration_timestamp) is not None:
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds() - _MARGIN
    authorization = bearer(status.token, login.command) if status.token else None
    return Proof(authorization, Pair(certificate, key) if certificate else None, seconds)


async def _run(login: Exec, around: Surroundings) -> bytes:
    """What the command prints when all is well."""
    asks = around.has_terminal and login.interactive is not Interactive.NEVER
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
        await _end(process, is_leader=not asks)
    if process.returncode:
        words = " ".join((said or b"").decode(errors="replace").split())[:_LONGEST_WORDS]
        raise RemoteRefused(
            f"{login.command} cannot log in: it ends with {process.returncode} and says: {words or 'nothing'}"
        )
    return printed


async def _start(login: Exec, around: Surroundings, *, asks: bool) -> asyncio.subprocess.Process:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environment = {**around.environment, **dict(login.env), INFO: _info(login, asks=asks)}
    try:
        with trusted():
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


async def _end(process: asyncio.subprocess.Process, *, is_leader: bool) -> None:
    """Nothing of the command is left: it has ended, or nobody waits for it any more."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if is_leader:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()


def _info(login: Exec, *, asks: bool) -> str:
    spec = {"interactive": asks} if login.cluster is None else {"cluster": login.cluster, "interactive": asks}
    told = {"apiVersion": login.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(told).decode()
