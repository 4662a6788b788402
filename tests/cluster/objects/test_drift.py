"""What others change, on a real API server: what was ours is put back, everything else is theirs."""

from typing import Any

import pytest

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.values.json_types import MISSING
from setpoint.engine.context import Settled
from setpoint.errors import HeldByOthers, RemoteRefused
from tests.cluster.objects.object_harness import Site, config_map, deployment

APPS = "apis/apps/v1"


def data_of(site: Site, name: str = "map") -> Any:
    live = site.live("configmaps", name)
    assert live is not None
    return live["data"]


def endpoint(site: Site, name: str = "map") -> Endpoint:
    return Endpoint("", "v1", "configmaps", site.namespace, name)


# --- Drift ------------------------------------------------------------------------------------------------------------


def test_what_a_person_changed_is_put_back(site: Site) -> None:
    site.settle(config_map(a="1", b="2"))
    site.edit(site.path("configmaps", "map"), {"data": {"a": "changed"}})

    assert site.changes() == {"data.a": ("changed", "1")}
    outcome = site.go_on()

    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.DRIFTED
    assert [write.name for write in outcome.plan.writes] == ["put back"]
    assert data_of(site) == {"a": "1", "b": "2"}
    assert site.plan().is_empty


def test_what_a_person_removed_is_put_back(site: Site) -> None:
    site.settle(config_map(a="1", b="2"))
    site.edit(site.path("configmaps", "map"), {"data": {"a": None}})

    outcome = site.go_on()

    assert isinstance(outcome, Settled)
    assert data_of(site) == {"a": "1", "b": "2"}


