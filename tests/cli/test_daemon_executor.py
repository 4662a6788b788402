"""Commands while `setpoint run` owns the store: handed over, and told as if this process had done it."""

import re
import signal
from collections.abc import Callable

import pytest

from setpoint.localcloud.faults import AddLatency, FailOperation
from tests.cli.programs import Piped
from tests.cli.workspace import Workspace, bucket, database

ENDED = "the running process ended before this was done: what was begun is on record, and the next goes on"
WEBSITE = {"website": {"mainPageSuffix": "index.html"}}
# What a command says: its exit code, and what it prints into a pipe.
Told = tuple[int, list[str]]


# --- The same words as without it -------------------------------------------------------------------------------------


def _create(workspace: Workspace) -> Told:
    workspace.write(bucket("logs"), bucket("more"))
    return workspace.said("apply")


def _apply_again(workspace: Workspace) -> Told:
    _create(workspace)
    return workspace.said("apply")


def _edit(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.write(bucket("logs", "EU, versioning: {enabled: true}"))
    return workspace.said("apply")


def _label(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.write(bucket("logs").replace("spec:", "  labels: {team: web}\nspec:"))
    return workspace.said("apply")


def _move(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.write(bucket("logs", "US"))
    return workspace.said("apply")


def _wait_in_vain(workspace: Workspace) -> Told:
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    return workspace.said("apply")


def _wait_without_waiting(workspace: Workspace) -> Told:
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    return workspace.said("apply", wait=False)


def _fail(workspace: Workspace) -> Told:
    workspace.make_instance("main")
    workspace.in_cloud(lambda cloud: cloud.inject(FailOperation(type="CREATE_DATABASE", times=10)))
    workspace.write(database("app", "{external: main}"))
    code, lines = workspace.said("apply")
    return code, [re.sub("operation [0-9a-f-]+", "operation x", line) for line in lines if " waiting" not in line]


def _pause(workspace: Workspace) -> Told:
    workspace.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    return workspace.said("apply")


def _drift(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return workspace.said("reconcile", "StorageBucket/logs", "StorageBucket/more")


def _apply_to_drift(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return workspace.said("apply")


def _delete(workspace: Workspace) -> Told:
    _create(workspace)
    return workspace.said("delete", "StorageBucket/logs", "StorageBucket/nosuch")


def _delete_what_is_paused(workspace: Workspace) -> Told:
    _create(workspace)
    workspace.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    workspace.said("apply")
    return workspace.said("delete", "StorageBucket/logs")


def _delete_what_is_not_empty(workspace: Workspace) -> Told:
    _create(workspace)
    upload = "/upload/storage/v1/b/logs/o?uploadType=media&name=today.txt"
    workspace.run_program("curl", "-s", "-d", "hello", f"{workspace.in_cloud(lambda cloud: cloud.url)}{upload}")
    workspace.said("delete", "StorageBucket/logs")
    return workspace.said("delete", "StorageBucket/logs")


def _with_a_secret(workspace: Workspace) -> Told:
    workspace.write("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: x}\n", bucket("logs"))
    return workspace.said("apply")


STORIES = [
    *(_create, _apply_again, _edit, _label, _move, _wait_in_vain, _wait_without_waiting, _fail, _pause, _drift),
    *(_apply_to_drift, _delete, _delete_what_is_paused, _delete_what_is_not_empty, _with_a_secret),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.strip("_"))
def test_what_is_handed_over_is_told_as_if_it_were_done_here(
    workspace: Workspace, other_desk: Workspace, story: Callable[[Workspace], Told]
) -> None:
    code, lines = story(other_desk)
    workspace.daemon()

    handed_over = story(workspace)

    assert (handed_over[0], sorted(handed_over[1])) == (code, sorted(lines))


def test_an_operation_is_shown_while_it_runs(workspace: Workspace) -> None:
    workspace.make_instance("main")
    workspace.apply(database("app", "{external: main}"))
    workspace.stop_time()
    workspace.daemon()

    terminal = workspace.terminal("delete", "SQLDatabase/app")
    terminal.until(lambda: re.search(r"app  waiting  \d+s  operation \S+ is running", "\n".join(terminal.lines)))
    workspace.go_on()

    assert terminal.end() == 0
    assert re.fullmatch(r"SQLDatabase default/app  deleted  \d+s", terminal.lines[-1])


def test_a_mistake_names_its_file_and_line_and_nothing_is_handed_over(workspace: Workspace) -> None:
    workspace.daemon()
    workspace.write(bucket("logs"), bucket("more", "EU, verzioning: {}"))

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert applied.stderr == (
        "error: manifest.yaml:13: StorageBucket default/more: "
        "there is no field spec.verzioning; did you mean spec.versioning?\n"
    )
    assert workspace.run("get").stdout.count("logs") == 0


def test_a_time_out_says_of_whom_nothing_was_heard(workspace: Workspace) -> None:
    workspace.daemon()
    workspace.stop_answers()
    workspace.write(bucket("logs"))

    told = "StorageBucket default/logs had no step in time: the log of the running process says why"
    assert workspace.said("apply", seconds=0.1) == (3, [told])


def test_a_store_with_a_long_path_is_no_obstacle(workspace: Workspace) -> None:
    deep = workspace.folder / ("d" * 100)
    deep.mkdir()
    store = ("--store", f"sqlite:///{deep}/state.db")
    daemon = workspace.daemon(before=store)
    workspace.write(bucket("logs"))
    address = (deep / "state.db.sock").readlink()

    applied = workspace.run(*store, "apply", "-f", "manifest.yaml")
    daemon.send(signal.SIGTERM)

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\n")
    assert daemon.end() == 0
    assert not address.exists()
    assert not (deep / "state.db.sock").is_symlink()


# --- Without a controller ---------------------------------------------------------------------------------------------


def test_a_process_that_takes_no_orders_is_waited_for_as_before(workspace: Workspace) -> None:
    workspace.stop_answers()
    workspace.write(bucket("logs"))
    other = workspace.terminal("apply", "-f", "manifest.yaml")
    other.until_shown("looking")

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: \S+ is in use by process \d+: wait for it or stop it.*\n", applied.stderr)


def _following(workspace: Workspace) -> tuple[Piped, Piped]:
    """A process in the middle of a step, and a command that waits for it."""
    daemon = workspace.daemon()
    workspace.stop_time()
    workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    following = workspace.piped("apply", "-f", "manifest.yaml")
    following.until(lambda: "SQLDatabase default/app waiting" in following.text)
    watching = workspace.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon, following


def test_a_process_that_is_killed_is_noticed_and_the_next_run_goes_on(workspace: Workspace) -> None:
    daemon, following = _following(workspace)

    daemon.send(signal.SIGKILL)

    assert following.end() == 3
    assert following.text.splitlines()[-1] == ENDED
    workspace.go_on()
    workspace.said("apply")
    assert "logs   True    UpToDate" in workspace.run("get").stdout


def test_what_was_finished_at_the_end_is_told(workspace: Workspace) -> None:
    daemon, following = _following(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)
    workspace.go_on()

    assert following.end() == 3
    assert following.text.splitlines()[-2:] == ["StorageBucket default/logs created", ENDED]


def test_a_process_that_is_stopping_takes_no_orders(workspace: Workspace) -> None:
    daemon, _ = _following(workspace)
    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: process \d+ is stopping: run the command again when it has ended\n", applied.stderr)
