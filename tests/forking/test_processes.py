"""A forked command behaves as a started one: streams, exit codes, signals, session, and its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.children import GONE, Child, kill_starter, state
from tests.cluster.polling import until
from tests.forking.processes import SETPOINT, Start, is_forked, launched_now, run, write_launcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the sockets that a fork server needs")
TIMEOUT = 120.0


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(folder), "PYTHONUTF8": "1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("version",),
        ("get",),
        ("run", "--help"),
        ("plan", "-f", "nowhere.yaml"),
        ("get", "Nothing/a"),
        ("no-such-command",),
    ],
    ids=" ".join,
)
def test_a_forked_command_has_the_output_and_exit_code_of_a_started_one(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    start = Start((SETPOINT, *arguments), tmp_path, _environment(tmp_path))
    usual = subprocess.run(
        start.command, cwd=tmp_path, env=start.environment, capture_output=True, encoding="utf-8", check=False
    )
    forked = run(start, TIMEOUT)

    assert is_forked(start)
    assert (forked.returncode, forked.stdout, forked.stderr) == (usual.returncode, usual.stdout, usual.stderr)


@pytest.mark.parametrize(
    ("command", "more"), [("/bin/true", {}), (SETPOINT, {"PYTHONOPTIMIZE": "1"}), (SETPOINT, {"PYTHONUTF8": "0"})]
)
def test_a_command_that_needs_another_interpreter_is_not_forked(
    command: str, more: dict[str, str], tmp_path: Path
) -> None:
    assert not is_forked(Start((command,), tmp_path, _environment(tmp_path) | more))


def _running(folder: Path) -> Child:
    child = Child((SETPOINT, "run", "--log-format", "json"), folder / "log", folder, _environment(folder))
    child.start()
    until(lambda: '"event":"running"' in child.tail())
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_forked_command_receives_signals(number: signal.Signals, tmp_path: Path) -> None:
    child = _running(tmp_path)
    assert child.pid is not None
    os.kill(child.pid, number)
    until(lambda: child.code is not None)

    assert child.code == 0, child.tail()


def test_a_forked_command_can_be_killed(tmp_path: Path) -> None:
    child = _running(tmp_path)
    pid = child.pid
    assert pid is not None
    child.kill()

    assert (child.code, state(pid)) == (-signal.SIGKILL, "")


def test_a_forked_command_leads_its_own_session(tmp_path: Path) -> None:
    child = _running(tmp_path)
    pid = child.pid
    assert pid is not None
    session, is_launched = os.getsid(pid), str(pid) in launched_now()
    child.kill()

    assert (session, is_launched) == (pid, False)


def test_a_launcher_behaves_as_the_program(tmp_path: Path) -> None:
    launcher = tmp_path / "setpoint"
    write_launcher(launcher, SETPOINT, "get")
    environment = _environment(tmp_path)
    shown = subprocess.run([launcher], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    refused = subprocess.run(
        [launcher, "Nothing/a"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert (shown.returncode, shown.stdout.split()[:3]) == (0, ["KIND", "NAMESPACE", "NAME"])
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Nothing" in refused.stderr


def test_a_launched_command_is_killed_with_its_launcher(tmp_path: Path) -> None:
    launcher = tmp_path / "setpoint"
    write_launcher(launcher, SETPOINT, "run", "--log-format", "json")
    child = Child((str(launcher),), tmp_path / "log", tmp_path, _environment(tmp_path))
    # Commands that other tests of this process launched may still be ending.
    until(lambda: launched_now() == [])
    child.start()
    try:
        until(lambda: '"event":"running"' in child.tail())
        (launched,) = map(int, launched_now())
    finally:
        child.kill()

    until(lambda: state(launched) in GONE)
    # The server notices a moment later.
    until(lambda: launched_now() == [])


_STARTS_A_COMMAND = """
import os, sys
from pathlib import Path
from tests.forking.processes import SETPOINT, Start, fork
folder = Path(sys.argv[1])
environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONUTF8": "1"}
started = fork(Start((SETPOINT, "run"), folder, environment))
print(started.pid, flush=True)
sys.stdin.read()
"""


def test_a_forked_command_ends_with_the_tests_even_after_kill_9(tmp_path: Path) -> None:
    pid, before = kill_starter(_STARTS_A_COMMAND, tmp_path)
    until(lambda: state(pid) in GONE)

    assert before not in GONE
