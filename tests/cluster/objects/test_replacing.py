"""Replacement and deletion of objects."""

from typing import Any

import pytest

from setpoint.core.plan import Action, PlannedWrite
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Present, ResolvedReferences
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.errors import (
    ImmutableFieldChanged,
    LocationChanged,
    RemoteConflict,
    StillWaiting,
    UserError,
    WaitTimedOut,
)
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"
HELD = "example.com/held"


def selecting(label: str) -> Tree:
    made = deployment()
    made["spec"]["selector"]["matchLabels"] = {"app": label}
    made["spec"]["template"]["metadata"]["labels"] = {"app": label}
    return made


def uid_of(harness: ObjectHarness, plural: str = "deployments", name: str = "web", api: str = APPS) -> Any:
    live = harness.live(plural, name, api)
    assert live is not None
    return live["metadata"]["uid"]


def held(**data: str) -> Tree:
    made = config_map(**data)
    made["metadata"]["finalizers"] = [HELD]
    return made


def remove_finalizers(harness: ObjectHarness, name: str = "map") -> None:
    harness.edit(harness.path("configmaps", name), {"metadata": {"finalizers": None}})


# --- Immutable fields -------------------------------------------------------------------------------------------------


def test_a_changed_immutable_field_is_refused_by_name(harness: ObjectHarness) -> None:
    harness.settle(selecting("a"))
    before = uid_of(harness)
    harness.declare(selecting("b"))

    with pytest.raises(ImmutableFieldChanged) as caught:
        harness.plan()
    assert caught.value.paths == ("spec.selector",)
    assert "field is immutable" in str(caught.value)
    assert "spec.replace: true" in str(caught.value)
    assert isinstance(harness.stop_reason(), ImmutableFieldChanged)
    assert harness.ready() == ("False", "ImmutableFieldChanged")
    assert uid_of(harness) == before


def test_a_changed_immutable_field_replaces_the_object_when_that_is_allowed(harness: ObjectHarness) -> None:
    harness.settle(selecting("a"))
    before = uid_of(harness)
    harness.declare(selecting("b"), replace=True)

    plan = harness.plan()
    assert [write.action for write in plan.writes] == [Action.REPLACE]
    ((path, (was, now)),) = harness.changes().items()
    assert (path, was["matchLabels"], now["matchLabels"]) == ("spec.selector", {"app": "a"}, {"app": "b"})
    assert isinstance(harness.step_until_done(), Settled)
    assert uid_of(harness) != before
    assert harness.plan().is_empty


def test_a_protected_object_is_not_replaced(harness: ObjectHarness) -> None:
    harness.settle(selecting("a"))
    before = uid_of(harness)
    harness.declare(selecting("b"), replace=True, deleteProtection=True)

    assert "spec.deleteProtection" in str(harness.stop_reason())
    assert uid_of(harness) == before


def test_an_invalid_change_replaces_nothing(harness: ObjectHarness) -> None:
    harness.settle(deployment())
    before = uid_of(harness)
    harness.declare(deployment(replicas=-1), replace=True)

    assert isinstance(harness.step(), Stopped)
    assert uid_of(harness) == before


def test_the_template_of_a_job_is_immutable(harness: ObjectHarness) -> None:
    def job(image: str) -> Tree:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "run"},
            "spec": {"template": {"spec": pod}},
        }

    harness.settle(job("a:1"))
    before = uid_of(harness, "jobs", "run", BATCH)
    harness.declare(job("a:2"))
    assert isinstance(harness.stop_reason(), ImmutableFieldChanged)

    harness.settle(job("a:2"), replace=True)
    assert uid_of(harness, "jobs", "run", BATCH) != before


def test_fields_of_a_stateful_set_are_immutable(harness: ObjectHarness) -> None:
    def stateful(service: str) -> Tree:
        return deployment("db", serviceName=service) | {"kind": "StatefulSet"}

    harness.settle(stateful("a"))
    harness.declare(stateful("b"))

    error = harness.stop_reason()

    assert isinstance(error, ImmutableFieldChanged)
    assert "updates to statefulset spec" in str(error)


def test_the_role_of_a_binding_is_immutable(harness: ObjectHarness) -> None:
    group = "rbac.authorization.k8s.io"

    def binding(role: str) -> Tree:
        return {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "bind"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [],
        }

    harness.settle(binding("view"))
    harness.declare(binding("edit"))

    assert isinstance(harness.stop_reason(), ImmutableFieldChanged)


