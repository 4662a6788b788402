"""A store, a state of the local cloud and a recorded world that an earlier version made: opened by this one."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.workspace import Workspace, user_environment

MADE_BEFORE: Final = Path(__file__).parent.parent / "data" / "version_0_1"
RECONCILED: Final = [
    "KbsConfig/kept-trustee-kbs-config",
    "SQLDatabase/kept-database",
    "SQLInstance/kept-instance",
    "StorageBucket/kept-bucket",
    "StorageBucket/partly-unmanaged-bucket",
    "TrusteeConfig/kept-trustee",
]


# What this version writes to objects that the earlier one made: pods get no private key any more; and what is compared
# anew, because of a raised revision, without a write.
WRITTEN: Final = {
    "KbsConfig/kept-trustee-kbs-config": ["Deployment/trustee-deployment.spec.template.spec.volumes"],
    "TrusteeConfig/kept-trustee": [],
}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """The store of the earlier version in its place, and the local cloud as it left it."""
    (tmp_path / ".setpoint").mkdir()
    (tmp_path / ".setpoint" / "state.db").write_bytes(gzip.decompress((MADE_BEFORE / "state.db.gz").read_bytes()))
    shutil.copy(MADE_BEFORE / "state.db.key", tmp_path / ".setpoint" / "state.db.key")
    for private in ("state.db", "state.db.key"):
        (tmp_path / ".setpoint" / private).chmod(0o600)
    shutil.copy(MADE_BEFORE / "manifests.yaml", tmp_path / "manifest.yaml")
    cloud_state = tmp_path / "cloud.json"
    shutil.copy(MADE_BEFORE / "cloud.json", cloud_state)
    with Workspace(tmp_path, {**user_environment(), "OPERATOR_IMAGE_NAME": "operator:1"}, cloud_state) as workspace:
        yield workspace


def _previews(workspace: Workspace, *arguments: str) -> list[dict[str, Any]]:
    done = workspace.run("plan", *arguments, "-o", "json")
    assert (done.returncode, done.stderr) == (2, ""), done.stdout
    previews: list[dict[str, Any]] = json.loads(done.stdout)["resources"]
    return previews


def _written(previews: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The fields of each resource that is not in sync."""
    return {f"{one['kind']}/{one['name']}": one["fields"] for one in previews if one["finding"] != "in sync"}


def test_the_resources_of_an_earlier_version_are_in_sync_with_and_without_cookies(workspace: Workspace) -> None:
    previews = _previews(workspace, "--all")

    assert sorted(f"{one['kind']}/{one['name']}" for one in previews) == RECONCILED
    assert _written(previews) == WRITTEN
    assert all("withoutCookie" not in one for one in previews)


def test_a_step_on_an_earlier_store_writes_nothing_and_keeps_every_cookie(workspace: Workspace) -> None:
    def cookies() -> dict[str, Any]:
        found = json.loads(workspace.run("get", "StorageBucket", "-o", "json").stdout)["items"]
        return {one["metadata"]["name"]: one["status"]["lastModifiedCookie"] for one in found}

    before = cookies()
    done = workspace.run("apply", "-f", "manifest.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
    assert cookies() == before
    assert len(before) == 2
    assert workspace.in_cloud(lambda cloud: cloud.journal.counts())["writes"] == 0


def test_the_last_step_of_an_earlier_version_is_explained(workspace: Workspace) -> None:
    done = workspace.run("explain", "StorageBucket/kept-bucket")

    assert done.returncode == 0, done.stderr
    assert "create" in done.stdout
    assert "setpoint apply" in done.stdout


def test_the_events_of_an_earlier_version_are_shown(workspace: Workspace) -> None:
    shown = workspace.run("events", "StorageBucket/kept-bucket").stdout

    assert [reason in shown for reason in ("Created", "UpToDate")] == [True, True]


def test_a_world_recorded_by_an_earlier_version_is_planned_offline(workspace: Workspace) -> None:
    previews = _previews(workspace, "--world", str(MADE_BEFORE / "before.world"))

    assert sorted(f"{one['kind']}/{one['name']}" for one in previews) == RECONCILED
    assert _written(previews) == WRITTEN
