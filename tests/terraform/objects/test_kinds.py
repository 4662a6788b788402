"""Objects of many kinds: applied as planned, nothing is left to do, and destroyed."""

import pytest

from tests.terraform.objects.manifests import ALONE, CUSTOM, DEFINITION, IN_ITS_NAMESPACE
from tests.terraform.objects.workspace import A, Workspace, declared


@pytest.mark.parametrize("names", [tuple(ALONE)[:8], tuple(ALONE)[8:]])
def test_it_is_as_planned_and_stays_so(workspace: Workspace, names: tuple[str, ...]) -> None:
    text = "".join(ALONE[name] for name in names)
    workspace.applied(text)
    addresses = {f"setpoint_object.{name}" for name in names}
    # The same amounts in other words.
    workspace.write(text.replace("1024Mi", "1Gi").replace("1000m", "1"))
    workspace.is_settled()

    assert set(workspace.project.instances()) == addresses
    assert "s3cret" not in str([workspace.state(one)["projection"] for one in addresses])
    if "claim" in names:
        # Who would do that when no Pod uses it any more is not there.
        workspace.edit("persistentvolumeclaims", "claim", {"metadata": {"finalizers": None}})
    workspace.destroyed()


@pytest.mark.parametrize("wait", ["", 'wait_for = { condition = "Established", timeout = "240s" }'])
def test_a_custom_resource_comes_with_its_definition(workspace: Workspace, wait: str) -> None:
    group = f"{workspace.namespace}.example.com"
    text = declared("a", DEFINITION, wait) + declared("b", CUSTOM, f"depends_on = [{A}]")
    workspace.applied(text.replace("GROUP", group))
    path = f"/apis/{group}/v1/namespaces/{workspace.namespace}/records/www"
    assert workspace.access.call("GET", path).body["spec"] == {"host": "www", "ttl": 60}

    workspace.destroyed()
    assert workspace.access.call("GET", path).status == 404


def test_objects_come_with_their_namespace(workspace: Workspace) -> None:
    workspace.applied(IN_ITS_NAMESPACE)

    path = f"/api/v1/namespaces/{workspace.namespace}-more/configmaps/settings"
    assert workspace.access.call("GET", path).body["data"] == {"colour": "blue"}