# --- Another object ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        config_map("another", a="1"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "map"}, "stringData": {"a": "1"}},
    ],
)
def test_another_name_or_kind_is_refused_until_it_is_allowed(other: Tree, harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.declare(other)

    assert isinstance(harness.stop_reason(), LocationChanged)
    assert harness.live("configmaps", "map") is not None
    harness.declare(other, replace=True)
    assert [write.action for write in harness.plan().writes] == [Action.REPLACE]
    assert isinstance(harness.step_until_done(), Settled)
    assert harness.live("configmaps", "map") is None
    assert harness.live("secrets" if other["kind"] == "Secret" else "configmaps", other["metadata"]["name"]) is not None


# --- Deletion ---------------------------------------------------------------------------------------------------------


def test_a_protected_object_is_not_deleted_until_the_protection_is_lifted(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"), deleteProtection=True)

    outcome = harness.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, UserError)
    assert "spec.deleteProtection" in str(outcome.error)
    assert harness.live("configmaps", "map") is not None
    lifted = {"setpoint.dev/delete-protection": "false"}
    harness.declare(config_map(a="1"), deleteProtection=True, annotations=lifted)
    assert harness.is_gone()
    assert harness.live("configmaps", "map") is None


def test_a_deletion_names_the_finalizer_and_ends_when_it_is_removed(harness: ObjectHarness) -> None:
    harness.settle(held(a="1"))

    outcome = harness.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, StillWaiting)
    assert str(outcome.error) == f"ConfigMap {harness.namespace}/map is being deleted; held by the finalizer {HELD}"
    (condition,) = harness.status()["conditions"]
    assert HELD in condition["message"]
    remove_finalizers(harness)
    assert harness.is_gone()


def test_a_deletion_that_times_out_names_its_finalizers(harness: ObjectHarness) -> None:
    harness.settle(held(a="1"), deletion={"timeout": "1ms"})
    harness.remove()

    outcome = harness.step_until_done()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, WaitTimedOut)
    assert f"held by the finalizer {HELD}" in str(outcome.error)
    remove_finalizers(harness)
    assert harness.is_gone()


def test_an_object_that_is_being_deleted_is_created_again_once_it_is_gone(harness: ObjectHarness) -> None:
    harness.settle(held(a="1"))
    before = uid_of(harness, "configmaps", "map", "api/v1")
    harness.access.call("DELETE", harness.path("configmaps", "map"))

    error = harness.stop_reason()

    assert isinstance(error, StillWaiting)
    assert HELD in str(error)
    remove_finalizers(harness)
    assert isinstance(harness.step_until_done(), Settled)
    assert uid_of(harness, "configmaps", "map", "api/v1") != before


def test_an_abandoned_object_stays(harness: ObjectHarness) -> None:
    abandon = {"cnrm.cloud.google.com/deletion-policy": "abandon"}
    harness.settle(config_map(a="1"), annotations=abandon)

    assert isinstance(harness.remove(), Gone)
    assert harness.live("configmaps", "map") is not None


def test_a_recreated_object_is_not_deleted(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    resource = harness.run(harness.store.get(harness.ref()))
    assert resource is not None
    kind, location = harness.kind, harness.kind.locate(resource, ResolvedReferences())
    observation = harness.run(kind.observe(location))
    assert isinstance(observation, Present)
    harness.access.call("DELETE", harness.path("configmaps", "map"))
    harness.access.call("POST", harness.path("configmaps"), config_map(another="1"))

    with pytest.raises(RemoteConflict):
        harness.run(kind.delete(location, observation, resource))

    live = harness.live("configmaps", "map")
    assert live is not None
    assert live["data"] == {"another": "1"}


def test_a_deleted_object_is_not_recreated_by_an_update(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.declare(config_map(a="2"))
    resource = harness.run(harness.store.get(harness.ref()))
    assert resource is not None
    intent = harness.run(resolve_intent(resource, harness.engine))
    observation = harness.run(harness.kind.observe(intent.location))
    assert isinstance(observation, Present)
    harness.access.call("DELETE", harness.path("configmaps", "map"))

    with pytest.raises(RemoteConflict):
        harness.run(harness.kind.update(intent, {}, PlannedWrite(Action.UPDATE, "update"), observation))

    assert harness.live("configmaps", "map") is None


@pytest.mark.usefixtures("controllers")
def test_owned_objects_stay_with_orphan_propagation(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"), deletion={"propagation": "Orphan"})
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "map",
        "uid": uid_of(harness, "configmaps", "map", "api/v1"),
    }
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [owner]
    harness.access.call("POST", harness.path("configmaps"), child)

    harness.remove()

    assert harness.is_gone()
    live = harness.live("configmaps", "child")
    assert live is not None
    assert "ownerReferences" not in live["metadata"]


@pytest.mark.usefixtures("controllers")
def test_the_deletion_of_a_namespace_names_what_blocks_it(harness: ObjectHarness) -> None:
    inner = f"{harness.namespace}-in"
    harness.settle({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}, "space")
    stuck = held(a="1")
    stuck["metadata"]["namespace"] = inner
    harness.settle(stuck, "stuck")
    harness.remove("space")

    error = harness.stop_reason("space")
    while HELD not in str(error):
        # The namespace controller has not reported yet.
        assert isinstance(error, StillWaiting), error
        error = harness.stop_reason("space")

    assert "held by the finalizer kubernetes (until what is in it is gone)" in str(error)
    # The namespace controller would notice after 8 s; the end of a namespace is awaited in test_command_line.py.
    harness.edit(f"/api/v1/namespaces/{inner}/configmaps/map", {"metadata": {"finalizers": None}})
