"""`setpoint import KIND`: files, standard output, the summary for programs, and what is wrong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.workspace import Workspace, bucket
from tests.forking.processes import SETPOINT

_PROJECT: Final = "some-project"
_FOLDER: Final = "found"


@pytest.fixture
def world(workspace: Workspace) -> Workspace:
    """Three buckets that no resource of the default store stands for."""
    workspace.write(bucket("logs"), bucket("more"), bucket("rest"))
    done = workspace.run("apply", "-q", "-f", "manifest.yaml", "--store", "sqlite:///other.db")
    assert done.returncode == 0, done.stderr
    (workspace.folder / "manifest.yaml").unlink()
    return workspace


def _import(world: Workspace, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return world.run("import", "StorageBucket", "--project", _PROJECT, *arguments)


def test_standard_output_is_manifests_and_standard_error_is_the_rest(world: Workspace) -> None:
    done = _import(world, "--filter", "name=logs")

    assert done.stdout == (
        "# projects/some-project/buckets/logs\n"
        "apiVersion: storage.cnrm.cloud.google.com/v1beta1\n"
        "kind: StorageBucket\n"
        "metadata:\n"
        "  name: logs\n"
        "  namespace: default\n"
        "  annotations:\n"
        "    cnrm.cloud.google.com/project-id: some-project\n"
        "spec:\n"
        "  location: EU\n"
    )
    assert done.stderr.splitlines() == [
        "StorageBucket: 3 found",
        "planning 1 manifest",
        "1 manifest; applied, 1 would change nothing",
    ]
    assert done.returncode == 0


def test_files_are_written_once_and_replaced_only_by_force(world: Workspace) -> None:
    assert _import(world, "--to", _FOLDER).returncode == 0
    folder = world.folder / _FOLDER
    files = sorted(one.name for one in folder.iterdir())
    assert files == ["storagebucket-logs.yaml", "storagebucket-more.yaml", "storagebucket-rest.yaml"]
    first = (folder / files[0]).read_text()

    assert _import(world, "--to", _FOLDER).returncode == 0
    (folder / files[0]).write_text("mine\n")
    (folder / files[1]).unlink()
    refused = _import(world, "--to", _FOLDER)
    assert (refused.returncode, (folder / files[0]).read_text(), (folder / files[1]).exists()) == (1, "mine\n", False)
    assert "storagebucket-logs.yaml would be replaced: --force does that; nothing was written" in refused.stderr

    assert _import(world, "--to", _FOLDER, "--force").returncode == 0
    assert (folder / files[0]).read_text() == first
    assert world.run("apply", "-q", "-f", _FOLDER).stdout == "adopted 3\n"
    again = _import(world, "-o", "json")
    document = json.loads(again.stdout)
    assert (document["objects"], len(document["skipped"])) == ([], 3)


def test_a_file_for_each_kind_has_all_of_it(world: Workspace) -> None:
    assert _import(world, "--to", _FOLDER, "--by", "kind").returncode == 0

    (file,) = (world.folder / _FOLDER).iterdir()
    assert (file.name, file.read_text().count("kind: StorageBucket")) == ("storagebucket.yaml", 3)


def test_programs_get_a_summary(world: Workspace) -> None:
    document: dict[str, Any] = json.loads(_import(world, "-o", "json", "-q").stdout)

    assert document["summary"] == {"unchanged": 3}
    assert [one["metadata"]["name"] for one in document["manifests"]] == ["logs", "more", "rest"]
    assert document["objects"][0] == {
        "group": "storage.cnrm.cloud.google.com",
        "kind": "StorageBucket",
        "namespace": "default",
        "name": "logs",
        "location": "projects/some-project/buckets/logs",
        "outcome": "unchanged",
    }


def test_a_killed_import_leaves_whole_files_and_is_run_again(world: Workspace) -> None:
    folder = world.folder / _FOLDER
    environment = {**os.environ, **world.environment}
    command = [SETPOINT, "import", "StorageBucket", "--project", _PROJECT, "--to", _FOLDER]
    with subprocess.Popen(command, cwd=world.folder, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    whole = {one.name: one.read_text() for one in folder.glob("*.yaml")} if folder.exists() else {}

    assert _import(world, "--to", _FOLDER).returncode == 0
    after = {one.name: one.read_text() for one in folder.glob("*.yaml")}
    assert len(after) == 3
    assert whole.items() <= after.items()


def test_killed_before_any_call_each_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cli.killed_imports", str(tmp_path)]

    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    new = "a=new b=new c=new"
    before = {f"killed {one} then {new}" for one in ("b=old", "a=new b=old", "a=new b=new", new)}
    lines = done.stdout.splitlines()
    assert set(lines) == before | {f"ended {new} then {new}"}
    assert len(lines) > 9


def test_what_was_not_looked_for_is_told(world: Workspace) -> None:
    world.environment["SETPOINT_GOOGLE_ENDPOINT"] = world.environment["STORAGE_EMULATOR_HOST"]
    nothing = world.run("import", "SQLInstance,ComputeAddress", "--project", _PROJECT)
    nowhere = world.run("import", "--all")
    everything = world.run("import", "--all", "--project", _PROJECT, "--to", _FOLDER)
    everywhere = world.run("import", "ComputeAddress,ComputeDisk", "--project", _PROJECT, "--location", "-", "-q")

    asks = "name regions and zones by --location, or - for all of them"
    assert nothing.stderr.splitlines() == [
        "SQLInstance: none found",
        "ComputeAddress: none found",
        f"ComputeAddress: only global ones were looked for: {asks}",
        "0 manifests",
    ]
    asks_for_project = "error: in which project? Name it by --project, or in GOOGLE_CLOUD_PROJECT\n"
    assert (nowhere.returncode, nowhere.stderr) == (1, asks_for_project)
    lines = everything.stderr.splitlines()
    assert (everything.returncode, lines[0], lines[-1]) == (
        0,
        "StorageBucket: 3 found",
        f"3 manifests in {_FOLDER}; applied, 3 would change nothing",
    )
    told = [line for line in lines if asks in line]
    # One line for all kinds of which nothing was looked for, and one for those of which only global ones were.
    assert [line.partition(": ")[2].partition(":")[0] for line in told] == [
        "not listed",
        "only global ones were looked for",
    ]
    assert all(" more: " in line and len(line) < 300 for line in told)
    assert (everywhere.returncode, everywhere.stderr) == (0, "")


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_asked(world: Workspace) -> None:
    (world.folder / "file").write_text("")

    done = _import(world, "--to", "file/below")

    assert done.stderr == "error: --to file/below: Not a directory: name a folder that you can write to\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("StorageBuckets", "-f", "x.yaml"), "an import is of live objects, by KIND, or of an export, by -f"),
        (("StorageBucket",), "in which project? Name it by --project, or in GOOGLE_CLOUD_PROJECT"),
        (("StorageBukket", "--project", "p"), "no kind 'StorageBukket' is known here; did you mean StorageBucket?"),
        (("KubernetesObject", "--project", "p"), "KubernetesObject cannot be imported: it has no list of live objects"),
        (("StorageBucket", "--all", "--project", "p"), "--all is every kind: name kinds, or --all, and not both"),
        (("StorageBucket", "--overwrite", "--project", "p"), "--overwrite is of an export"),
        (("StorageBucket", "--project", "p", "-l", "a in (b"), "character 8: ')' is missing"),
        (("StorageBucket", "--project", "p", "--filter", "x"), "--filter 'x': character 1: 'x' compares nothing"),
        (("ComputeSubnetwork", "--project", "p"), "name regions and zones by --location"),
        (("StorageBucket", "--project", "p", "--to", "/proc/x"), "name a folder that you can write to"),
    ],
)
def test_wrong_input_is_told(workspace: Workspace, arguments: tuple[str, ...], problem: str) -> None:
    done = workspace.run("import", *arguments)

    assert problem in done.stderr
    assert done.returncode in (1, 2)
