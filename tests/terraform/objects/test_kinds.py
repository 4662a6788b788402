"""Objects of many kinds: applied as planned, nothing is left to do, and destroyed."""

import pytest

from tests.terraform.objects.manifests import ALONE, CUSTOM, DEFINITION, IN_ITS_NAMESPACE
from tests.terraform.objects.workspace import A, Workspace, declared


@pytest.mark.parametrize("names", [tuple(ALONE)[:8], tuple(ALONE)[8:]])
def test_objects_of_many_kinds_are_applied_as_planned_and_need_no_change(
    workspace: Workspace, names: tuple[str, ...]
) -> None:
    text = "".join(ALONE[name] for name in names)
    workspace.applied(text)
    addresses = {f"setpoint_object.{name}" for name in names}
    # The same quantities, written differently.
    workspace.write(text.replace("1024Mi", "1Gi").replace("1000m", "1"))
    workspace.assert_no_changes()

    assert set(workspace.project.instances()) == addresses
    assert "s3cret" not in str([workspace.state(one)["projection"] for one in addresses])
    if "claim" in names:
        # No controller runs here that would remove the finalizer.
        workspace.edit("persistentvolumeclaims", "claim", {"metadata": {"finalizers": None}})
    workspace.destroyed()


@pytest.mark.parametrize("wait", ["", 'wait_for = { condition = "Established", timeout = "240s" }'])
def test_a_custom_resource_and_its_definition_are_applied_in_one_run(workspace: Workspace, wait: str) -> None:
    group = f"{workspace.namespace}.example.com"
    text = declared("a", DEFINITION, wait) + declared("b", CUSTOM, f"depends_on = [{A}]")
    workspace.applied(text.replace("GROUP", group))
    path = f"/apis/{group}/v1/namespaces/{workspace.namespace}/records/www"
    assert workspace.access.call("GET", path).body["spec"] == {"host": "www", "ttl": 60}

    workspace.destroyed()
    assert workspace.access.call("GET", path).status == 404


def test_a_namespace_and_an_object_in_it_are_applied_in_one_run(workspace: Workspace) -> None:
    workspace.applied(IN_ITS_NAMESPACE)

    path = f"/api/v1/namespaces/{workspace.namespace}-more/configmaps/settings"
    assert workspace.access.call("GET", path).body["data"] == {"colour": "blue"}
