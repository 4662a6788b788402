"""Two clusters, of which one does not answer: what needs it stops, and nothing else."""

from pathlib import Path
from typing import Final

import pytest

from tests.cluster.ports import free_port
from tests.terraform.command import Outcome
from tests.terraform.objects.workspace import A, B, Workspace, config_map, declared

WARNED: Final = ("warning", "The cluster does not answer")
FAILED: Final = ("error", "The cluster does not answer")
NEEDED: Final = (
    "Objects of other clusters are not affected. Start this one, or correct the attribute cluster; then run this again."
)
PROVIDERS: Final = """
provider "setpoint" {
  alias   = "other"
  cluster = { config_path = "OTHER" }
}
"""


@pytest.fixture
def other(workspace: Workspace) -> Path:
    """Another kubeconfig: of the same API server, until it is set to an address at which none answers."""
    file = workspace.folder / "other.kubeconfig"
    file.write_text(workspace.access.kubeconfig.read_text())
    return file


def _stop(workspace: Workspace, other: Path) -> str:
    """From now on the other cluster does not answer; its address."""
    address = f"https://127.0.0.1:{free_port()}"
    other.write_text(workspace.access.kubeconfig.read_text().replace(workspace.access.url, address))
    return address


def _start(workspace: Workspace, other: Path) -> None:
    other.write_text(workspace.access.kubeconfig.read_text())


def _both(other: Path, mine: str, theirs: str) -> str:
    """One object in each cluster, each by its own provider block."""
    return (PROVIDERS + mine + theirs).replace("OTHER", str(other))


def _mine(**data: str) -> str:
    return declared("a", config_map("mine", **data))


def _theirs(**data: str) -> str:
    return declared("b", config_map("theirs", **data), "provider = setpoint.other")


def _shown(outcome: Outcome) -> set[tuple[str, str]]:
    return {(one.severity, one.summary) for one in outcome.diagnostics}


def _data(workspace: Workspace, name: str) -> str | None:
    found = workspace.get("configmaps", name)
    return None if found is None else str(found["data"]["key"])


@pytest.mark.parametrize("way", ["provider", "attribute"])
def test_the_objects_of_the_other_cluster_are_planned_and_applied(workspace: Workspace, other: Path, way: str) -> None:
    own = f'cluster = {{ config_path = "{other}" }}'
    theirs = _theirs(key="1") if way == "provider" else declared("b", config_map("theirs", key="1"), own)
    workspace.applied(_both(other, _mine(key="1"), theirs))
    address = _stop(workspace, other)
    workspace.write(_both(other, _mine(key="2"), theirs))

    planned = workspace.plan()
    applied = workspace.apply()

    assert (planned.code, planned.actions, _shown(planned)) == (2, {A: "update"}, {WARNED})
    assert address in planned.diagnostics[0].detail
    assert (applied.code, _shown(applied)) == (0, {WARNED})
    assert _data(workspace, "mine") == "2"
    _start(workspace, other)
    workspace.assert_no_changes()


def test_a_new_object_of_a_cluster_that_does_not_answer_fails_alone(workspace: Workspace, other: Path) -> None:
    address = _stop(workspace, other)
    workspace.write(_both(other, _mine(key="1"), _theirs(key="1")))

    applied = workspace.apply()

    (failed,) = (one for one in applied.diagnostics if one.severity == "error")
    assert (applied.code, _shown(applied)) == (1, {WARNED, FAILED})
    assert (failed.address, address in failed.detail, failed.detail.endswith(NEEDED)) == (B, True, True)
    assert (list(workspace.project.instances()), _data(workspace, "mine")) == ([A], "1")
    _start(workspace, other)
    workspace.applied()
    assert _data(workspace, "theirs") == "1"


