"""Behaviour that users know from kubectl, Terraform and other appliers."""

import secrets
from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.plan import Action
from setpoint.engine.kind import Intent
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import LocationChanged, RemoteInvalid
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def data_of(harness: ObjectHarness, name: str = "map") -> Any:
    live = harness.live("configmaps", name)
    assert live is not None
    return live["data"]


def endpoint(harness: ObjectHarness) -> Endpoint:
    return Endpoint("", "v1", "configmaps", harness.namespace, "map")


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


def test_the_plan_shows_the_message_of_a_cel_rule(group: str, harness: ObjectHarness) -> None:
    rules = [{"rule": "self.low <= self.high", "message": "low must not be above high"}]
    properties = {"low": {"type": "integer"}, "high": {"type": "integer"}}
    harness.settle(definition(group, {"properties": properties, "x-kubernetes-validations": rules}, "v1"), "definition")
    harness.settle(gauge(group, low=1, high=2), "gauge")
    harness.declare(gauge(group, low=3, high=2), "gauge")

    with pytest.raises(RemoteInvalid, match="low must not be above high"):
        harness.plan("gauge")
    harness.remove("definition")


def test_a_field_with_a_transition_rule_is_immutable(group: str, harness: ObjectHarness) -> None:
    rules = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
    properties = {"zone": {"type": "string", "x-kubernetes-validations": rules}}
    harness.settle(definition(group, {"properties": properties}, "v1"), "definition")
    harness.settle(gauge(group, zone="a"), "gauge")

    harness.declare(gauge(group, zone="b"), "gauge", replace=True)

    assert [write.action for write in harness.plan("gauge").writes] == [Action.REPLACE]
    assert isinstance(harness.step_until_done("gauge"), Settled)
    harness.remove("definition")


def test_fields_and_versions_that_a_definition_has_just_gained_are_waited_for(
    group: str, harness: ObjectHarness
) -> None:
    properties: Tree = {}
    for count in range(4):
        properties[f"f{count}"] = {"type": "integer"}
        versions = ["v1", *(f"v1beta{number + 1}" for number in range(count))]
        harness.settle(definition(group, {"properties": properties}, *versions), "definition")
        harness.settle(gauge(group, versions[-1], **dict.fromkeys(properties, count)), "gauge")

    live = harness.live("gauges", "g", f"apis/{group}/v1")
    assert live is not None
    assert live["spec"] == {"f0": 3, "f1": 3, "f2": 3, "f3": 3}
    harness.declare(gauge(group, "v1", f0=1, f4=1), "gauge")
    assert "f4" in str(harness.stop_reason("gauge"))
    harness.remove("definition")


# --- Identity ---------------------------------------------------------------------------------------------------------


def test_another_namespace_is_another_object(harness: ObjectHarness) -> None:
    other = harness.access.new_namespace()
    moved = config_map(a="1")
    moved["metadata"]["namespace"] = other
    harness.settle(config_map(a="1"))

    harness.declare(moved)
    assert isinstance(harness.stop_reason(), LocationChanged)
    harness.settle(moved, replace=True)

    assert harness.live("configmaps", "map") is None
    assert harness.access.call("GET", f"/api/v1/namespaces/{other}/configmaps/map").status == 200
    harness.access.delete_namespace(other)


@pytest.mark.parametrize("may_be_replaced", [False, True])
def test_another_version_is_the_same_object(may_be_replaced: bool, group: str, harness: ObjectHarness) -> None:
    open_schema: Tree = {"x-kubernetes-preserve-unknown-fields": True}
    harness.settle(definition(group, open_schema, "v1", "v2"), "definition")
    harness.settle(gauge(group, size=1), "gauge")
    before = harness.live("gauges", "g", f"apis/{group}/v1")

    harness.settle(gauge(group, "v2", size=2), "gauge", replace=may_be_replaced)

    after = harness.live("gauges", "g", f"apis/{group}/v2")
    assert before is not None
    assert after is not None
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], {"size": 2})
    assert harness.status("gauge")["setpoint"]["location"].startswith(f"{group}/v2 Gauge ")
    assert harness.plan("gauge").is_empty
    harness.remove("definition")


