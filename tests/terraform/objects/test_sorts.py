"""Objects of many sorts: Terraform finds what it was promised, nothing is left to do, and nothing stays."""

import pytest

from tests.terraform.objects.manifests import ALONE, CUSTOM, DEFINITION, IN_ITS_NAMESPACE
from tests.terraform.objects.stage import A, Stage, declared


@pytest.mark.parametrize("names", [tuple(ALONE)[:8], tuple(ALONE)[8:]])
def test_it_is_as_promised_and_stays_so(stage: Stage, names: tuple[str, ...]) -> None:
    text = "".join(ALONE[name] for name in names)
    stage.applied(text)
    addresses = {f"setpoint_object.{name}" for name in names}
    # The same amounts in other words.
    stage.write(text.replace("1024Mi", "1Gi").replace("1000m", "1"))
    stage.is_settled()

    assert set(stage.project.instances()) == addresses
    assert "s3cret" not in str([stage.state(one)["projection"] for one in addresses])
    if "claim" in names:
        # Who would do that when no Pod uses it any more is not there.
        stage.edit("persistentvolumeclaims", "claim", {"metadata": {"finalizers": None}})
    stage.destroyed()


@pytest.mark.parametrize("wait", ["", 'wait_for = { condition = "Established", timeout = "60s" }'])
def test_a_custom_resource_comes_with_its_definition(stage: Stage, wait: str) -> None:
    group = f"{stage.namespace}.example.com"
    text = declared("a", DEFINITION, wait) + declared("b", CUSTOM, f"depends_on = [{A}]")
    stage.applied(text.replace("GROUP", group))
    path = f"/apis/{group}/v1/namespaces/{stage.namespace}/records/www"
    assert stage.access.call("GET", path).body["spec"] == {"host": "www", "ttl": 60}

    stage.destroyed()
    assert stage.access.call("GET", path).status == 404


def test_objects_come_with_their_namespace(stage: Stage) -> None:
    stage.applied(IN_ITS_NAMESPACE)

    path = f"/api/v1/namespaces/{stage.namespace}-more/configmaps/settings"
    assert stage.access.call("GET", path).body["data"] == {"colour": "blue"}
