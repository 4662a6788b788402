"""What users of other tools rely on, each as a claim about this one."""

import secrets
from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.plan import Action
from setpoint.engine.context import Settled, Stopped
from setpoint.engine.kind import Intent
from setpoint.errors import LocationChanged, RemoteInvalid
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from tests.cluster.objects.object_harness import Site, Tree, config_map, deployment

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def data_of(site: Site, name: str = "map") -> Any:
    live = site.live("configmaps", name)
    assert live is not None
    return live["data"]


def endpoint(site: Site) -> Endpoint:
    return Endpoint("", "v1", "configmaps", site.namespace, "map")


def definition(group: str, schema: Tree, *versions: str) -> Tree:
    root = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", **schema}}}}
    served = [{"name": one, "served": True, "storage": one == versions[0], "schema": root} for one in versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gauges.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gauges", "kind": "Gauge"},
            "versions": served,
        },
    }


def gauge(group: str, version: str = "v1", **spec: Any) -> Tree:
    return {"apiVersion": f"{group}/{version}", "kind": "Gauge", "metadata": {"name": "g"}, "spec": spec}


@pytest.fixture
def group() -> str:
    return f"g{secrets.token_hex(4)}.example.com"


# --- Manifests --------------------------------------------------------------------------------------------------------


def test_the_text_of_a_rule_is_shown_at_the_plan(group: str, site: Site) -> None:
    rules = [{"rule": "self.low <= self.high", "message": "low must not be above high"}]
    properties = {"low": {"type": "integer"}, "high": {"type": "integer"}}
    site.settle(definition(group, {"properties": properties, "x-kubernetes-validations": rules}, "v1"), "definition")
    site.settle(gauge(group, low=1, high=2), "gauge")
    site.declare(gauge(group, low=3, high=2), "gauge")

    with pytest.raises(RemoteInvalid, match="low must not be above high"):
        site.plan("gauge")
    site.remove("definition")


def test_a_field_that_a_rule_fixes_is_immutable(group: str, site: Site) -> None:
    rules = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
    properties = {"zone": {"type": "string", "x-kubernetes-validations": rules}}
    site.settle(definition(group, {"properties": properties}, "v1"), "definition")
    site.settle(gauge(group, zone="a"), "gauge")

    site.declare(gauge(group, zone="b"), "gauge", replace=True)

    assert [write.action for write in site.plan("gauge").writes] == [Action.REPLACE]
    assert isinstance(site.go_on("gauge"), Settled)
    site.remove("definition")


# --- Identity ---------------------------------------------------------------------------------------------------------


def test_another_namespace_is_another_object(site: Site) -> None:
    other = site.access.new_namespace()
    elsewhere = config_map(a="1")
    elsewhere["metadata"]["namespace"] = other
    site.settle(config_map(a="1"))

    site.declare(elsewhere)
    assert isinstance(site.stop(), LocationChanged)
    site.settle(elsewhere, replace=True)

    assert site.live("configmaps", "map") is None
    assert site.access.call("GET", f"/api/v1/namespaces/{other}/configmaps/map").status == 200
    site.access.delete_namespace(other)


@pytest.mark.parametrize("may_be_replaced", [False, True])
def test_another_version_is_the_same_object(may_be_replaced: bool, group: str, site: Site) -> None:
    open_schema: Tree = {"x-kubernetes-preserve-unknown-fields": True}
    site.settle(definition(group, open_schema, "v1", "v2"), "definition")
    site.settle(gauge(group, size=1), "gauge")
    before = site.live("gauges", "g", f"apis/{group}/v1")

    site.settle(gauge(group, "v2", size=2), "gauge", replace=may_be_replaced)

    after = site.live("gauges", "g", f"apis/{group}/v2")
    assert before is not None
    assert after is not None
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], {"size": 2})
    assert site.status("gauge")["setpoint"]["location"].startswith(f"{group}/v2 Gauge ")
    assert site.plan("gauge").is_empty
    site.remove("definition")


# --- Ownership --------------------------------------------------------------------------------------------------------


def test_what_another_applies_with_the_same_value_is_no_conflict(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.apply_as("helm", endpoint(site), config_map(a="1"))

    assert site.plan().is_empty
    outcome = site.step()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC


def test_what_two_declare_stays_when_one_lets_go(site: Site) -> None:
    site.settle(config_map(a="1", b="2"))
    site.apply_as("helm", endpoint(site), config_map(b="2"))

    site.settle(config_map(a="1"))

    assert data_of(site) == {"a": "1", "b": "2"}
    assert site.plan().is_empty


def test_an_object_that_lost_its_record_of_owners_is_ours_again(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.edit(site.path("configmaps", "map"), {"metadata": {"managedFields": [{}]}})

    assert not site.plan().is_empty
    assert isinstance(site.go_on(), Settled)
    site.edit(site.path("configmaps", "map"), {"data": {"a": "2"}})

    assert site.changes() == {"data.a": ("2", "1")}


def test_a_field_of_an_old_client_side_apply_is_a_conflict_that_can_be_forced(site: Site) -> None:
    made = config_map(a="theirs")
    site.access.call("POST", f"{site.path('configmaps')}?fieldManager=kubectl-client-side-apply", made)
    site.declare(config_map(a="1"))

    assert "data.a is held by kubectl-client-side-apply" in str(site.stop())
    site.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(site) == {"a": "1"}


def test_what_is_contested_waits_and_the_rest_is_put_back(site: Site) -> None:
    site.settle(config_map(a="1", b="1"))
    withheld: list[str] = []
    for count in range(20):
        if not withheld:
            site.edit(site.path("configmaps", "map"), {"data": {"a": f"theirs {count}"}})
            outcome = site.go_on()
            assert isinstance(outcome, Settled)
            withheld = [str(one.path) for one in outcome.plan.withheld]
    assert withheld == ["data.a"]
    theirs = data_of(site)["a"]

    site.edit(site.path("configmaps", "map"), {"data": {"b": "theirs"}})
    site.go_on()

    assert data_of(site) == {"a": theirs, "b": "1"}


# --- Management -------------------------------------------------------------------------------------------------------


def test_an_observed_object_is_looked_at_and_never_written(site: Site) -> None:
    observe = {"setpoint.dev/management": "observe"}
    site.access.call("POST", site.path("configmaps"), config_map(a="theirs", b="1"))
    before = site.live("configmaps", "map")
    site.declare(config_map(a="1", b="1"), annotations=observe, forceConflicts=True)

    outcome = site.step()

    assert isinstance(outcome, Settled)
    assert [str(one.path) for one in outcome.plan.withheld] == ["data.a"]
    assert site.live("configmaps", "map") == before


def test_a_step_that_is_killed_after_the_write_goes_on(site: Site) -> None:
    site.declare(deployment())

    class Killed(BaseException):
        """The end of the process."""

    class Mortal(KubernetesObjectKind):
        """Makes an object, and dies."""

        async def create(self, intent: Intent, wanted: Any) -> None:
            await super().create(intent, wanted)
            raise Killed

    with pytest.raises(Killed):
        site.step_with(Mortal(site.clusters, site.clock))
    made = site.live("deployments", "web", "apis/apps/v1")
    site.restart()

    assert isinstance(site.go_on(), Settled)
    after = site.live("deployments", "web", "apis/apps/v1")
    assert made is not None
    assert after is not None
    assert after["metadata"]["uid"] == made["metadata"]["uid"]
    assert not isinstance(site.step(), Stopped)
