"""Objects whose create did not finish, by a timeout or an interrupt: the next apply adopts them."""

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.cluster.polling import until
from tests.terraform.command import finished
from tests.terraform.objects.waits import BOTH, LONG_WAIT, WAIT, address_known, service, timed_out
from tests.terraform.objects.workspace import A, B, Workspace, declared
from tests.terraform.processes import children, process_group

if TYPE_CHECKING:
    import subprocess

KEPT = [("warning", "The object is kept")]
CREATE_FIRST = "lifecycle { create_before_destroy = true }"


def test_a_timeout_keeps_the_object_until_the_value_exists_even_when_it_is_changed(workspace: Workspace) -> None:
    uid = timed_out(workspace, BOTH)
    assert (list(workspace.project.instances()), address_known(workspace)) == ([A], None)
    outcome = workspace.plan()
    assert [(one.severity, one.summary) for one in outcome.diagnostics] == KEPT
    assert outcome.actions == {A: "replace", B: "create"}

    assert timed_out(workspace) == uid
    assert timed_out(workspace, BOTH.replace("port: 80", "port: 81")) == uid
    assert _port(workspace) == 81
    workspace.give_address("web", "192.0.2.1")
    workspace.write(BOTH.replace("port: 80", "port: 82"))
    outcome = workspace.apply()
    assert (outcome.code, [(one.severity, one.summary) for one in outcome.diagnostics]) == (0, KEPT)
    workspace.assert_no_changes()
    assert (workspace.uid("services", "web"), address_known(workspace)) == (uid, "192.0.2.1")
    assert _port(workspace) == 82
    workspace.destroyed()
    assert workspace.get("services", "web") is None


def test_a_pending_object_with_on_timeout_fail_is_replaced_and_one_whose_resource_is_removed_is_deleted(
    workspace: Workspace,
) -> None:
    failing = service(more=f'{WAIT}\non_timeout = "fail"')
    first = timed_out(workspace, failing)
    second = timed_out(workspace)

    assert first != second
    assert workspace.plan().diagnostics == []
    assert timed_out(workspace, service()) != second
    workspace.applied("\n")
    assert workspace.get("services", "web") is None


@pytest.mark.parametrize("more", ["", CREATE_FIRST])
def test_another_name_replaces_a_pending_object(workspace: Workspace, more: str) -> None:
    timed_out(workspace, service(more=f"{WAIT}\n{more}"))
    workspace.write(service(name="other", more=f"{LONG_WAIT}\n{more}"))
    with workspace.meanwhile("services", "other", lambda: workspace.give_address("other", "192.0.2.1")):
        workspace.applied()

    assert workspace.get("services", "web") is None


def test_a_pending_object_is_kept_with_create_before_destroy(workspace: Workspace) -> None:
    uid = timed_out(workspace, service(more=f"{WAIT}\n{CREATE_FIRST}"))
    assert timed_out(workspace) == uid
    workspace.give_address("web", "192.0.2.1")
    outcome = workspace.apply()

    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert workspace.uid("services", "web") == uid
    assert "deposed" not in workspace.project.instances()[A]


def test_a_pending_object_is_kept_when_its_replacement_is_requested_and_is_destroyed(workspace: Workspace) -> None:
    # Terraform sends the same requests for a tainted object. `on_timeout = "fail"` has it replaced.
    uid = timed_out(workspace, BOTH)
    outcome = workspace.apply(f"-replace={A}")

    assert [one.summary for one in outcome.diagnostics] == ["The object is kept", "Wait timed out"]
    assert workspace.uid("services", "web") == uid
    workspace.destroyed()
    assert workspace.get("services", "web") is None
    assert workspace.project.instances() == {}


