"""`setpoint run` as a process: how it starts, what it answers, and how it ends."""

import re
import signal
import stat
from pathlib import Path
from urllib.request import urlopen

import pytest

from setpoint.localcloud.faults import AddLatency
from tests.cli.desk import Desk, bucket, database
from tests.cli.programs import Piped

LOGS = "/storage/v1/b/logs"


def _socket(desk: Desk) -> Path:
    return desk.folder / ".setpoint" / "state.db.sock"


def _processing(desk: Desk, *options: str) -> Piped:
    """A process in the middle of a step: the service has been asked for a bucket, and has not answered."""
    daemon = desk.daemon(*options)
    desk.stop_time()
    desk.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    desk.write(bucket("logs"))
    desk.piped("apply", "-f", "manifest.yaml")
    watching = desk.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon


def _said(program: Piped, *events: str) -> bool:
    return all(f'"event":"{event}"' in program.text for event in events)


# --- The end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(desk: Desk, number: signal.Signals) -> None:
    daemon = desk.daemon()

    daemon.send(number)

    assert daemon.end() == 0
    assert _said(daemon, "stopping", "ended")
    assert not _socket(desk).exists()


def test_the_next_one_may_write_after_the_end(desk: Desk) -> None:
    daemon = desk.daemon()
    daemon.send(signal.SIGTERM)
    daemon.end()
    desk.write(bucket("logs"))

    applied = desk.run("apply", "-f", "manifest.yaml")

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\n")


def test_what_is_in_work_is_finished_first(desk: Desk) -> None:
    daemon = _processing(desk)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: re.search('"event":"stopping".*"in_work":1', daemon.text))
    desk.go_on()

    assert daemon.end() == 0
    assert "UpToDate" in desk.run("get").stdout


def test_what_is_still_in_work_after_the_time_of_grace_is_cut_short(desk: Desk) -> None:
    daemon = _processing(desk, "--grace", "10ms")

    daemon.send(signal.SIGTERM)

    assert daemon.end() == 0
    assert _said(daemon, "steps were cut short", "ended")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once(desk: Desk, number: signal.Signals, code: int) -> None:
    daemon = _processing(desk)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: _said(daemon, "stopping"))
    daemon.send(number)

    assert daemon.end() == code
    assert not _socket(desk).exists()


@pytest.mark.parametrize("options", [("--grace", "10ms"), ()])
def test_what_was_cut_short_is_taken_up_by_the_next(desk: Desk, options: tuple[str, ...]) -> None:
    daemon = _processing(desk, *options)
    daemon.send(signal.SIGTERM if options else signal.SIGKILL)
    daemon.end()
    desk.go_on()

    applied = desk.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 0
    assert desk.in_cloud(lambda cloud: cloud.call("GET", LOGS).status) == 200


def test_the_next_one_clears_up_after_one_that_was_killed(desk: Desk) -> None:
    killed = desk.daemon()
    killed.send(signal.SIGKILL)
    killed.end()
    left = _socket(desk).exists()

    desk.daemon()

    assert left
    assert stat.S_IMODE(_socket(desk).stat().st_mode) == 0o600
    desk.write(bucket("logs"))
    assert desk.said("apply") == (0, ["StorageBucket default/logs created"])


# --- What it does ----------------------------------------------------------------------------------------------------


def test_what_was_declared_before_is_looked_at_when_it_starts(desk: Desk) -> None:
    desk.apply(bucket("logs"))
    desk.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))
    watching = desk.piped("get", "-w", "-o", "json")

    desk.daemon()

    watching.until(lambda: "the start of the process" in watching.text)
    assert "website" not in desk.in_cloud(lambda cloud: str(cloud.call("GET", LOGS).body))


def test_only_the_kinds_that_are_named_are_handled(desk: Desk) -> None:
    desk.daemon("--kinds", "storagebuckets")
    desk.write(bucket("logs"), database("app", "{external: main}"))

    refused = desk.run("apply", "-f", "manifest.yaml")
    desk.write(bucket("logs"))

    assert refused.returncode == 1
    assert re.search(
        r"error: SQLDatabase default/app: the running process \d+ handles only StorageBucket; "
        "stop it, or start it with --kinds SQLDatabase as well",
        refused.stderr,
    )
    assert desk.said("apply") == (0, ["StorageBucket default/logs created"])


def test_health_and_metrics_can_be_read(desk: Desk) -> None:
    daemon = desk.daemon("--metrics", "127.0.0.1:0")
    found = re.search(r'"address":"(http://127.0.0.1:\d+)"', daemon.text)
    assert found is not None

    pages = {page: urlopen(f"{found[1]}/{page}").read().decode() for page in ("healthz", "readyz", "metrics")}

    assert (pages["healthz"], pages["readyz"]) == ("ok\n", "ok\n")
    assert 'setpoint_resources{kind="StorageBucket",ready="true"}' in pages["metrics"]


def test_the_log_can_be_for_people(desk: Desk) -> None:
    terminal = desk.terminal("run", "--kinds", "StorageBucket")

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
def test_an_option_that_cannot_be_is_one_line(desk: Desk, options: tuple[str, ...], told: str) -> None:
    ended = desk.run("run", *options)

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {told}")
    assert ended.stderr.count("\n") == 1


def test_there_is_one_process_for_a_store(desk: Desk) -> None:
    desk.daemon()

    second = desk.run("run")

    assert second.returncode == 1
    assert re.fullmatch(r"error: \S+/state\.db is in use by process \d+: wait for it or .*\n", second.stderr)
    desk.write(bucket("logs"))
    assert desk.said("apply") == (0, ["StorageBucket default/logs created"])


# --- On a terminal ---------------------------------------------------------------------------------------------------


def test_the_live_view_shows_what_there_is_and_what_fails_and_why(desk: Desk) -> None:
    terminal = desk.terminal("run", "--live", "--kinds", "StorageBucket,SQLDatabase")
    terminal.until_shown("setpoint run  running", "StorageBucket  0      0", "IN WORK      nothing")
    desk.write(bucket("logs"), database("app", "{name: main}"))
    desk.said("apply")

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
def test_a_key_ends_the_live_view_and_leaves_the_terminal_as_it_was(desk: Desk, key: bytes) -> None:
    terminal = desk.terminal("run", "--live")
    terminal.until_shown("setpoint run  running")
    was_borrowed = terminal.screen.is_borrowed

    terminal.press(key)

    assert terminal.end() == 0
    assert was_borrowed
    assert not terminal.screen.is_borrowed
    assert not terminal.screen.is_cursor_hidden
    assert "ended" in terminal.lines[-1]


def test_a_screen_that_is_too_small_shows_the_most_important(desk: Desk) -> None:
    desk.apply(*(bucket(f"logs-{number}") for number in range(10)))
    terminal = desk.terminal("run", "--live", "--kinds", "StorageBucket", size=(40, 8))

    terminal.until_shown("setpoint run  running", "StorageBucket  10")

    assert len(terminal.lines) <= 8
