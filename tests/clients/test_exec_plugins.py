"""Exec plugins: how they are run, and the credentials that they print."""

import asyncio
import json
import os
import select
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.kubernetes import exec_plugin
from setpoint.clients.kubernetes.exec_plugin import ExecEnvironment, LoginResult, PemKeyPair, run_exec_plugin
from setpoint.clients.kubernetes.kubeconfig import ExecPlugin, InteractiveMode
from setpoint.errors import RemoteRefused, RemoteUnavailable
from tests.clients.exec_plugins import V1, printing, running

ENVIRONMENT = ExecEnvironment(has_terminal=False, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def credential(**status: Any) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def run_plugin(plugin: ExecPlugin, environment: ExecEnvironment = ENVIRONMENT) -> LoginResult:
    return asyncio.run(run_exec_plugin(plugin, environment))


def refused(plugin: ExecPlugin) -> str:
    with pytest.raises(RemoteRefused) as caught:
        run_plugin(plugin)
    return str(caught.value).replace(plugin.command, "command")


@pytest.mark.parametrize(
    ("status", "result"),
    [
        ({"token": "t"}, LoginResult("Bearer t")),
        ({"clientCertificateData": "CERT", "clientKeyData": "KEY"}, LoginResult(None, PemKeyPair("CERT", "KEY"))),
        (
            {"token": "t", "clientCertificateData": "CERT", "clientKeyData": "KEY"},
            LoginResult("Bearer t", PemKeyPair("CERT", "KEY")),
        ),
        # With a margin before it expires.
        ({"token": "t", "expirationTimestamp": "2026-01-01T00:05:00Z"}, LoginResult("Bearer t", None, 290.0)),
        ({"token": "t", "expirationTimestamp": None}, LoginResult("Bearer t")),
    ],
)
def test_the_printed_credentials_are_used(status: dict[str, Any], result: LoginResult, tmp_path: Path) -> None:
    assert run_plugin(printing(tmp_path, credential(**status))) == result


PRINTS_ITS_ENVIRONMENT = """
import json, os, sys
seen = json.dumps([os.environ["KUBERNETES_EXEC_INFO"], os.environ["A"], os.environ["B"], sys.argv[1:]])
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": seen.encode().hex()}}))
"""


def test_the_plugin_gets_its_environment_and_exec_info_without_a_shell() -> None:
    plugin = running(
        PRINTS_ITS_ENVIRONMENT, "$HOME; rm *", env=(("B", "from the user"),), cluster={"server": "https://a"}
    )

    result = run_plugin(
        plugin, ExecEnvironment({**os.environ, "A": "from the process", "B": "from the process"}, has_terminal=False)
    )

    assert result.authorization is not None
    info, a, b, arguments = json.loads(bytes.fromhex(result.authorization.removeprefix("Bearer ")))
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"cluster": {"server": "https://a"}, "interactive": False},
    }
    assert (a, b, arguments) == ("from the process", "from the user", ["$HOME; rm *"])


def test_without_a_terminal_a_plugin_is_not_interactive() -> None:
    asks = "import sys; sys.exit(sys.stdin.read() or 'no input')"

    assert refused(running(asks, interactive=InteractiveMode.IF_AVAILABLE)) == (
        "command cannot log in: it ends with 1 and says: no input"
    )


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (
            "hunter2",
            "command logs in, and prints no ExecCredential: JSON is malformed: invalid character (byte 0): update it",
        ),
        (
            '{"status": {"token": 7}}',
            "command logs in, and prints no ExecCredential: Expected `str`, got `int` - at `$.status.token`: update it",
        ),
        (
            '{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "hunter2"}}',
            f"command prints 'client.authentication.k8s.io/v1beta1' where the kubeconfig says {V1}: "
            "write the one that the command prints",
        ),
        (
            credential(token=""),
            "command prints neither a token nor a certificate: see whether you are logged in",
        ),
        (
            json.dumps({"apiVersion": V1}),
            "command prints neither a token nor a certificate: see whether you are logged in",
        ),
        (
            credential(token="hunter2\r\nX-Evil: yes"),
            "the token of command is none: it is empty, or has spaces in it; write it anew",
        ),
        (
            credential(token="hunter2", clientKeyData="hunter2"),
            "command prints a certificate or a key, and not both: update it",
        ),
    ],
)
def test_invalid_output_is_reported_without_being_shown(printed: str, message: str, tmp_path: Path) -> None:
    assert refused(printing(tmp_path, printed)) == message


def test_the_stderr_of_a_failed_plugin_is_in_the_error() -> None:
    fails = "import sys; print('hunter2'); sys.exit('please\\n  log in')"

    assert refused(running(fails)) == "command cannot log in: it ends with 1 and says: please log in"


def test_the_install_hint_of_a_missing_plugin_is_in_the_error() -> None:
    plugin = ExecPlugin("no-such-command", interactive=InteractiveMode.NEVER, install_hint="run\n  apt install it")

    assert refused(plugin) == (
        "cannot run command, which logs in: No such file or directory: install it (run apt install it)"
    )


def test_a_plugin_that_needs_a_terminal_is_not_run_without_one() -> None:
    assert refused(running("", interactive=InteractiveMode.ALWAYS)) == (
        "command logs in at a terminal only, and there is none: log in with another user of the kubeconfig"
    )


def test_a_plugin_that_times_out_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {shlex.quote(str(tmp_path / 'child'))}; wait"
    plugin = ExecPlugin("sh", ("-c", script), interactive=InteractiveMode.NEVER)
    monkeypatch.setattr(exec_plugin, "LOGIN_TIMEOUT", 0.5)

    with pytest.raises(RemoteUnavailable) as caught:
        run_plugin(plugin)

    assert str(caught.value) == "sh logs in, and takes longer than 0.5 s: run it by hand"
    assert _is_gone(int((tmp_path / "child").read_text()))


def test_a_plugin_whose_caller_is_cancelled_is_killed(tmp_path: Path) -> None:
    async def main() -> int:
        file = tmp_path / "pid"
        script = f"import os, pathlib, time; pathlib.Path({str(file)!r}).write_text(str(os.getpid())); time.sleep(60)"
        waiting = asyncio.create_task(run_exec_plugin(running(script), ENVIRONMENT))
        while not (file.exists() and file.read_text()):
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return int(file.read_text())

    assert _is_gone(asyncio.run(main()))


def _is_gone(pid: int) -> bool:
    """Now, or soon: the process may take a moment to end."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([handle], [], [], 10)
    os.close(handle)
    return bool(ended)
