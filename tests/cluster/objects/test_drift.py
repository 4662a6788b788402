"""Drift on a real API server: managed fields are reverted, those of other field managers are left alone."""

from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.values.json_types import MISSING
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import HeldByOthers, ManagementConflict, RemoteRefused
from tests.cluster.objects.object_harness import ObjectHarness, config_map, deployment

APPS = "apis/apps/v1"


def data_of(harness: ObjectHarness, name: str = "map") -> Any:
    live = harness.live("configmaps", name)
    assert live is not None
    return live["data"]


def endpoint(harness: ObjectHarness, name: str = "map") -> Endpoint:
    return Endpoint("", "v1", "configmaps", harness.namespace, name)


# --- Drift ------------------------------------------------------------------------------------------------------------


def test_a_changed_field_is_reverted(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "changed"}})

    assert harness.changes() == {"data.a": ("changed", "1")}
    outcome = harness.step_until_done()

    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.DRIFTED
    assert [write.name for write in outcome.plan.writes] == ["put back"]
    assert data_of(harness) == {"a": "1", "b": "2"}
    assert harness.plan().is_empty


def test_a_removed_field_is_restored(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": None}})

    outcome = harness.step_until_done()

    assert isinstance(outcome, Settled)
    assert data_of(harness) == {"a": "1", "b": "2"}


def test_a_change_by_the_scale_subresource_is_reverted(harness: ObjectHarness) -> None:
    harness.settle(deployment(replicas=2))
    harness.edit(harness.path("deployments", "web/scale", APPS), {"spec": {"replicas": 5}})

    assert harness.changes() == {"spec.replicas": (5, 2)}
    harness.step_until_done()

    live = harness.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_a_field_that_was_changed_and_changed_back_is_managed_again(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "1"}})

    assert isinstance(harness.step_until_done(), Settled)
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "3"}})

    assert harness.changes() == {"data.a": ("3", "1")}


def test_a_field_of_another_manager_is_no_drift_and_costs_no_write(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"b": "theirs"}, "metadata": {"labels": {"team": "x"}}})
    writes = harness.writes()

    outcome = harness.step()

    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC
    assert harness.writes() == writes
    assert data_of(harness) == {"a": "1", "b": "theirs"}


def test_the_order_of_containers_is_drift(harness: ObjectHarness) -> None:
    both = deployment()
    both["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    harness.settle(both)
    live = harness.live("deployments", "web", APPS)
    assert live is not None
    containers = live["spec"]["template"]["spec"]["containers"][::-1]
    harness.edit(harness.path("deployments", "web", APPS), {"spec": {"template": {"spec": {"containers": containers}}}})

    before, after = harness.changes()["spec.template.spec.containers"]

    assert (before, after) == (["[name=side]", "[name=main]"], ["[name=main]", "[name=side]"])


@pytest.mark.parametrize("reads_as", ["map", "text"])
def test_an_equivalent_manifest_changes_nothing(reads_as: str, harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    text = "# a comment\nkind: ConfigMap\ndata:   {a: '1'}\nmetadata: {name: map}\napiVersion: v1\n"
    turned = dict(reversed(config_map(a="1").items()))

    harness.declare(text if reads_as == "text" else turned)

    assert harness.plan().is_empty
    version = harness.live("configmaps", "map")
    assert isinstance(harness.step_until_done(), Settled)
    assert harness.live("configmaps", "map") == version


# --- Conflicts --------------------------------------------------------------------------------------------------------


def test_a_conflict_names_every_field_and_its_manager(harness: ObjectHarness) -> None:
    harness.apply_as("helm", endpoint(harness), {**config_map(a="theirs", b="theirs"), "metadata": {"name": "map"}})
    harness.declare(config_map(a="1", b="2"))

    error = harness.stop_reason()

    assert isinstance(error, HeldByOthers)
    assert set(error.held) == {("data.a", "helm"), ("data.b", "helm")}
    assert str(error).startswith(f"ConfigMap {harness.namespace}/map: data.a is held by helm; data.b is held by helm. ")
    assert "spec.forceConflicts: true" in str(error)
    assert "spec.ignoreFields" in str(error)
    assert data_of(harness) == {"a": "theirs", "b": "theirs"}


def test_a_conflict_shows_in_the_plan(harness: ObjectHarness) -> None:
    harness.apply_as("helm", endpoint(harness), config_map(a="theirs"))
    harness.declare(config_map(a="1"))

    with pytest.raises(HeldByOthers):
        harness.plan()


def test_force_conflicts_takes_over_the_field(harness: ObjectHarness) -> None:
    harness.apply_as("helm", endpoint(harness), config_map(a="theirs", b="theirs"))

    harness.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(harness) == {"a": "1", "b": "theirs"}


def test_a_managed_field_that_another_manager_took_over_is_a_conflict(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.apply_as("helm", endpoint(harness), config_map(a="theirs"), force=True)

    error = harness.stop_reason()

    assert isinstance(error, HeldByOthers)
    assert error.held == (("data.a", "helm"),)
    assert data_of(harness) == {"a": "theirs"}


def test_an_edit_by_author_and_another_writer_at_once_is_a_conflict(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="1"))
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "changed"}})
    harness.declare(config_map(a="1", b="2"))

    assert isinstance(harness.stop_reason(), HeldByOthers)


