"""Commands while `setpoint run` owns the store: handed over, with the same output as without it."""

import re
import signal
from collections.abc import Callable

import pytest

from setpoint.localcloud.faults import AddLatency, FailOperation
from tests.cli.programs import Piped
from tests.cli.workspace import Workspace, bucket, database

ENDED = "the running process ended before this was done: what was begun is on record, and the next goes on"
WEBSITE = {"website": {"mainPageSuffix": "index.html"}}
# The exit code of a command, and the lines that it prints into a pipe.
CommandResult = tuple[int, list[str]]


# --- The same output as without it ------------------------------------------------------------------------------------


def _create(workspace: Workspace) -> CommandResult:
    workspace.write(bucket("logs"), bucket("more"))
    return workspace.run_in_process("apply")


def _apply_again(workspace: Workspace) -> CommandResult:
    _create(workspace)
    return workspace.run_in_process("apply")


def _edit(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.write(bucket("logs", "EU, versioning: {enabled: true}"))
    return workspace.run_in_process("apply")


def _label(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.write(bucket("logs").replace("spec:", "  labels: {team: web}\nspec:"))
    return workspace.run_in_process("apply")


def _move(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.write(bucket("logs", "US"))
    return workspace.run_in_process("apply")


def _wait_for_a_missing_reference(workspace: Workspace) -> CommandResult:
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    return workspace.run_in_process("apply")


def _apply_without_waiting(workspace: Workspace) -> CommandResult:
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    return workspace.run_in_process("apply", wait=False)


def _fail(workspace: Workspace) -> CommandResult:
    workspace.make_instance("main")
    workspace.in_cloud(lambda cloud: cloud.inject(FailOperation(type="CREATE_DATABASE", times=10)))
    workspace.write(database("app", "{external: main}"))
    code, lines = workspace.run_in_process("apply")
    return code, [re.sub("operation [0-9a-f-]+", "operation x", line) for line in lines if " waiting" not in line]


def _pause(workspace: Workspace) -> CommandResult:
    workspace.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    return workspace.run_in_process("apply")


def _drift(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return workspace.run_in_process("reconcile", "StorageBucket/logs", "StorageBucket/more")


def _apply_to_drift(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", WEBSITE))
    return workspace.run_in_process("apply")


def _adopt(workspace: Workspace) -> CommandResult:
    made = {"name": "logs", "location": "EU", **WEBSITE}
    workspace.in_cloud(lambda cloud: cloud.call("POST", "/storage/v1/b?project=some-project", made))
    return _create(workspace)


def _take_out_of_the_spec(workspace: Workspace) -> CommandResult:
    workspace.write(bucket("logs", "EU, uniformBucketLevelAccess: true"))
    workspace.run_in_process("apply")
    workspace.write(bucket("logs"))
    return workspace.run_in_process("apply")


def _delete(workspace: Workspace) -> CommandResult:
    _create(workspace)
    return workspace.run_in_process("delete", "StorageBucket/logs", "StorageBucket/nosuch")


def _delete_a_paused_resource(workspace: Workspace) -> CommandResult:
    _create(workspace)
    workspace.write(bucket("logs").replace("some-project", "some-project, setpoint.dev/management: paused"))
    workspace.run_in_process("apply")
    return workspace.run_in_process("delete", "StorageBucket/logs")


def _delete_a_bucket_with_objects(workspace: Workspace) -> CommandResult:
    _create(workspace)
    upload = "/upload/storage/v1/b/logs/o?uploadType=media&name=today.txt"
    workspace.run_program("curl", "-s", "-d", "hello", f"{workspace.in_cloud(lambda cloud: cloud.url)}{upload}")
    workspace.run_in_process("delete", "StorageBucket/logs")
    return workspace.run_in_process("delete", "StorageBucket/logs")


def _with_a_secret(workspace: Workspace) -> CommandResult:
    workspace.write("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: x}\n", bucket("logs"))
    return workspace.run_in_process("apply")


SCENARIOS = [
    *(
        _create,
        _apply_again,
        _edit,
        _label,
        _move,
        _wait_for_a_missing_reference,
        _apply_without_waiting,
        _fail,
        _pause,
        _drift,
    ),
    *(
        _adopt,
        _take_out_of_the_spec,
        _apply_to_drift,
        _delete,
        _delete_a_paused_resource,
        _delete_a_bucket_with_objects,
        _with_a_secret,
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.strip("_"))
def test_a_command_handed_to_the_daemon_prints_what_a_local_one_prints(
    workspace: Workspace, second_workspace: Workspace, scenario: Callable[[Workspace], CommandResult]
) -> None:
    code, lines = scenario(second_workspace)
    workspace.daemon()

    handed_over = scenario(workspace)

    # The last line is the summary. What is not done is printed again where other lines have followed.
    assert (handed_over[0], handed_over[1][-1]) == (code, lines[-1])
    assert {*handed_over[1]} == {*lines}


def test_an_operation_is_shown_while_it_runs(workspace: Workspace) -> None:
    workspace.make_instance("main")
    workspace.apply(database("app", "{external: main}"))
    workspace.hold_operations()
    workspace.daemon()

    terminal = workspace.terminal("delete", "--yes", "SQLDatabase/app")
    terminal.until(lambda: re.search(r"app  waiting  \d+s  operation \S+ is running", "\n".join(terminal.lines)))
    workspace.release()

    assert terminal.end() == 0
    location = "projects/some-project/instances/main/databases/app"
    assert re.fullmatch(rf"SQLDatabase default/app  deleted  \d+s  {location}", terminal.lines[-2])
    assert terminal.lines[-1] == "deleted 1"


def test_an_invalid_manifest_names_file_and_line_and_nothing_is_sent_to_the_daemon(workspace: Workspace) -> None:
    workspace.daemon()
    workspace.write(bucket("logs"), bucket("more", "EU, verzioning: {}"))

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert applied.stderr == (
        "error: manifest.yaml:13: StorageBucket default/more: "
        "there is no field spec.verzioning; did you mean spec.versioning?\n"
    )
    assert workspace.run("get").stdout.count("logs") == 0


def test_a_time_out_names_the_resources_without_a_step(workspace: Workspace) -> None:
    workspace.daemon()
    workspace.hold_responses()
    workspace.write(bucket("logs"))

    message = "StorageBucket default/logs had no step in time: the log of the running process says why"
    assert workspace.run_in_process("apply", seconds=0.1) == (3, [message, "waiting 1"])


def test_the_daemon_of_a_store_with_a_long_path_is_found(workspace: Workspace) -> None:
    deep = workspace.folder / ("d" * 100)
    deep.mkdir()
    store = ("--store", f"sqlite:///{deep}/state.db")
    daemon = workspace.daemon(before=store)
    workspace.write(bucket("logs"))
    address = (deep / "state.db.sock").readlink()

    applied = workspace.run(*store, "apply", "-f", "manifest.yaml")
    daemon.send(signal.SIGTERM)

    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\ncreated 1\n")
    assert daemon.end() == 0
    assert not address.exists()
    assert not (deep / "state.db.sock").is_symlink()


# --- Without a controller ---------------------------------------------------------------------------------------------


def test_a_process_without_an_admin_socket_is_reported_as_store_in_use(workspace: Workspace) -> None:
    workspace.hold_responses()
    workspace.write(bucket("logs"))
    other = workspace.terminal("apply", "-f", "manifest.yaml")
    other.until_shown("reconciling")

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: \S+ is in use by process \d+: wait for it or stop it.*\n", applied.stderr)


def _daemon_with_follower(workspace: Workspace) -> tuple[Piped, Piped]:
    """A process in the middle of a step, and a command that waits for it."""
    daemon = workspace.daemon()
    workspace.hold_operations()
    workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    following = workspace.piped("apply", "-f", "manifest.yaml")
    following.until(lambda: "SQLDatabase default/app waiting" in following.text)
    watching = workspace.piped("get", "-w")
    watching.until(lambda: "Updating" in watching.text)
    return daemon, following


def test_a_killed_daemon_is_noticed_and_the_next_apply_continues(workspace: Workspace) -> None:
    daemon, following = _daemon_with_follower(workspace)

    daemon.send(signal.SIGKILL)

    assert following.end() == 3
    assert ENDED in following.text.splitlines()
    assert following.text.splitlines()[-1] == "waiting 2"
    workspace.release()
    workspace.run_in_process("apply")
    assert "logs   True    UpToDate" in workspace.run("get").stdout


def test_steps_finished_during_the_shutdown_of_the_daemon_are_shown(workspace: Workspace) -> None:
    daemon, following = _daemon_with_follower(workspace)

    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)
    workspace.release()

    assert following.end() == 3
    assert following.text.splitlines()[-4:] == [
        "StorageBucket default/logs created",
        ENDED,
        "SQLDatabase default/app waiting: reference SQLInstance default/main is not found",
        "created 1, waiting 1",
    ]


def test_a_daemon_that_is_shutting_down_accepts_no_request(workspace: Workspace) -> None:
    daemon, _ = _daemon_with_follower(workspace)
    daemon.send(signal.SIGTERM)
    daemon.until(lambda: '"event":"stopping"' in daemon.text)

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 1
    assert re.fullmatch(r"error: process \d+ is stopping: run the command again when it has ended\n", applied.stderr)
