"""Objects that `kubectl apply` or `kubernetes_manifest` managed before, and fields that other writers add."""

import subprocess
import textwrap
import threading
from pathlib import Path

import pytest

from tests.cluster.polling import until
from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.workspace import A, B, Workspace, config_map, declared

IGNORING = 'ignore_fields = ["data.size"]'
OPEN_DEFINITION = DEFINITION.replace(
    "properties: {host: {type: string}, ttl: {type: integer, default: 60}}",
    "x-kubernetes-preserve-unknown-fields: true",
)
EMPTY = CUSTOM.replace("{host: www}", "{host: www, found: {}}")


def kubectl_applied(workspace: Workspace, program: Path, document: str) -> None:
    text = textwrap.dedent(document).replace("NAMESPACE", workspace.namespace)
    command = [str(program), "--kubeconfig", str(workspace.access.kubeconfig), "apply", "--validate=false", "-f", "-"]
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)


def imported(workspace: Workspace) -> None:
    identifier = f"apiVersion=v1,kind=ConfigMap,namespace={workspace.namespace},name=settings"
    outcome = workspace.project.run("import", "-input=false", "-no-color", A, identifier)
    assert outcome.code == 0, outcome.errors


def test_a_field_that_kubectl_applied_goes_when_it_leaves_the_manifest(
    workspace: Workspace, kubectl_program: Path
) -> None:
    kubectl_applied(workspace, kubectl_program, config_map("settings", colour="blue", size="1", shape="round"))
    workspace.write(declared("a", config_map("settings", colour="blue", size="1")))
    imported(workspace)
    planned = workspace.plan()

    assert [one.summary for one in planned.diagnostics] == ["Fields go that the manifest leaves out"]
    assert planned.diagnostics[0].detail.startswith("data.shape: ")
    assert workspace.apply().code == 0
    workspace.assert_no_changes()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue", "size": "1"}
    change = workspace.planned(declared("a", config_map("settings", colour="blue")))[A]
    assert change.after["projection"] == {"data.colour": "blue"}
    workspace.apply_planned()
    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_a_manager_that_is_handed_over_gives_up_its_fields(workspace: Workspace) -> None:
    names = {"name": "settings"}
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": names, "data": {"colour": "green", "size": "1"}}
    workspace.declare("configmaps", "settings", tree, "Terraform")
    workspace.write(declared("a", config_map("settings", colour="blue"), 'take_over_from = ["Terraform"]'))
    imported(workspace)
    assert workspace.apply().code == 0
    workspace.assert_no_changes()

    assert workspace.get("configmaps", "settings")["data"] == {"colour": "blue"}


def test_the_only_key_of_a_map_is_left_to_another_writer_without_a_change(workspace: Workspace) -> None:
    workspace.applied(declared("a", config_map("settings", size="1"), IGNORING))
    workspace.edit("configmaps", "settings", {"data": {"size": "7"}})
    workspace.assert_no_changes()
    workspace.applied(declared("a", config_map("settings", size="2"), IGNORING))

    assert workspace.get("configmaps", "settings")["data"] == {"size": "7"}


@pytest.mark.parametrize("wait", ['field = "spec.found.address"', 'field_value = { "spec.found.address" = "here" }'])
def test_what_a_controller_fills_in_during_a_wait_is_no_change(workspace: Workspace, wait: str) -> None:
    group = f"{workspace.namespace}.example.com"
    path = f"/apis/{group}/v1/namespaces/{workspace.namespace}/records/www"

    def fill_in() -> None:
        until(lambda: workspace.access.call("GET", path).status == 200)
        filled = {"spec": {"found": {"address": "here"}}}
        assert workspace.access.call("PATCH", f"{path}?fieldManager=controller", filled).status == 200

    text = declared("a", OPEN_DEFINITION) + declared(
        "b", EMPTY, f'depends_on = [{A}]\nwait_for = {{ {wait}, timeout = "240s" }}'
    )
    thread = threading.Thread(target=fill_in)
    thread.start()
    workspace.applied(text.replace("GROUP", group))
    thread.join()

    assert workspace.state(B)["projection"] == {"spec.found": "{}", "spec.host": "www"}
    workspace.destroyed()
