"""An object from its making to its end, on a real API server."""

from setpoint.core.decide import Decision
from setpoint.core.plan import Action
from setpoint.engine.context import Settled
from tests.cluster.objects.object_harness import Site, config_map, deployment


def test_makes_an_object_and_says_which(site: Site) -> None:
    outcome = site.settle(config_map(a="1"))

    live = site.live("configmaps", "map")
    assert live is not None
    assert outcome.plan.writes[0].action is Action.CREATE
    assert live["data"] == {"a": "1"}
    assert site.ready() == ("True", "UpToDate")
    assert site.status()["object"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": site.namespace,
        "name": "map",
        "uid": live["metadata"]["uid"],
    }


def test_a_second_step_finds_nothing_and_writes_nothing(site: Site) -> None:
    site.settle(deployment())
    before = site.live("deployments", "web", "apis/apps/v1"), site.status(), site.writes()

    outcome = site.step()

    assert isinstance(outcome, Settled)
    assert (outcome.plan.decision, outcome.plan.writes) == (Decision.IN_SYNC, ())
    assert (site.live("deployments", "web", "apis/apps/v1"), site.status(), site.writes()) == before


def test_the_plan_of_a_creation_has_every_field_and_makes_nothing(site: Site) -> None:
    site.declare(config_map(a="1", b="2"))

    plan = site.plan()

    assert [write.action for write in plan.writes] == [Action.CREATE]
    assert {str(one.path): one.after for one in plan.changes} == {"data.a": "1", "data.b": "2"}
    assert site.live("configmaps", "map") is None


def test_changes_what_the_author_changed_and_tells_before_and_after(site: Site) -> None:
    site.settle(deployment(replicas=1))
    site.declare(deployment(replicas=1, image="nginx:2"))

    assert site.changes() == {"spec.template.spec.containers[name=main].image": ("nginx:1", "nginx:2")}
    outcome = site.go_on()
    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.INTENT_CHANGED
    live = site.live("deployments", "web", "apis/apps/v1")
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_a_field_that_the_author_leaves_out_goes(site: Site) -> None:
    site.settle(config_map(a="1", b="2"))

    site.settle(config_map(a="1"))

    live = site.live("configmaps", "map")
    assert live is not None
    assert live["data"] == {"a": "1"}


def test_deletes_the_object(site: Site) -> None:
    site.settle(config_map(a="1"))

    site.remove()

    assert site.is_gone()
    assert site.live("configmaps", "map") is None


def test_a_deleted_object_is_created_again(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.access.call("DELETE", site.path("configmaps", "map"))

    outcome = site.go_on()

    assert isinstance(outcome, Settled)
    assert outcome.plan.writes[0].action is Action.CREATE
    assert site.live("configmaps", "map") is not None