@pytest.mark.parametrize("more", ["", CREATE_FIRST])
def test_a_pending_object_is_not_lost_when_an_apply_is_refused(workspace: Workspace, more: str) -> None:
    workspace.allow("alice")
    as_alice = f'cluster = {{ config_path = "{workspace.access.kubeconfig_of("alice")}" }}'
    uid = timed_out(workspace, service(more=f"{WAIT}\n{more}\n{as_alice}"))
    assert workspace.plan("-out=plan").code == 2
    workspace.forbid("alice")
    outcome = workspace.project.run("apply", "-json", "plan")

    assert (outcome.code, [one.summary for one in outcome.diagnostics]) == (1, ["Remote refused"])
    workspace.allow("alice")
    workspace.give_address("web", "192.0.2.1")
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert workspace.uid("services", "web") == uid


@pytest.mark.parametrize("is_new", [True, False])
def test_ctrl_c_ends_a_wait_at_once_and_the_next_apply_continues(workspace: Workspace, is_new: bool) -> None:
    if not is_new:
        workspace.applied(service(port=79, more=""))
    workspace.write(BOTH.replace(WAIT, LONG_WAIT))
    process = workspace.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: _port(workspace) == 80)
    os.killpg(process.pid, signal.SIGINT)
    outcome = finished(process)

    assert outcome.code == 1
    assert "Interrupted" in [one.summary for one in outcome.diagnostics]
    uid = workspace.uid("services", "web")
    assert workspace.state()["object_ref"]["name"] == "web"
    workspace.give_address("web", "192.0.2.1")
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert (workspace.uid("services", "web"), address_known(workspace)) == (uid, "192.0.2.1")


def _port(workspace: Workspace) -> int | None:
    found = workspace.get("services", "web")
    return None if found is None else int(found["spec"]["ports"][0]["port"])


def _kill_providers(terraform: "subprocess.Popen[str]") -> None:
    for child in children(terraform.pid):
        os.kill(child, signal.SIGKILL)


def _kill_terraform(terraform: "subprocess.Popen[str]") -> None:
    terraform.kill()


@pytest.mark.parametrize("kill", [_kill_providers, _kill_terraform])
def test_an_object_is_adopted_after_its_provider_or_terraform_was_killed_during_the_create(
    workspace: Workspace, kill: Callable[["subprocess.Popen[str]"], None]
) -> None:
    workspace.write(BOTH.replace(WAIT, LONG_WAIT))
    process = workspace.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: _port(workspace) == 80)
    kill(process)
    process.communicate()
    assert process.returncode != 0
    until(lambda: process_group(process.pid) == [])

    uid = workspace.uid("services", "web")
    assert workspace.project.instances() == {}
    workspace.give_address("web", "192.0.2.1")
    workspace.write(BOTH)
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert (workspace.uid("services", "web"), address_known(workspace)) == (uid, "192.0.2.1")


SETTINGS = declared(
    "settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NAMESPACE}, data: {a: '1'}}"
)


def test_objects_are_adopted_whose_state_a_killed_terraform_had_not_written_yet(workspace: Workspace) -> None:
    workspace.write(BOTH.replace(WAIT, LONG_WAIT) + SETTINGS)
    process = workspace.project.start("apply", "-json", "-input=false", "-auto-approve")
    until(lambda: _port(workspace) == 80 and workspace.get("configmaps", "settings") is not None)
    until(lambda: "setpoint_object.settings" in workspace.project.instances())
    process.kill()
    process.communicate()
    until(lambda: process_group(process.pid) == [])
    # Other backends than a file get the state every twenty seconds.
    (workspace.project.folder / "terraform.tfstate").unlink()

    uids = [workspace.uid("services", "web"), workspace.uid("configmaps", "settings")]
    workspace.give_address("web", "192.0.2.1")
    workspace.write(BOTH + SETTINGS)
    outcome = workspace.apply()
    assert outcome.code == 0, outcome.diagnostics
    workspace.assert_no_changes()
    assert [workspace.uid("services", "web"), workspace.uid("configmaps", "settings")] == uids


def test_an_object_whose_state_was_removed_after_the_apply_is_not_adopted(workspace: Workspace) -> None:
    workspace.applied(SETTINGS)
    (workspace.project.folder / "terraform.tfstate").unlink()

    summary, _ = workspace.failed()
    assert summary == "The object is kept by another resource"