def test_an_object_with_the_same_values_is_adopted_and_then_managed(harness: ObjectHarness) -> None:
    harness.access.call("POST", harness.path("configmaps"), config_map(a="1"))
    harness.declare(config_map(a="1"))

    manager = f"setpoint/{harness.namespace}/one"
    assert harness.changes() == {f"metadata.managedFields[manager={manager}]": (MISSING, "1 field")}
    assert isinstance(harness.step_until_done(), Settled)
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})
    assert harness.changes() == {"data.a": ("2", "1")}


@pytest.mark.parametrize("is_forced", [False, True])
def test_an_object_of_another_resource_is_refused_and_with_force_as_well(
    harness: ObjectHarness, is_forced: bool
) -> None:
    harness.settle(config_map(a="1"), "first")
    harness.declare(config_map(b="2"), "second", forceConflicts=is_forced)

    error = harness.stop_reason("second")

    assert type(error) is ManagementConflict
    assert f"is managed by KubernetesObject {harness.namespace}/first already" in str(error)
    assert data_of(harness) == {"a": "1"}


def test_an_object_of_a_resource_in_another_store_is_taken_over_with_force(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"), "first")
    harness.forget("first")
    harness.declare(config_map(a="2"), "second")

    error = harness.stop_reason("second")
    harness.settle(config_map(a="2"), "second", forceConflicts=True)

    assert type(error) is RemoteRefused
    assert f"is kept by KubernetesObject {harness.namespace}/first" in str(error)
    assert data_of(harness) == {"a": "2"}


# --- Ignored fields ---------------------------------------------------------------------------------------------------


def test_an_ignored_field_is_set_once_and_then_left_alone(harness: ObjectHarness) -> None:
    harness.settle(deployment(replicas=2), ignoreFields=["spec.replicas"])
    harness.edit(harness.path("deployments", "web/scale", APPS), {"spec": {"replicas": 5}})

    assert harness.plan().is_empty
    assert isinstance(harness.step_until_done(), Settled)
    writes = harness.writes()
    harness.edit(harness.path("deployments", "web/scale", APPS), {"spec": {"replicas": 7}})
    assert isinstance(harness.step(), Settled)
    assert harness.writes() == writes
    live = harness.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 7


def test_another_change_leaves_an_ignored_field_as_it_is(harness: ObjectHarness) -> None:
    harness.settle(deployment(replicas=2), ignoreFields=["spec.replicas"])
    harness.settle(deployment(replicas=3, image="nginx:2"), ignoreFields=["spec.replicas"])

    live = harness.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_a_field_that_becomes_ignored_is_not_deleted(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"))

    harness.settle(config_map(a="1"), ignoreFields=["data.b"])

    assert data_of(harness) == {"a": "1", "b": "2"}


def test_an_ignored_field_of_another_manager_is_no_conflict(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"), ignoreFields=["data.b"])
    harness.apply_as("helm", endpoint(harness), config_map(b="theirs"), force=True)

    assert harness.plan().is_empty
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": "1", "b": "theirs"}


def test_a_field_that_is_no_longer_ignored_is_a_conflict_until_it_is_forced(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"), ignoreFields=["data.a"])
    harness.edit(harness.path("configmaps", "map"), {"data": {"a": "theirs"}})
    harness.step_until_done()

    harness.declare(config_map(a="1"))
    assert isinstance(harness.stop_reason(), HeldByOthers)
    harness.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(harness) == {"a": "1"}


@pytest.mark.parametrize(
    "path",
    [
        "spec.template.spec.containers[name=main].image",
        "spec.template.spec.containers[?(@.name=='main')].image",
        "spec.template.spec.containers[0].image",
    ],
)
def test_a_field_of_an_element_can_be_ignored(path: str, harness: ObjectHarness) -> None:
    harness.settle(deployment(image="nginx:1"), ignoreFields=[path])
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "theirs:1"}]}}}}
    harness.edit(harness.path("deployments", "web", APPS), patch)

    assert harness.plan().is_empty
    harness.settle(deployment(image="nginx:1", minReadySeconds=3), ignoreFields=[path])
    live = harness.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "theirs:1"
