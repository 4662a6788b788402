"""Commands while `setpoint run` owns the store: handed over, and told as if this process had done it."""

import re
import signal
from collections.abc import Callable

import pytest

from setpoint.localcloud.faults import AddLatency, FailOperation
from tests.cli.desk import Desk, bucket, database
from tests.cli.programs import Piped

ENDED = "the running process ended before this was done: what was begun is on record, and the next goes on"
WEBSITE = {"website": {"mainPageSuffix": "index.html"}}
# What a command says: its exit code, and what it prints into a pipe.
Told = tuple[int, list[str]]


# --- The same words as without it -------------------------------------------------------------------------------------


def _create(desk: Desk) -> Told:
    desk.write(bucket("logs"), bucket("more"))
    return desk.said("apply")


def _apply_again(desk: Desk) -> Told:
    _create(desk)
    return desk.said("apply")


def _edit(desk: Desk) -> Told:
    _create(desk)
    desk.write(bucket("logs", "EU, versioning: {enabled: true}"))
    return desk.said("apply")


def _label(desk: Desk) -> Told:
    _create(desk)
    desk.write(bucket("logs").replace("spec:", "  labels: {team: web}\nspec:"))
    return desk.said("apply")


def _move(desk: Desk) -> Told:
    _create(desk)
    desk.write(bucket("logs", "US"))
    return desk.said("apply")


def _wait_in_vain(desk: Desk) -> Told:
    desk.write(bucket("logs"), database("app", "{name: main}"))
    return desk.said("apply")


def _wait_without_waiting(desk: Desk) -> Told:
    desk.write(bucket("logs"), database("app", "{name: main}"))
    return desk.said("apply", wait=False)


def _fail(desk: Desk) -> Told:
    desk.make_instance("main")
    desk.in_cloud(lambda cloud: cloud.inject(FailOperation(type="CREATE_DATABASE", times=10)))
    desk.write(database("app", "{external: main}"))
    code, lines = desk.said("apply")
    return code, [re.sub("operation [0-9a-f-]+", "operation x", line) for line in lines if " waiting" not in line]


def _pause(desk: Desk) -> Told:
    desk.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    return desk.said("apply")


def _drift(desk: Desk) -> Told:
    _create(desk)
    desk.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return desk.said("reconcile", "StorageBucket/logs", "StorageBucket/more")


def _apply_to_drift(desk: Desk) -> Told:
    _create(desk)
    desk.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return desk.said("apply")


def _delete(desk: Desk) -> Told:
    _create(desk)
    return desk.said("delete", "StorageBucket/logs", "StorageBucket/nosuch")


def _delete_what_is_paused(desk: Desk) -> Told:
    _create(desk)
    desk.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    desk.said("apply")
    return desk.said("delete", "StorageBucket/logs")


def _delete_what_is_not_empty(desk: Desk) -> Told:
    _create(desk)
    upload = "/upload/storage/v1/b/logs/o?uploadType=media&name=today.txt"
    desk.run_program("curl", "-s", "-d", "hello", f"{desk.in_cloud(lambda cloud: cloud.url)}{upload}")
    desk.said("delete", "StorageBucket/logs")
    return desk.said("delete", "StorageBucket/logs")


def _with_a_secret(desk: Desk) -> Told:
    desk.write("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: x}\n", bucket("logs"))
    return desk.said("apply")


STORIES = [
    *(_create, _apply_again, _edit, _label, _move, _wait_in_vain, _wait_without_waiting, _fail, _pause, _drift),
    *(_apply_to_drift, _delete, _delete_what_is_paused, _delete_what_is_not_empty, _with_a_secret),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.strip("_"))
def test_what_is_handed_over_is_told_as_if_it_were_done_here(
    desk: Desk, other_desk: Desk, story: Callable[[Desk], Told]
) -> None:
    code, lines = story(other_desk)
    desk.daemon()

    handed_over = story(desk)

    assert (handed_over[0], sorted(handed_over[1])) == (code, sorted(lines))


def test_an_operation_is_shown_while_it_runs(desk: Desk) -> None:
    desk.make_instance("main")
    desk.apply(database("app", "{external: main}"))
    desk.stop_time()
    desk.daemon()

    terminal = desk.terminal("delete", "SQLDatabase/app")
    terminal.until(lambda: re.search(r"app  waiting  \d+s  operation \S+ is running", "\n".join(terminal.lines)))
    desk.go_on()

    assert terminal.end() == 0
    assert re.fullmatch(r"SQLDatabase default/app  deleted  \d+s", terminal.lines[-1])


def test_a_mistake_names_its_file_and_line_and_nothing_is_handed_over(desk: Desk) -> None:
    desk.daemon()
    desk.write(bucket("logs"), bucket("more", "EU, verzioning: {}"))

    applied = desk.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert applied.stderr == (
        "error: manifest.yaml:13: StorageBucket default/more: "
        "there is no field spec.verzioning; did you mean spec.versioning?\n"
    )
    assert desk.run("get").stdout.count("logs") == 0


def test_a_time_out_says_of_whom_nothing_was_heard(desk: Desk) -> None:
    desk.daemon()
    desk.stop_answers()
    desk.write(bucket("logs"))

    told = "StorageBucket default/logs had no step in time: the log of the running process says why"
    assert desk.said("apply", seconds=0.1) == (3, [told])


def test_a_store_with_a_long_path_is_no_obstacle(desk: Desk) -> None:
    deep = desk.folder / ("d" * 100)
    deep.mkdir()
    store = ("--store", f"sqlite:///{deep}/state.db")
    daemon = desk.daemon(before=store)
    desk.write(bucket("logs"))
    address = (deep / "state.db.sock").readlink()

    applied = desk.run(*store, "apply", "-f", "manifest.yaml")
    daemon.send(signal.SIGTERM)

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\n")
    assert daemon.end() == 0
    assert not address.exists()
    assert not (deep / "state.db.sock").is_symlink()


# --- Without a controller ---------------------------------------------------------------------------------------------


def test_a_process_that_takes_no_orders_is_waited_for_as_before(desk: Desk) -> None:
    desk.stop_answers()
    desk.write(bucket("logs"))
    other = desk.terminal("apply", "-f", "manifest.yaml")
    other.until_shown("looking")

    applied = desk.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: \S+ is in use by process \d+: wait for it or stop it.*\n", applied.stderr)


def _following(desk: Desk) -> tuple[Piped, Piped]:
    """A process in the middle of a step, and a command that waits for it."""
    daemon = desk.daemon()
    desk.stop_time()
    desk.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    desk.write(bucket("logs"), database("app", "{name: main}"))
    following = desk.piped("apply", "-f", "manifest.yaml")
    following.until(lambda: "SQLDatabase default/app waiting" in following.text)
    watching = desk.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon, following


def test_a_process_that_is_killed_is_noticed_and_the_next_run_goes_on(desk: Desk) -> None:
    daemon, following = _following(desk)

    daemon.send(signal.SIGKILL)

    assert following.end() == 3
    assert following.text.splitlines()[-1] == ENDED
    desk.go_on()
    desk.said("apply")
    assert "logs   True    UpToDate" in desk.run("get").stdout


def test_what_was_finished_at_the_end_is_told(desk: Desk) -> None:
    daemon, following = _following(desk)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)
    desk.go_on()

    assert following.end() == 3
    assert following.text.splitlines()[-2:] == ["StorageBucket default/logs created", ENDED]


def test_a_process_that_is_stopping_takes_no_orders(desk: Desk) -> None:
    daemon, _ = _following(desk)
    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)

    applied = desk.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: process \d+ is stopping: run the command again when it has ended\n", applied.stderr)
