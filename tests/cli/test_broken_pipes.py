"""A reader that ends early, such as `head`, ends the output and not the work; the exit code is that of SIGPIPE."""

import os

import pytest

from tests.cli.programs import DEADLINE
from tests.cli.workspace import Workspace, bucket
from tests.forking.processes import SETPOINT, Start, fork

MANY = 40


def _without_reader(workspace: Workspace, *arguments: str, stream: str = "stdout") -> tuple[int, str]:
    """The exit code of a command whose `stream` has no reader, and what it writes to the other stream."""
    gone, broken = os.pipe()
    other, written = os.pipe()
    os.close(gone)
    out, error = (broken, written) if stream == "stdout" else (written, broken)
    process = fork(Start((SETPOINT, *arguments), workspace.folder, workspace.environment, stdout=out, stderr=error))
    os.close(broken)
    os.close(written)
    with os.fdopen(other, encoding="utf-8") as reader:
        text = reader.read()
    return process.wait(DEADLINE), text


def test_apply_finishes_what_it_began_when_head_has_read_enough(workspace: Workspace) -> None:
    workspace.write(*(bucket(f"logs-{number:02}") for number in range(MANY)))

    applied = workspace.run_program(
        "bash", "-c", f"{SETPOINT} apply -f manifest.yaml | head -1; echo ${{PIPESTATUS[0]}} >&2"
    )

    assert (applied.stdout.count("\n"), applied.stderr) == (1, "141\n")
    assert workspace.run("get").stdout.count("UpToDate") == MANY


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "-f", "manifest.yaml"),
        ("apply", "-f", "manifest.yaml", "-o", "json"),
        ("plan", "-f", "manifest.yaml"),
        ("plan", "--all"),
        ("reconcile",),
        ("get", "-o", "yaml"),
        ("describe",),
        ("explain",),
        ("events",),
        ("graph",),
        ("graph", "-o", "dot"),
        ("export",),
        ("crds",),
        ("version",),
        ("completion", "bash"),
        ("apply", "--help"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_without_a_reader_a_command_says_nothing_and_exits_like_after_sigpipe(
    workspace: Workspace, command: tuple[str, ...]
) -> None:
    workspace.apply(bucket("logs"))

    assert _without_reader(workspace, *command) == (141, "")


@pytest.mark.parametrize("command", [("apply", "-f", "nosuch.yaml"), ("apply", "--nosuch"), ("nosuch",)], ids=" ".join)
def test_the_same_for_standard_error(workspace: Workspace, command: tuple[str, ...]) -> None:
    assert _without_reader(workspace, *command, stream="stderr") == (141, "")


def test_delete_deletes_without_a_reader(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    assert _without_reader(workspace, "delete", "StorageBucket/logs") == (141, "")
    assert workspace.run("get").stdout.count("logs") == 0


@pytest.mark.parametrize("command", [("events", "-w"), ("get", "-w"), ("get", "-w", "-o", "json"), ("describe", "-w")])
def test_a_watch_ends_with_its_reader(workspace: Workspace, command: tuple[str, ...]) -> None:
    workspace.apply(bucket("logs"))

    watched = workspace.run_program(
        "bash", "-c", f"{SETPOINT} {' '.join(command)} | head -1; echo ${{PIPESTATUS[0]}} >&2"
    )

    assert (watched.stdout.count("\n"), watched.stderr) == (1, "141\n")


def test_with_a_reader_the_exit_code_is_its_own(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    assert workspace.run("apply", "-f", "manifest.yaml").returncode == 0
    assert workspace.run("apply", "-f", "nosuch.yaml").returncode == 1
