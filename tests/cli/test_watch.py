"""`--watch` on a terminal and in a pipe: changes by another process are printed as they happen."""

import json
from typing import Any

import pytest
import yaml

from tests.cli.programs import Program
from tests.cli.workspace import Workspace, bucket


def _drift(workspace: Workspace) -> None:
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))


def _documents(program: Program) -> list[Any]:
    """The documents on complete lines so far."""
    return [json.loads(line) for line in program.text.split("\n")[:-1]]


def test_get_prints_the_header_once_and_a_line_for_each_change(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    terminal = workspace.terminal("get", "--watch")
    terminal.until_shown("default     logs   True    UpToDate")
    workspace.apply(bucket("more-logs"))
    terminal.until(lambda: terminal.lines[-1].split()[2:5] == ["more-logs", "True", "UpToDate"])
    terminal.interrupt()

    assert terminal.end() == 130
    assert [line.split()[0] for line in terminal.lines].count("KIND") == 1
    changed = [line.split()[2] for line in terminal.lines if line.startswith("StorageBucket")]
    assert changed[:2] == ["logs", "more-logs"]
    assert set(changed[1:]) == {"more-logs"}


def test_a_watch_of_get_shows_deletions(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    terminal = workspace.terminal("get", "-w")
    terminal.until_shown("UpToDate")
    workspace.run_quietly("delete", "StorageBucket/logs")

    terminal.until_shown("StorageBucket   default     logs   False   Deleted")


def test_a_watch_of_get_shows_only_its_targets(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    terminal = workspace.terminal("get", "StorageBucket/logs", "-w")
    terminal.until_shown("logs")
    workspace.run_quietly("delete", "StorageBucket/more")
    workspace.run_quietly("delete", "StorageBucket/logs")
    terminal.until_shown("Deleted")

    assert "more" not in terminal.text


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [("describe", "UpToDate", "website"), ("explain", "setpoint apply: create", "setpoint reconcile: drifted")],
)
def test_a_watch_of_describe_or_explain_prints_again_after_a_change(
    workspace: Workspace, command: str, before: str, after: str
) -> None:
    workspace.apply(bucket("logs"))

    terminal = workspace.terminal(command, "StorageBucket/logs", "--watch", size=(160, 60))
    terminal.until_shown("StorageBucket default/logs", before)
    assert after not in terminal.text
    _drift(workspace)
    workspace.run_quietly("reconcile", "StorageBucket/logs")
    terminal.until_shown(after)
    workspace.run_quietly("delete", "StorageBucket/logs")
    terminal.until_shown("StorageBucket default/logs deleted")
    terminal.interrupt()

    assert terminal.end() == 130


def test_json_is_a_document_on_a_line_of_its_own_for_each_change(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    program = workspace.piped("get", "--watch", "-o", "json")
    program.until(lambda: len(_documents(program)) == 2)
    workspace.run_quietly("delete", "StorageBucket/logs")
    program.until(lambda: "finalizers" not in _documents(program)[-1]["metadata"])
    program.interrupt()

    assert program.end() == 130
    documents = _documents(program)
    assert [one["metadata"]["name"] for one in documents[:2]] == ["logs", "more"]
    assert {one["metadata"]["name"] for one in documents[2:]} == {"logs"}
    assert all("deletionTimestamp" in one["metadata"] for one in documents[2:])


def test_yaml_is_a_document_for_each_change(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    program = workspace.piped("describe", "StorageBucket/logs", "--watch", "-o", "yaml")
    program.until(lambda: "notes:" in program.text)
    _drift(workspace)
    workspace.run_quietly("reconcile", "StorageBucket/logs")
    program.until(lambda: "website" in program.text)
    program.interrupt()

    assert program.end() == 130
    documents = list(yaml.safe_load_all(program.text))
    assert {one["metadata"]["name"] for one in documents} == {"logs"}
    assert len(documents) > 1


def test_a_watch_in_a_pipe_has_no_escape_codes(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    program = workspace.piped("get", "-w")
    program.until(lambda: "UpToDate" in program.text)
    workspace.run_quietly("delete", "StorageBucket/logs")
    program.until(lambda: "Deleted" in program.text)

    assert "\x1b" not in program.written
