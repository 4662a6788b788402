"""`setpoint run` as a process: start, reconciling, health and metrics, shutdown."""

import re
import signal
import stat
from pathlib import Path
from urllib.request import urlopen

import pytest

from setpoint.localcloud.faults import AddLatency
from tests.cli.programs import Piped
from tests.cli.workspace import Workspace, bucket, database

LOGS = "/storage/v1/b/logs"


def _socket(workspace: Workspace) -> Path:
    return workspace.folder / ".setpoint" / "state.db.sock"


def _daemon_in_a_step(workspace: Workspace, *options: str) -> Piped:
    """A process in the middle of a step: the request for a bucket was sent, and has no response."""
    daemon = workspace.daemon(*options)
    workspace.hold_operations()
    workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    workspace.write(bucket("logs"))
    workspace.piped("apply", "-f", "manifest.yaml")
    watching = workspace.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon


def _logged(program: Piped, *events: str) -> bool:
    return all(f'"event":"{event}"' in program.text for event in events)


# --- Shutdown ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_starts_a_graceful_shutdown(workspace: Workspace, number: signal.Signals) -> None:
    daemon = workspace.daemon()

    daemon.send(number)

    assert daemon.end() == 0
    assert _logged(daemon, "stopping", "ended")
    assert not _socket(workspace).exists()


def test_after_the_shutdown_another_process_may_write_to_the_store(workspace: Workspace) -> None:
    daemon = workspace.daemon()
    daemon.send(signal.SIGTERM)
    daemon.end()
    workspace.write(bucket("logs"))

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\ncreated 1\n")


def test_running_steps_are_finished_before_the_shutdown(workspace: Workspace) -> None:
    daemon = _daemon_in_a_step(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: re.search('"event":"stopping".*"in_work":1', daemon.text))
    workspace.release()

    assert daemon.end() == 0
    assert "UpToDate" in workspace.run("get").stdout


def test_steps_that_exceed_the_grace_period_are_cancelled(workspace: Workspace) -> None:
    daemon = _daemon_in_a_step(workspace, "--grace", "10ms")

    daemon.send(signal.SIGTERM)

    assert daemon.end() == 0
    assert _logged(daemon, "steps were cut short", "ended")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_the_process_at_once(workspace: Workspace, number: signal.Signals, code: int) -> None:
    daemon = _daemon_in_a_step(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: _logged(daemon, "stopping"))
    daemon.send(number)

    assert daemon.end() == code
    assert not _socket(workspace).exists()


@pytest.mark.parametrize("options", [("--grace", "10ms"), ()])
def test_the_next_process_continues_a_cancelled_step(workspace: Workspace, options: tuple[str, ...]) -> None:
    daemon = _daemon_in_a_step(workspace, *options)
    daemon.send(signal.SIGTERM if options else signal.SIGKILL)
    daemon.end()
    workspace.release()

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 0
    assert workspace.in_cloud(lambda cloud: cloud.call("GET", LOGS).status) == 200


def test_the_next_process_removes_the_socket_of_a_killed_one(workspace: Workspace) -> None:
    killed = workspace.daemon()
    killed.send(signal.SIGKILL)
    killed.end()
    left = _socket(workspace).exists()

    workspace.daemon()

    assert left
    assert stat.S_IMODE(_socket(workspace).stat().st_mode) == 0o600
    workspace.write(bucket("logs"))
    assert workspace.run_in_process("apply") == (0, ["StorageBucket default/logs created", "created 1"])


# --- At work ----------------------------------------------------------------------------------------------------------


def test_resources_declared_before_the_start_are_reconciled_at_the_start(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))
    watching = workspace.piped("get", "-w", "-o", "json")

    workspace.daemon()

    watching.until(lambda: "the start of the process" in watching.text)
    assert "website" not in workspace.in_cloud(lambda cloud: str(cloud.call("GET", LOGS).body))


def test_only_the_kinds_that_are_named_are_handled(workspace: Workspace) -> None:
    workspace.daemon("--kinds", "storagebuckets")
    workspace.write(bucket("logs"), database("app", "{external: main}"))

    refused = workspace.run("apply", "-f", "manifest.yaml")
    workspace.write(bucket("logs"))

    assert refused.returncode == 1
    assert re.search(
        r"error: SQLDatabase default/app: the running process \d+ handles only StorageBucket; "
        "stop it, or start it with --kinds SQLDatabase as well",
        refused.stderr,
    )
    assert workspace.run_in_process("apply") == (0, ["StorageBucket default/logs created", "created 1"])