def test_what_a_person_scaled_is_put_back(site: Site) -> None:
    site.settle(deployment(replicas=2))
    site.edit(site.path("deployments", "web/scale", APPS), {"spec": {"replicas": 5}})

    assert site.changes() == {"spec.replicas": (5, 2)}
    site.go_on()

    live = site.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_what_a_person_changed_and_changed_back_is_ours_again(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.edit(site.path("configmaps", "map"), {"data": {"a": "2"}})
    site.edit(site.path("configmaps", "map"), {"data": {"a": "1"}})

    assert isinstance(site.go_on(), Settled)
    site.edit(site.path("configmaps", "map"), {"data": {"a": "3"}})

    assert site.changes() == {"data.a": ("3", "1")}


def test_a_field_of_another_manager_is_no_drift_and_costs_no_write(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.edit(site.path("configmaps", "map"), {"data": {"b": "theirs"}, "metadata": {"labels": {"team": "x"}}})
    writes = site.writes()

    outcome = site.step()

    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC
    assert site.writes() == writes
    assert data_of(site) == {"a": "1", "b": "theirs"}


def test_the_order_of_containers_is_drift(site: Site) -> None:
    both = deployment()
    both["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    site.settle(both)
    live = site.live("deployments", "web", APPS)
    assert live is not None
    containers = live["spec"]["template"]["spec"]["containers"][::-1]
    site.edit(site.path("deployments", "web", APPS), {"spec": {"template": {"spec": {"containers": containers}}}})

    before, after = site.changes()["spec.template.spec.containers"]

    assert (before, after) == (["[name=side]", "[name=main]"], ["[name=main]", "[name=side]"])


@pytest.mark.parametrize("reads_as", ["map", "text"])
def test_another_form_of_the_same_manifest_changes_nothing(reads_as: str, site: Site) -> None:
    site.settle(config_map(a="1"))
    text = "# a comment\nkind: ConfigMap\ndata:   {a: '1'}\nmetadata: {name: map}\napiVersion: v1\n"
    turned = dict(reversed(config_map(a="1").items()))

    site.declare(text if reads_as == "text" else turned)

    assert site.plan().is_empty
    version = site.live("configmaps", "map")
    assert isinstance(site.go_on(), Settled)
    assert site.live("configmaps", "map") == version


# --- Conflicts --------------------------------------------------------------------------------------------------------


def test_a_conflict_names_every_field_and_its_holder(site: Site) -> None:
    site.apply_as("helm", endpoint(site), {**config_map(a="theirs", b="theirs"), "metadata": {"name": "map"}})
    site.declare(config_map(a="1", b="2"))

    error = site.stop()

    assert isinstance(error, HeldByOthers)
    assert set(error.held) == {("data.a", "helm"), ("data.b", "helm")}
    assert str(error).startswith(f"ConfigMap {site.namespace}/map: data.a is held by helm; data.b is held by helm. ")
    assert "spec.forceConflicts: true" in str(error)
    assert "spec.ignoreFields" in str(error)
    assert data_of(site) == {"a": "theirs", "b": "theirs"}


def test_a_conflict_shows_in_the_plan(site: Site) -> None:
    site.apply_as("helm", endpoint(site), config_map(a="theirs"))
    site.declare(config_map(a="1"))

    with pytest.raises(HeldByOthers):
        site.plan()


def test_force_takes_over(site: Site) -> None:
    site.apply_as("helm", endpoint(site), config_map(a="theirs", b="theirs"))

    site.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(site) == {"a": "1", "b": "theirs"}


def test_another_applier_of_a_field_that_was_ours_is_a_conflict(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.apply_as("helm", endpoint(site), config_map(a="theirs"), force=True)

    error = site.stop()

    assert isinstance(error, HeldByOthers)
    assert error.held == (("data.a", "helm"),)
    assert data_of(site) == {"a": "theirs"}


def test_a_person_and_the_author_at_once_is_a_conflict(site: Site) -> None:
    site.settle(config_map(a="1", b="1"))
    site.edit(site.path("configmaps", "map"), {"data": {"a": "changed"}})
    site.declare(config_map(a="1", b="2"))

    assert isinstance(site.stop(), HeldByOthers)


def test_an_object_with_the_same_values_is_adopted_and_kept_from_then_on(site: Site) -> None:
    site.access.call("POST", site.path("configmaps"), config_map(a="1"))
    site.declare(config_map(a="1"))

    manager = f"setpoint/{site.namespace}/one"
    assert site.changes() == {f"metadata.managedFields[manager={manager}]": (MISSING, "1 field")}
    assert isinstance(site.go_on(), Settled)
    site.edit(site.path("configmaps", "map"), {"data": {"a": "2"}})
    assert site.changes() == {"data.a": ("2", "1")}


def test_an_object_that_another_resource_keeps_is_refused(site: Site) -> None:
    site.settle(config_map(a="1"), "first")
    site.declare(config_map(b="2"), "second")

    error = site.stop("second")

    assert type(error) is RemoteRefused
    assert f"is kept by KubernetesObject {site.namespace}/first" in str(error)
    assert data_of(site) == {"a": "1"}


def test_an_object_is_taken_over_from_another_resource_with_force(site: Site) -> None:
    site.settle(config_map(a="1"), "first")

    site.settle(config_map(a="2"), "second", forceConflicts=True)

    assert data_of(site) == {"a": "2"}
    assert f"is kept by KubernetesObject {site.namespace}/second" in str(site.stop("first"))


# --- Fields that are left to others -----------------------------------------------------------------------------------


def test_an_ignored_field_is_set_once_and_then_left_alone(site: Site) -> None:
    site.settle(deployment(replicas=2), ignoreFields=["spec.replicas"])
    site.edit(site.path("deployments", "web/scale", APPS), {"spec": {"replicas": 5}})

    assert site.plan().is_empty
    assert isinstance(site.go_on(), Settled)
    writes = site.writes()
    site.edit(site.path("deployments", "web/scale", APPS), {"spec": {"replicas": 7}})
    assert isinstance(site.step(), Settled)
    assert site.writes() == writes
    live = site.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 7


def test_another_change_leaves_an_ignored_field_as_it_is(site: Site) -> None:
    site.settle(deployment(replicas=2), ignoreFields=["spec.replicas"])
    site.settle(deployment(replicas=3, image="nginx:2"), ignoreFields=["spec.replicas"])

    live = site.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_letting_go_of_a_field_does_not_delete_it(site: Site) -> None:
    site.settle(config_map(a="1", b="2"))

    site.settle(config_map(a="1"), ignoreFields=["data.b"])

    assert data_of(site) == {"a": "1", "b": "2"}


def test_an_ignored_field_that_another_applier_has_is_no_conflict(site: Site) -> None:
    site.settle(config_map(a="1", b="2"), ignoreFields=["data.b"])
    site.apply_as("helm", endpoint(site), config_map(b="theirs"), force=True)

    assert site.plan().is_empty
    assert isinstance(site.go_on(), Settled)
    assert data_of(site) == {"a": "1", "b": "theirs"}


def test_a_field_that_is_ignored_no_longer_is_a_conflict_until_it_is_forced(site: Site) -> None:
    site.settle(config_map(a="1"), ignoreFields=["data.a"])
    site.edit(site.path("configmaps", "map"), {"data": {"a": "theirs"}})
    site.go_on()

    site.declare(config_map(a="1"))
    assert isinstance(site.stop(), HeldByOthers)
    site.settle(config_map(a="1"), forceConflicts=True)

    assert data_of(site) == {"a": "1"}


@pytest.mark.parametrize(
    "path",
    [
        "spec.template.spec.containers[name=main].image",
        "spec.template.spec.containers[?(@.name=='main')].image",
        "spec.template.spec.containers[0].image",
    ],
)
def test_a_field_of_an_element_can_be_ignored(path: str, site: Site) -> None:
    site.settle(deployment(image="nginx:1"), ignoreFields=[path])
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "theirs:1"}]}}}}
    site.edit(site.path("deployments", "web", APPS), patch)

    assert site.plan().is_empty
    site.settle(deployment(image="nginx:1", minReadySeconds=3), ignoreFields=[path])
    live = site.live("deployments", "web", APPS)
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "theirs:1"
