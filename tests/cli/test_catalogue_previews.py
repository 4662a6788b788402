"""Previews of resources of the catalogue: plans of everything, recorded worlds, and upgrades."""

from collections.abc import Iterator

import pytest

from setpoint import __version__
from tests.cli.fleets import CUT
from tests.cli.versions import other_version
from tests.cli.workspace import Workspace, user_environment

TOPIC = """apiVersion: pubsub.cnrm.cloud.google.com/v1beta1
kind: PubSubTopic
metadata:
  name: {name}
  annotations: {{cnrm.cloud.google.com/project-id: some-project}}
spec: {{messageRetentionDuration: 86400s}}
"""
PATH = "/pubsub.googleapis.com/v1/projects/some-project/topics/more"
VERIFY = ("verify-upgrade", "--world", "world.gz", "--environments", "versions", "--baseline", "this")
MEANING = ("_MEANING: Final = 3", "_MEANING: Final = 4")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Two topics, one of which has drifted, and the world that was recorded of them."""
    with Workspace(tmp_path_factory.mktemp("recorded"), user_environment()) as workspace:
        workspace.environment["SETPOINT_GOOGLE_ENDPOINT"] = workspace.environment["STORAGE_EMULATOR_HOST"]
        workspace.apply(TOPIC.format(name="orders"), TOPIC.format(name="more"))
        workspace.in_cloud(lambda cloud: cloud.edit(PATH, {"messageRetentionDuration": "600s"}))
        assert workspace.run("record", "--to", "world.gz").returncode == 0
        yield workspace


def test_a_plan_of_everything_and_of_a_recorded_world_say_the_same(recorded: Workspace) -> None:
    live = recorded.run("plan", "--all", "-o", "json")
    played = recorded.run("plan", "--world", "world.gz", "-o", "json", **CUT, SETPOINT_GOOGLE_ENDPOINT="")

    assert (live.returncode, played.returncode) == (2, 2), live.stderr
    assert played.stdout == live.stdout
    assert "spec.messageRetentionDuration" in live.stdout


def test_an_upgrade_whose_row_is_the_same_changes_nothing(recorded: Workspace) -> None:
    other_version(recorded.folder / "versions", "0.2.0", {})

    done = recorded.run(*VERIFY, "--candidate", "0.2.0", **CUT)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "VERDICT   RESOURCES",
        "same      2",
        f"this ({__version__}) → 0.2.0: nothing is written that would not be written anyway",
    ]


def test_an_upgrade_of_the_revision_compares_anew_and_writes_nothing_by_itself(recorded: Workspace) -> None:
    other_version(recorded.folder / "versions", "0.3.0", {"kinds/gcp/generic/kind.py": MEANING})

    done = recorded.run(*VERIFY, "--candidate", "0.3.0", **CUT)

    assert (done.returncode, done.stderr) == (0, "")
    said = f"this ({__version__}) → 0.3.0: nothing is written that would not be written anyway"
    assert done.stdout.splitlines()[-1] == f"{said}; 1 are compared in full once"