def test_health_and_metrics_can_be_read(workspace: Workspace) -> None:
    daemon = workspace.daemon("--metrics", "127.0.0.1:0")
    found = re.search(r'"address":"(http://127.0.0.1:\d+)"', daemon.text)
    assert found is not None

    pages = {page: urlopen(f"{found[1]}/{page}").read().decode() for page in ("healthz", "readyz", "metrics")}

    assert (pages["healthz"], pages["readyz"]) == ("ok\n", "ok\n")
    assert 'setpoint_resources{kind="StorageBucket",ready="true"}' in pages["metrics"]


def test_the_log_can_be_in_human_readable_form(workspace: Workspace) -> None:
    terminal = workspace.terminal("run", "--kinds", "StorageBucket")

    terminal.until_shown("INFO    running resources=0 kinds=1")


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kinds", "StorageBuckt"), "--kinds: no kind 'StorageBuckt' is known here; did you mean StorageBucket?"),
        (("--kinds", "Pod"), "--kinds: no kind 'Pod' is known here; `setpoint kinds` lists"),
        (("--metrics", "8080"), "'8080' is no address to listen on"),
        (("--grace", "soon"), "--grace: 'soon' is no duration above 0"),
        (("--shards", "2"), "--shards 2: one process at a time writes to this store, and handles every resource;"),
        (("--identity", "a b"), "--identity 'a b': write at most 100 letters, digits, -, . and _, a letter or digit"),
        (("--live",), "--live draws on a terminal, and this is none: leave it out, and read the log instead"),
    ],
)
def test_an_invalid_option_is_a_one_line_error(workspace: Workspace, options: tuple[str, ...], message: str) -> None:
    ended = workspace.run("run", *options)

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {message}")
    assert ended.stderr.count("\n") == 1


def test_a_second_process_for_a_store_is_refused(workspace: Workspace) -> None:
    workspace.daemon()

    second = workspace.run("run")

    assert second.returncode == 1
    assert re.fullmatch(r"error: \S+/state\.db is in use by process \d+: wait for it or .*\n", second.stderr)
    workspace.write(bucket("logs"))
    assert workspace.run_in_process("apply") == (0, ["StorageBucket default/logs created", "created 1"])


# --- On a terminal ----------------------------------------------------------------------------------------------------


def test_the_live_screen_shows_resources_and_failures_with_their_reason(workspace: Workspace) -> None:
    terminal = workspace.terminal("run", "--live", "--kinds", "StorageBucket,SQLDatabase")
    terminal.until_shown("setpoint run  running", "StorageBucket  0      0", "IN WORK      nothing")
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    workspace.run_in_process("apply")

    terminal.until_shown(
        "KIND           READY  NOT READY  DELETING",
        "SQLDatabase    0      1          0",
        "StorageBucket  1      0          0",
        "SQLDatabase default/app  DependencyNotFound  reference SQLInstance default/main is not found",
        "StorageBucket default/logs  Created",
        "SERVICE      storage:",
        "COOKIE HITS",
    )


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_a_key_ends_the_live_screen_and_restores_the_terminal(workspace: Workspace, key: bytes) -> None:
    terminal = workspace.terminal("run", "--live")
    terminal.until_shown("setpoint run  running")
    was_alternate = terminal.screen.is_alternate

    terminal.press(key)

    assert terminal.end() == 0
    assert was_alternate
    assert not terminal.screen.is_alternate
    assert not terminal.screen.is_cursor_hidden
    assert "ended" in terminal.lines[-1]


def test_a_small_screen_shows_the_upper_part(workspace: Workspace) -> None:
    workspace.apply(*(bucket(f"logs-{number}") for number in range(10)))
    terminal = workspace.terminal("run", "--live", "--kinds", "StorageBucket", size=(40, 8))

    terminal.until_shown("setpoint run  running", "StorageBucket  10")

    assert len(terminal.lines) <= 8