# --- Ownership --------------------------------------------------------------------------------------------------------


def test_the_same_value_of_another_manager_is_no_conflict(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.apply_as("helm", endpoint(harness), config_map(a="1"))

    assert harness.plan().is_empty
    outcome = harness.step()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC


def test_a_field_of_two_managers_stays_when_one_drops_it(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"))
    harness.apply_as("helm", endpoint(harness), config_map(b="2"))

    harness.settle(config_map(a="1"))

    assert data_of(harness) == {"a": "1", "b": "2"}
    assert harness.plan().is_empty


def test_an_object_that_lost_its_managed_fields_is_adopted_again(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.edit(harness.path("configmaps", "map"), {"metadata": {"managedFields": [{}]}})

    assert not harness.plan().is_empty
    assert isinstance(harness.step_until_done(), Settled)
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})

    assert harness.changes() == {"data.a": ("2", "1")}


def test_a_field_of_an_old_client_side_apply_is_a_conflict_that_can_be_forced(harness: ObjectHarness) -> None:
    made = config_map(a="theirs")
    harness.access.call("POST", f"{harness.path('configmaps')}?fieldManager=kubectl-client-side-apply", made)
    harness.declare(config_map(a="1"))

    assert "data.a is held by kubectl-client-side-apply" in str(harness.stop_reason())
    harness.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(harness) == {"a": "1"}


def test_an_oscillating_field_is_withheld_and_others_are_reverted(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="1"))
    withheld: list[str] = []
    for count in range(20):
        if not withheld:
            harness.edit(harness.path("configmaps", "map"), {"data": {"a": f"theirs {count}"}})
            outcome = harness.step_until_done()
            assert isinstance(outcome, Settled)
            withheld = [str(one.path) for one in outcome.plan.withheld]
    assert withheld == ["data.a"]
    theirs = data_of(harness)["a"]

    harness.edit(harness.path("configmaps", "map"), {"data": {"b": "theirs"}})
    harness.step_until_done()

    assert data_of(harness) == {"a": theirs, "b": "1"}


# --- Management -------------------------------------------------------------------------------------------------------


def test_an_object_in_observe_mode_is_never_written(harness: ObjectHarness) -> None:
    observe = {"setpoint.dev/management": "observe"}
    harness.access.call("POST", harness.path("configmaps"), config_map(a="theirs", b="1"))
    before = harness.live("configmaps", "map")
    harness.declare(config_map(a="1", b="1"), annotations=observe, forceConflicts=True)

    outcome = harness.step()

    assert isinstance(outcome, Settled)
    assert [str(one.path) for one in outcome.plan.withheld] == ["data.a"]
    assert harness.live("configmaps", "map") == before


def test_a_step_that_was_killed_after_the_write_is_resumed(harness: ObjectHarness) -> None:
    harness.declare(deployment())

    class Killed(BaseException):
        """Stands for kill -9."""

    class KilledAfterCreate(KubernetesObjectKind):
        """Is killed right after it created the object."""

        async def create(self, intent: Intent, wanted: Any) -> None:
            await super().create(intent, wanted)
            raise Killed

    with pytest.raises(Killed):
        harness.step_with(KilledAfterCreate(harness.clusters, harness.clock))
    made = harness.live("deployments", "web", "apis/apps/v1")
    harness.restart()

    assert isinstance(harness.step_until_done(), Settled)
    after = harness.live("deployments", "web", "apis/apps/v1")
    assert made is not None
    assert after is not None
    assert after["metadata"]["uid"] == made["metadata"]["uid"]
    assert not isinstance(harness.step(), Stopped)
