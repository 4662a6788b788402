"""`moved` from other providers: the object is taken over as it is, and the former tool's fields with it."""

import re
from pathlib import Path

import pytest

from tests.terraform.command import Installation
from tests.terraform.conftest import install_provider
from tests.terraform.objects.former_states import (
    LAST_APPLIED,
    FormerResource,
    config_map_tree,
    k8sconnect_object,
    kubectl_manifest,
    kubernetes_manifest,
    write_state,
)
from tests.terraform.objects.workspace import Workspace, config_map, declared

FORMER = {"hashicorp": "kubernetes", "gavinbunney": "kubectl", "jmorris0x0": "k8sconnect"}
PROVIDERS = "".join(f'    {name} = {{ source = "{space}/{name}" }}\n' for space, name in FORMER.items())
MOVED = """
moved {
  from = TYPE.NAME
  to   = setpoint_object.NAME
}
"""
BEFORE = {"colour": "red", "size": "9"}


@pytest.fixture(scope="session")
def former_providers(setpoint_installation: Installation) -> Installation:
    """Terraform with stand-ins of the former providers: it wants them there, and only for their schemas."""
    home = Path(setpoint_installation.environment["HOME"])
    for namespace, name in FORMER.items():
        install_provider(namespace, name, ("-m tests.terraform.probe", name), home)
    return setpoint_installation


def moved(type_: str, name: str) -> str:
    return MOVED.replace("TYPE", type_).replace("NAME", name)


def managers(workspace: Workspace, name: str) -> set[tuple[str, str]]:
    found = workspace.get("configmaps", name)["metadata"]["managedFields"]
    return {(one["manager"].split("/")[0], one["operation"]) for one in found}


def page(name: str) -> str:
    """The configuration that a how-to ends with, in the namespace of the test."""
    blocks = re.findall(r"```hcl\n(.*?)```", Path(f"docs/how-to/{name}.md").read_text(), re.DOTALL)
    (found,) = [one for one in blocks if "moved {" in one]
    return str(found).replace("shop", "NAMESPACE")


def make_former(workspace: Workspace) -> dict[str, FormerResource]:
    """The objects of three former tools, and the resources of their states."""
    space = workspace.namespace
    trees = {name: config_map_tree(name, space, BEFORE) for name in ("settings", "platform", "banner", "limits")}
    workspace.declare("configmaps", "settings", trees["settings"], "Terraform")
    workspace.declare("configmaps", "platform", trees["platform"], "platform-team")
    applied = config_map_tree("banner", space, BEFORE, **{LAST_APPLIED: "{}"})
    path = f"{workspace.path('configmaps')}?fieldManager=HashiCorp"
    assert workspace.access.call("POST", path, applied).status == 201
    marked = config_map_tree("limits", space, BEFORE, **{"k8sconnect.terraform.io/terraform-id": "0c8b4b2f9a31"})
    workspace.declare("configmaps", "limits", marked, "k8sconnect")
    elsewhere = {**trees["banner"], "metadata": {"name": "banner", "namespace": "default"}}
    return {
        "settings": kubernetes_manifest(trees["settings"]),
        "platform": kubernetes_manifest(trees["platform"], manager="platform-team"),
        "banner": kubectl_manifest(elsewhere, override_namespace=space),
        "limits": k8sconnect_object(trees["limits"], {"kubeconfig": workspace.access.kubeconfig.read_text()}),
    }


