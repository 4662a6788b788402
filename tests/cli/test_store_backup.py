"""`setpoint backup` and `setpoint restore` as an operator types them, and what the world differs in afterwards."""

import json
import stat
from pathlib import Path

from tests.cli.workspace import Workspace, bucket


def writes(workspace: Workspace) -> list[str]:
    return [
        f"{entry.method} {entry.path}"
        for entry in workspace.in_cloud(lambda cloud: cloud.journal.entries)
        if entry.is_write
    ]


def labelled(name: str, colour: str) -> str:
    return bucket(name).replace("  name:", f"  labels: {{colour: {colour}}}\n  name:")


def test_a_restored_store_plans_what_the_world_differs_in_and_writes_nothing_else(workspace: Workspace) -> None:
    workspace.apply(labelled("changed", "red"), labelled("same", "red"))
    assert workspace.run("backup", "kept.db").returncode == 0
    workspace.apply(labelled("changed", "blue"), labelled("same", "red"), bucket("later"))
    # Written and set back: its cookie is older than the object.
    workspace.apply(labelled("same", "blue"))
    workspace.apply(labelled("same", "red"))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    restored = workspace.run("restore", "kept.db")
    plan = workspace.run("plan", "--all", "-o", "json")

    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.startswith("2 resources restored into ")
    found = {one["name"]: one for one in json.loads(plan.stdout)["resources"]}
    assert set(found) == {"changed", "same"}, "what was declared since is not known"
    assert found["same"]["finding"] == "in sync"
    assert found["changed"]["fields"] == ["metadata.labels.colour"]
    assert writes(workspace) == []

    workspace.apply(labelled("changed", "red"), labelled("same", "red"))
    assert writes(workspace) == ["PATCH /storage/v1/b/changed"]


def test_a_backup_of_a_store_in_use_has_the_digest_that_a_restore_checks(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    daemon = workspace.daemon()

    made = workspace.run("backup", "kept.db", "-o", "json")
    refused = workspace.run("restore", "kept.db")
    daemon.interrupt()
    assert daemon.end() == 0
    restored = workspace.run("restore", "kept.db", "-o", "json")

    before, after = json.loads(made.stdout), json.loads(restored.stdout)
    assert refused.returncode == 1
    assert "is in use by process" in refused.stderr
    assert before["resources"] == 1
    assert after["digest"] == before["digest"]
    assert stat.S_IMODE(Path(after["replacedStore"]).stat().st_mode) == 0o600
    assert stat.S_IMODE((workspace.folder / "kept.db").stat().st_mode) == 0o600


def test_wrong_input_is_one_line_that_says_what_to_do(workspace: Workspace) -> None:
    assert workspace.run("backup", "kept.db").stderr == (
        f"error: there is no store at {workspace.folder}/.setpoint/state.db: "
        "apply something first, or name another store\n"
    )
    workspace.apply(bucket("logs"))
    assert workspace.run("backup", "kept.db").returncode == 0

    assert workspace.run("backup", "kept.db").stderr == (
        f"error: {workspace.folder}/kept.db exists: name another file, or replace it with --force\n"
    )
    assert workspace.run("backup", "--force", "kept.db").returncode == 0
    assert workspace.run("backup", "nowhere/kept.db").stderr == (
        f"error: {workspace.folder}/nowhere/kept.db: No such file or directory: "
        "name a file in a folder that you can write to\n"
    )
    assert workspace.run("restore", "manifest.yaml").stderr.startswith(
        f"error: {workspace.folder}/manifest.yaml is no backup, or damaged (file is not a database): nothing was "
    )
    assert "the store is in a cluster" in workspace.run("--store", "kubernetes", "backup", "kept.db").stderr
    assert "the store is in memory" in workspace.run("--store", "memory:", "restore", "kept.db").stderr