def test_a_changed_or_removed_object_of_a_cluster_that_does_not_answer_fails_alone(
    workspace: Workspace, other: Path
) -> None:
    workspace.applied(_both(other, _mine(key="1"), _theirs(key="1")))
    _stop(workspace, other)
    workspace.write(_both(other, _mine(key="2"), _theirs(key="2")))
    changed = workspace.apply()
    workspace.write(_both(other, _mine(key="3"), ""))
    removed = workspace.apply()

    assert (changed.code, _shown(changed), changed.actions) == (1, {WARNED, FAILED}, {A: "update", B: "update"})
    assert (removed.code, _shown(removed), removed.actions) == (1, {WARNED, FAILED}, {A: "update", B: "delete"})
    assert (_data(workspace, "mine"), _data(workspace, "theirs")) == ("3", "1")
    _start(workspace, other)
    workspace.applied(_both(other, _mine(key="3"), _theirs(key="2")))
    assert _data(workspace, "theirs") == "2"


@pytest.mark.parametrize("is_new", [True, False])
def test_a_cluster_that_stops_after_the_plan_is_a_clear_error(workspace: Workspace, other: Path, is_new: bool) -> None:
    if not is_new:
        workspace.applied(_both(other, _mine(key="1"), _theirs(key="1")))
    workspace.planned(_both(other, _mine(key="2"), _theirs(key="2")))
    address = _stop(workspace, other)

    applied = workspace.project.run("apply", "-json", "-input=false", "plan")

    (failed,) = applied.diagnostics
    assert (failed.summary, failed.address, address in failed.detail) == ("The cluster does not answer", B, True)
    assert _data(workspace, "mine") == "2"


def test_an_object_whose_wait_timed_out_is_kept_while_its_cluster_does_not_answer(
    workspace: Workspace, other: Path
) -> None:
    wait = 'provider = setpoint.other\nwait_for = { field = "data.late", timeout = "100ms" }'
    workspace.write(_both(other, _mine(key="1"), declared("b", config_map("theirs", key="1"), wait)))
    assert workspace.apply().code == 1
    uid = workspace.uid("configmaps", "theirs")

    _stop(workspace, other)
    planned = workspace.plan("-out=plan")
    _start(workspace, other)
    workspace.edit("configmaps", "theirs", {"data": {"late": "yes"}})
    applied = workspace.project.run("apply", "-json", "-input=false", "plan")

    assert _shown(planned) == {WARNED, ("warning", "The object is kept")}
    assert (applied.code, workspace.uid("configmaps", "theirs")) == (0, uid)
    workspace.assert_no_changes()


def test_waits_of_the_other_cluster_stay_and_a_data_source_says_what_it_needs(
    workspace: Workspace, other: Path
) -> None:
    wait = """
resource "setpoint_wait" "w" {
  provider   = setpoint.other
  object_ref = { api_version = "v1", kind = "ConfigMap", name = "mine", namespace = "NAMESPACE" }
  wait_for   = { field = "data.key" }
  depends_on = [setpoint_object.a]
}
"""
    source = """
data "setpoint_object" "s" {
  provider    = setpoint.other
  api_version = "v1"
  kind        = "ConfigMap"
  name        = "mine"
  namespace   = "NAMESPACE"
}
"""
    workspace.applied(_both(other, _mine(key="1"), wait))
    address = _stop(workspace, other)
    waited = workspace.plan()
    workspace.write(_both(other, _mine(key="1"), source))
    read = workspace.plan()

    assert (waited.code, _shown(waited)) == (0, {WARNED})
    (failed,) = (one for one in read.diagnostics if one.severity == "error")
    assert (read.code, failed.summary, address in failed.detail) == (1, "The cluster does not answer", True)


def test_providers_are_configured_and_configurations_validated_without_any_cluster(
    workspace: Workspace, other: Path
) -> None:
    _stop(workspace, other)
    workspace.write(_both(other, "", _theirs(key="1")).replace("KUBECONFIG", str(other)))
    printed, _ = workspace.project.start("validate", "-no-color").communicate()
    planned = workspace.plan()

    assert printed.strip() == "Success! The configuration is valid."
    assert (planned.code, planned.actions, _shown(planned)) == (2, {B: "create"}, {WARNED})