def test_objects_of_three_former_tools_are_taken_over_in_place(
    workspace: Workspace, former_providers: Installation
) -> None:
    former = make_former(workspace)
    uids = {name: workspace.uid("configmaps", name) for name in former}
    pages = "".join(map(page, ("leave-kubernetes-manifest", "leave-kubectl-manifest", "leave-k8sconnect")))
    platform = page("leave-kubernetes-manifest").replace("settings", "platform")
    # Of each, one field is changed and one is left out.
    text = (pages + platform).replace("red", "blue").replace(', size = "9"', "").replace('      size: "9"\n', "")
    workspace.write(text, PROVIDERS)
    before = write_state(workspace, former)
    planned = workspace.planned()

    assert {address: one.actions for address, one in planned.items()} == {
        f"setpoint_object.{name}": ["update"] for name in former
    }
    assert planned["setpoint_object.settings"].after["projection"] == {"data.colour": "blue"}
    workspace.apply_planned("Fields go that the manifest leaves out")
    for name, uid in uids.items():
        live = workspace.get("configmaps", name)
        assert (live["metadata"]["uid"], live["data"]) == (uid, {"colour": "blue"})
        assert list(live["metadata"]["annotations"]) == ["setpoint.dev/terraform-id"]
        assert managers(workspace, name) == {("setpoint", "Apply")}
    # Nothing of the credentials of the former state is kept.
    assert workspace.state("setpoint_object.limits")["cluster"] is None

    # Killed before the state was written: the next apply finds its own objects.
    (workspace.folder / "terraform.tfstate").write_text(before)
    assert {one.actions[0] for one in workspace.planned().values()} == {"update"}
    workspace.apply_planned()
    # The blocks, and the former providers, can go.
    workspace.write(re.sub(r"moved \{.*?\}\n", "", text, flags=re.DOTALL))
    workspace.assert_no_changes()
    workspace.destroyed()
    assert [name for name in former if workspace.get("configmaps", name)] == []


def test_only_fields_of_the_former_tool_are_taken_over(workspace: Workspace, former_providers: Installation) -> None:
    tree = config_map_tree("k", workspace.namespace, BEFORE)
    workspace.declare("configmaps", "k", tree, "Terraform")
    workspace.declare("configmaps", "k", config_map_tree("k", workspace.namespace, {"size": "3"}), "argocd")
    same = moved("kubernetes_manifest", "k")
    workspace.write(same + declared("k", config_map("k", colour="blue", size="1")), PROVIDERS)
    state = {"k": kubernetes_manifest(tree)}
    write_state(workspace, state)
    summary, detail = workspace.refused()
    assert (summary, "data.size is held by argocd" in detail, "Terraform" in detail) == ("Held by others", True, False)

    # An object that was deleted meanwhile is made again, with a warning; a former tool's edits elsewhere are left.
    workspace.write(same + declared("k", config_map("k", colour="blue"), 'ignore_fields = ["data.size"]'), PROVIDERS)
    workspace.apply()
    assert workspace.get("configmaps", "k")["data"] == {"colour": "blue", "size": "3"}
    assert managers(workspace, "k") == {("setpoint", "Apply"), ("argocd", "Apply")}
    write_state(workspace, state)
    assert workspace.access.call("DELETE", workspace.path("configmaps", "k")).status == 200
    outcome = workspace.plan()
    assert [(one.severity, one.summary) for one in outcome.diagnostics] == [
        ("warning", "The moved object is not there")
    ]
    assert outcome.actions == {"setpoint_object.k": "update"}


def test_a_destroy_before_the_first_apply_asks_the_cluster_of_the_former_state(
    workspace: Workspace, former_providers: Installation
) -> None:
    tree = config_map_tree("limits", workspace.namespace, BEFORE)
    workspace.declare("configmaps", "limits", tree, "k8sconnect")
    elsewhere = 'provider "setpoint" {\n  alias = "none"\n  cluster = { host = "https://127.0.0.1:1" }\n}\n'
    object_ = declared("limits", config_map("limits"), "provider = setpoint.none")
    workspace.write(elsewhere + object_ + moved("k8sconnect_object", "limits"), PROVIDERS)
    write_state(workspace, {"limits": k8sconnect_object(tree, {"kubeconfig": workspace.access.kubeconfig.read_text()})})

    workspace.destroyed()
    assert workspace.get("configmaps", "limits") is None
