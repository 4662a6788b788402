"""Exec plugins: commands of a kubeconfig that print credentials (client.authentication.k8s.io ExecCredential)."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.kubernetes.kubeconfig import ExecPlugin, InteractiveMode
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteRefused, RemoteUnavailable

EXEC_INFO_VARIABLE: Final = "KUBERNETES_EXEC_INFO"
# A user at a terminal needs time to find a browser and a password.
LOGIN_TIMEOUT, TERMINAL_LOGIN_TIMEOUT = 60.0, 300.0
# Credentials that expire sooner are not used: the request has to arrive in time.
_MARGIN: Final = 10.0
_MAX_STDERR: Final = 500


@dataclass(frozen=True, slots=True)
class PemKeyPair:
    """A client certificate with its chain, and its key: both in PEM."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginResult:
    """An Authorization header, a client certificate, or both. Valid for `seconds`; without them, until refused."""

    authorization: str | None = field(default=None, repr=False)
    pair: PemKeyPair | None = field(default=None, repr=False)
    seconds: float | None = None


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
class ExecEnvironment:
    """The environment of an exec plugin: variables, whether there is a terminal, and the time."""

    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    has_terminal: bool = field(default_factory=lambda: sys.stdin is not None and sys.stdin.isatty())
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def bearer_header(text: str, where: object) -> str:
    """The Authorization header for a token; RemoteRefused when `text` is not one. `where` names its source."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise RemoteRefused(f"the token of {where} is none: it is empty, or has spaces in it; write it anew")
    return f"Bearer {token}"


async def run_exec_plugin(plugin: ExecPlugin, environment: ExecEnvironment) -> LoginResult:
    """The credentials that an exec plugin prints; RemoteRefused when it fails, RemoteUnavailable when it does not end.

    Errors contain its stderr, and never its stdout.
    """
    if plugin.interactive is InteractiveMode.ALWAYS and not environment.has_terminal:
        raise RemoteRefused(
            f"{plugin.command} logs in at a terminal only, and there is none: "
            "log in with another user of the kubeconfig"
        )
    stdout = await _run(plugin, environment)
    try:
        found = _decoder.decode(stdout)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteRefused(f"{plugin.command} logs in, and prints no ExecCredential: {error}: update it") from error
    if found.api_version != plugin.api_version:
        raise RemoteRefused(
            f"{plugin.command} prints {found.api_version!r} where the kubeconfig says {plugin.api_version}: "
            "write the one that the command prints"
        )
    return _login_result(plugin, found.status or _Status(), environment.now())


def _login_result(plugin: ExecPlugin, status: _Status, now: datetime) -> LoginResult:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise RemoteRefused(f"{plugin.command} prints a certificate or a key, and not both: update it")
    if not status.token and not certificate:
        raise RemoteRefused(f"{plugin.command} prints neither a token nor a certificate: see whether you are logged in")
    seconds = None
    if (until := status.expiration_timestamp) is not None:
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds() - _MARGIN
    authorization = bearer_header(status.token, plugin.command) if status.token else None
    return LoginResult(authorization, PemKeyPair(certificate, key) if certificate else None, seconds)


async def _run(plugin: ExecPlugin, environment: ExecEnvironment) -> bytes:
    """The stdout of the command."""
    interactive = environment.has_terminal and plugin.interactive is not InteractiveMode.NEVER
    process = await _start(plugin, environment, interactive=interactive)
    limit = TERMINAL_LOGIN_TIMEOUT if interactive else LOGIN_TIMEOUT
    try:
        async with asyncio.timeout(limit):
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise RemoteUnavailable(
            f"{plugin.command} logs in, and takes longer than {limit:g} s: run it by hand"
        ) from error
    finally:
        await _kill(process, is_leader=not interactive)
    if process.returncode:
        words = " ".join((stderr or b"").decode(errors="replace").split())[:_MAX_STDERR]
        raise RemoteRefused(
            f"{plugin.command} cannot log in: it ends with {process.returncode} and says: {words or 'nothing'}"
        )
    return stdout


async def _start(plugin: ExecPlugin, environment: ExecEnvironment, *, interactive: bool) -> asyncio.subprocess.Process:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    info = _exec_info(plugin, interactive=interactive)
    variables = {**environment.variables, **dict(plugin.env), EXEC_INFO_VARIABLE: info}
    # Imported on use: most users have no such plugin.
    from setpoint.clients.write_guard import exempt_from_guard

    try:
        with exempt_from_guard():
            return await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env=variables,
                stdin=None if interactive else nothing,
                stdout=pipe,
                # The user at the terminal has to see the prompts.
                stderr=None if interactive else pipe,
                start_new_session=not interactive,
            )
    except ValueError as error:
        # A null character, which no argument and no variable can have; or a variable whose name has "=" in it.
        raise RemoteRefused(f"cannot run {plugin.command!r}, which logs in: {error}: write it anew") from error
    except OSError as error:
        hint = " ".join(plugin.install_hint.split()) or "the kubeconfig does not say how"
        raise RemoteRefused(
            f"cannot run {plugin.command}, which logs in: {error.strerror}: install it ({hint})"
        ) from error


async def _kill(process: asyncio.subprocess.Process, *, is_leader: bool) -> None:
    """Kills the command, if it has not ended by itself."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if is_leader:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()


def _exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    cluster = {} if plugin.cluster is None else {"cluster": plugin.cluster}
    spec = {**cluster, "interactive": interactive}
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()
