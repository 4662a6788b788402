"""`setpoint run` as a process: how it starts, what it answers, and how it ends."""

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


def _processing(workspace: Workspace, *options: str) -> Piped:
    """A process in the middle of a step: the service has been asked for a bucket, and has not answered."""
    daemon = workspace.daemon(*options)
    workspace.stop_time()
    workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    workspace.write(bucket("logs"))
    workspace.piped("apply", "-f", "manifest.yaml")
    watching = workspace.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon


def _said(program: Piped, *events: str) -> bool:
    return all(f'"event":"{event}"' in program.text for event in events)


# --- The end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(workspace: Workspace, number: signal.Signals) -> None:
    daemon = workspace.daemon()

    daemon.send(number)

    assert daemon.end() == 0
    assert _said(daemon, "stopping", "ended")
    assert not _socket(workspace).exists()


def test_the_next_one_may_write_after_the_end(workspace: Workspace) -> None:
    daemon = workspace.daemon()
    daemon.send(signal.SIGTERM)
    daemon.end()
    workspace.write(bucket("logs"))

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\n")


def test_what_is_in_work_is_finished_first(workspace: Workspace) -> None:
    daemon = _processing(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: re.search('"event":"stopping".*"in_work":1', daemon.text))
    workspace.go_on()

    assert daemon.end() == 0
    assert "UpToDate" in workspace.run("get").stdout


def test_what_is_still_in_work_after_the_time_of_grace_is_cut_short(workspace: Workspace) -> None:
    daemon = _processing(workspace, "--grace", "10ms")

    daemon.send(signal.SIGTERM)

    assert daemon.end() == 0
    assert _said(daemon, "steps were cut short", "ended")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once(workspace: Workspace, number: signal.Signals, code: int) -> None:
    daemon = _processing(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: _said(daemon, "stopping"))
    daemon.send(number)

    assert daemon.end() == code
    assert not _socket(workspace).exists()


@pytest.mark.parametrize("options", [("--grace", "10ms"), ()])
def test_what_was_cut_short_is_taken_up_by_the_next(workspace: Workspace, options: tuple[str, ...]) -> None:
    daemon = _processing(workspace, *options)
    daemon.send(signal.SIGTERM if options else signal.SIGKILL)
    daemon.end()
    workspace.go_on()

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 0
    assert workspace.in_cloud(lambda cloud: cloud.call("GET", LOGS).status) == 200


def test_the_next_one_clears_up_after_one_that_was_killed(workspace: Workspace) -> None:
    killed = workspace.daemon()
    killed.send(signal.SIGKILL)
    killed.end()
    left = _socket(workspace).exists()

    workspace.daemon()

    assert left
    assert stat.S_IMODE(_socket(workspace).stat().st_mode) == 0o600
    workspace.write(bucket("logs"))
    assert workspace.said("apply") == (0, ["StorageBucket default/logs created"])


# --- What it does ----------------------------------------------------------------------------------------------------


def test_what_was_declared_before_is_looked_at_when_it_starts(workspace: Workspace) -> None:
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
    assert workspace.said("apply") == (0, ["StorageBucket default/logs created"])


def test_health_and_metrics_can_be_read(workspace: Workspace) -> None:
    daemon = workspace.daemon("--metrics", "127.0.0.1:0")
    found = re.search(r'"address":"(http://127.0.0.1:\d+)"', daemon.text)
    assert found is not None

    pages = {page: urlopen(f"{found[1]}/{page}").read().decode() for page in ("healthz", "readyz", "metrics")}

    assert (pages["healthz"], pages["readyz"]) == ("ok\n", "ok\n")
    assert 'setpoint_resources{kind="StorageBucket",ready="true"}' in pages["metrics"]


def test_the_log_can_be_for_people(workspace: Workspace) -> None:
    terminal = workspace.terminal("run", "--kinds", "StorageBucket")

    terminal.until_shown("INFO    running resources=0 kinds=1")


# --- What is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kinds", "StorageBuckt"), "--kinds: no kind 'StorageBuckt' is known here; did you mean StorageBucket?"),
        (("--kinds", "Pod"), "--kinds: no kind 'Pod' is known here; there is "),
        (("--metrics", "8080"), "'8080' is no address to listen on"),
        (("--grace", "soon"), "'soon' is no duration above 0"),
        (("--shards", "2"), "--shards 2: one process at a time writes to this store, and handles every resource;"),
        (("--identity", "a b"), "--identity 'a b': write at most 100 letters, digits, -, . and _, a letter or digit"),
        (("--live",), "--live draws on a terminal, and this is none: leave it out, and read the log instead"),
    ],
)
def test_an_option_that_cannot_be_is_one_line(workspace: Workspace, options: tuple[str, ...], told: str) -> None:
    ended = workspace.run("run", *options)

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {told}")
    assert ended.stderr.count("\n") == 1


def test_there_is_one_process_for_a_store(workspace: Workspace) -> None:
    workspace.daemon()

    second = workspace.run("run")

    assert second.returncode == 1
    assert re.fullmatch(r"error: \S+/state\.db is in use by process \d+: wait for it or .*\n", second.stderr)
    workspace.write(bucket("logs"))
    assert workspace.said("apply") == (0, ["StorageBucket default/logs created"])


# --- On a terminal ---------------------------------------------------------------------------------------------------


def test_the_live_view_shows_what_there_is_and_what_fails_and_why(workspace: Workspace) -> None:
    terminal = workspace.terminal("run", "--live", "--kinds", "StorageBucket,SQLDatabase")
    terminal.until_shown("setpoint run  running", "StorageBucket  0      0", "IN WORK      nothing")
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    workspace.said("apply")

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
def test_a_key_ends_the_live_view_and_leaves_the_terminal_as_it_was(workspace: Workspace, key: bytes) -> None:
    terminal = workspace.terminal("run", "--live")
    terminal.until_shown("setpoint run  running")
    was_borrowed = terminal.screen.is_borrowed

    terminal.press(key)

    assert terminal.end() == 0
    assert was_borrowed
    assert not terminal.screen.is_borrowed
    assert not terminal.screen.is_cursor_hidden
    assert "ended" in terminal.lines[-1]


def test_a_screen_that_is_too_small_shows_the_most_important(workspace: Workspace) -> None:
    workspace.apply(*(bucket(f"logs-{number}") for number in range(10)))
    terminal = workspace.terminal("run", "--live", "--kinds", "StorageBucket", size=(40, 8))

    terminal.until_shown("setpoint run  running", "StorageBucket  10")

    assert len(terminal.lines) <= 8
