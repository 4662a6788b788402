"""Create, update and delete of objects on a real API server."""

from setpoint.core.decide import Decision
from setpoint.core.plan import Action
from setpoint.engine.step.outcomes import Settled
from tests.cluster.objects.object_harness import ObjectHarness, config_map, deployment


def test_creates_the_object_and_records_its_identity(harness: ObjectHarness) -> None:
    outcome = harness.settle(config_map(a="1"))

    live = harness.live("configmaps", "map")
    assert live is not None
    assert outcome.plan.writes[0].action is Action.CREATE
    assert live["data"] == {"a": "1"}
    assert harness.ready() == ("True", "UpToDate")
    assert harness.status()["object"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": harness.namespace,
        "name": "map",
        "uid": live["metadata"]["uid"],
    }


def test_a_second_step_is_in_sync_and_writes_nothing(harness: ObjectHarness) -> None:
    harness.settle(deployment())
    before = harness.live("deployments", "web", "apis/apps/v1"), harness.status(), harness.writes()

    outcome = harness.step()

    assert isinstance(outcome, Settled)
    assert (outcome.plan.decision, outcome.plan.writes) == (Decision.IN_SYNC, ())
    assert (harness.live("deployments", "web", "apis/apps/v1"), harness.status(), harness.writes()) == before


def test_the_plan_of_a_creation_has_every_field_and_creates_nothing(harness: ObjectHarness) -> None:
    harness.declare(config_map(a="1", b="2"))

    plan = harness.plan()

    assert [write.action for write in plan.writes] == [Action.CREATE]
    assert {str(one.path): one.after for one in plan.changes} == {"data.a": "1", "data.b": "2"}
    assert harness.live("configmaps", "map") is None


def test_a_change_of_the_spec_is_planned_and_written(harness: ObjectHarness) -> None:
    harness.settle(deployment(replicas=1))
    harness.declare(deployment(replicas=1, image="nginx:2"))

    assert harness.changes() == {"spec.template.spec.containers[name=main].image": ("nginx:1", "nginx:2")}
    outcome = harness.step_until_done()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.INTENT_CHANGED
    live = harness.live("deployments", "web", "apis/apps/v1")
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_a_field_that_is_removed_from_the_manifest_is_removed(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1", b="2"))

    harness.settle(config_map(a="1"))

    live = harness.live("configmaps", "map")
    assert live is not None
    assert live["data"] == {"a": "1"}


def test_deletes_the_object(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))

    harness.remove()

    assert harness.is_gone()
    assert harness.live("configmaps", "map") is None


def test_a_deleted_object_is_created_again(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    harness.access.call("DELETE", harness.path("configmaps", "map"))

    outcome = harness.step_until_done()

    assert isinstance(outcome, Settled)
    assert outcome.plan.writes[0].action is Action.CREATE
    assert harness.live("configmaps", "map") is not None
