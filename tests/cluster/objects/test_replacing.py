"""Objects that cannot become what they should be, and objects on their way out."""

from typing import Any

import pytest

from setpoint.core.plan import Action, PlannedWrite
from setpoint.engine.context import Gone, Settled, Stopped
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Present, ResolvedReferences
from setpoint.errors import (
    ImmutableFieldChanged,
    LocationChanged,
    RemoteConflict,
    StillWaiting,
    UserError,
    WaitTimedOut,
)
from tests.cluster.objects.object_harness import Site, Tree, config_map, deployment

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"
HELD = "example.com/held"


def selecting(label: str) -> Tree:
    made = deployment()
    made["spec"]["selector"]["matchLabels"] = {"app": label}
    made["spec"]["template"]["metadata"]["labels"] = {"app": label}
    return made


def uid_of(site: Site, plural: str = "deployments", name: str = "web", api: str = APPS) -> Any:
    live = site.live(plural, name, api)
    assert live is not None
    return live["metadata"]["uid"]


def held(**data: str) -> Tree:
    made = config_map(**data)
    made["metadata"]["finalizers"] = [HELD]
    return made


def let_go(site: Site, name: str = "map") -> None:
    site.edit(site.path("configmaps", name), {"metadata": {"finalizers": None}})


# --- Immutable fields -------------------------------------------------------------------------------------------------


def test_an_immutable_field_is_refused_by_name(site: Site) -> None:
    site.settle(selecting("a"))
    before = uid_of(site)
    site.declare(selecting("b"))

    with pytest.raises(ImmutableFieldChanged) as caught:
        site.plan()
    assert caught.value.paths == ("spec.selector",)
    assert "field is immutable" in str(caught.value)
    assert "spec.replace: true" in str(caught.value)
    assert isinstance(site.stop(), ImmutableFieldChanged)
    assert site.ready() == ("False", "ImmutableFieldChanged")
    assert uid_of(site) == before


def test_an_immutable_field_makes_a_new_object_when_that_is_allowed(site: Site) -> None:
    site.settle(selecting("a"))
    before = uid_of(site)
    site.declare(selecting("b"), replace=True)

    plan = site.plan()
    assert [write.action for write in plan.writes] == [Action.REPLACE]
    ((path, (was, now)),) = site.changes().items()
    assert (path, was["matchLabels"], now["matchLabels"]) == ("spec.selector", {"app": "a"}, {"app": "b"})
    assert isinstance(site.go_on(), Settled)
    assert uid_of(site) != before
    assert site.plan().is_empty


def test_a_protected_object_is_not_replaced(site: Site) -> None:
    site.settle(selecting("a"))
    before = uid_of(site)
    site.declare(selecting("b"), replace=True, deleteProtection=True)

    assert "spec.deleteProtection" in str(site.stop())
    assert uid_of(site) == before


def test_a_change_that_is_just_wrong_replaces_nothing(site: Site) -> None:
    site.settle(deployment())
    before = uid_of(site)
    site.declare(deployment(replicas=-1), replace=True)

    assert isinstance(site.step(), Stopped)
    assert uid_of(site) == before


def test_the_template_of_a_job_is_immutable(site: Site) -> None:
    def job(image: str) -> Tree:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "run"},
            "spec": {"template": {"spec": pod}},
        }

    site.settle(job("a:1"))
    before = uid_of(site, "jobs", "run", BATCH)
    site.declare(job("a:2"))
    assert isinstance(site.stop(), ImmutableFieldChanged)

    site.settle(job("a:2"), replace=True)
    assert uid_of(site, "jobs", "run", BATCH) != before


def test_fields_of_a_stateful_set_are_immutable(site: Site) -> None:
    def stateful(service: str) -> Tree:
        return deployment("db", serviceName=service) | {"kind": "StatefulSet"}

    site.settle(stateful("a"))
    site.declare(stateful("b"))

    error = site.stop()

    assert isinstance(error, ImmutableFieldChanged)
    assert "updates to statefulset spec" in str(error)


def test_the_role_of_a_binding_is_immutable(site: Site) -> None:
    group = "rbac.authorization.k8s.io"

    def binding(role: str) -> Tree:
        return {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "bind"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [],
        }

    site.settle(binding("view"))
    site.declare(binding("edit"))

    assert isinstance(site.stop(), ImmutableFieldChanged)


# --- Another object ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        config_map("another", a="1"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "map"}, "stringData": {"a": "1"}},
    ],
)
def test_another_name_or_kind_is_refused_until_it_is_allowed(other: Tree, site: Site) -> None:
    site.settle(config_map(a="1"))
    site.declare(other)

    assert isinstance(site.stop(), LocationChanged)
    assert site.live("configmaps", "map") is not None
    site.declare(other, replace=True)
    assert [write.action for write in site.plan().writes] == [Action.REPLACE]
    assert isinstance(site.go_on(), Settled)
    assert site.live("configmaps", "map") is None
    assert site.live("secrets" if other["kind"] == "Secret" else "configmaps", other["metadata"]["name"]) is not None


# --- Deletion ---------------------------------------------------------------------------------------------------------


def test_a_protected_object_is_not_deleted_until_it_may_be(site: Site) -> None:
    site.settle(config_map(a="1"), deleteProtection=True)

    outcome = site.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, UserError)
    assert "spec.deleteProtection" in str(outcome.error)
    assert site.live("configmaps", "map") is not None
    lifted = {"setpoint.dev/delete-protection": "false"}
    site.declare(config_map(a="1"), deleteProtection=True, annotations=lifted)
    assert site.is_gone()
    assert site.live("configmaps", "map") is None


def test_a_deletion_says_which_finalizer_holds_it_and_goes_on_when_it_is_gone(site: Site) -> None:
    site.settle(held(a="1"))

    outcome = site.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, StillWaiting)
    assert str(outcome.error) == f"ConfigMap {site.namespace}/map is being deleted; held by the finalizer {HELD}"
    (condition,) = site.status()["conditions"]
    assert HELD in condition["message"]
    let_go(site)
    assert site.is_gone()


def test_a_deletion_that_takes_too_long_is_told_with_its_finalizers(site: Site) -> None:
    site.settle(held(a="1"), deletion={"timeout": "1ms"})
    site.remove()

    outcome = site.go_on()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, WaitTimedOut)
    assert f"held by the finalizer {HELD}" in str(outcome.error)
    let_go(site)
    assert site.is_gone()


def test_an_object_that_is_being_deleted_is_created_again_once_it_is_gone(site: Site) -> None:
    site.settle(held(a="1"))
    before = uid_of(site, "configmaps", "map", "api/v1")
    site.access.call("DELETE", site.path("configmaps", "map"))

    error = site.stop()

    assert isinstance(error, StillWaiting)
    assert HELD in str(error)
    let_go(site)
    assert isinstance(site.go_on(), Settled)
    assert uid_of(site, "configmaps", "map", "api/v1") != before


def test_an_abandoned_object_stays(site: Site) -> None:
    abandon = {"cnrm.cloud.google.com/deletion-policy": "abandon"}
    site.settle(config_map(a="1"), annotations=abandon)

    assert isinstance(site.remove(), Gone)
    assert site.live("configmaps", "map") is not None


def test_only_the_very_object_is_deleted(site: Site) -> None:
    site.settle(config_map(a="1"))
    resource = site.run(site.store.get(site.ref()))
    assert resource is not None
    kind, location = site.kind, site.kind.locate(resource, ResolvedReferences())
    look = site.run(kind.observe(location))
    assert isinstance(look, Present)
    site.access.call("DELETE", site.path("configmaps", "map"))
    site.access.call("POST", site.path("configmaps"), config_map(another="1"))

    with pytest.raises(RemoteConflict):
        site.run(kind.delete(location, look, resource))

    live = site.live("configmaps", "map")
    assert live is not None
    assert live["data"] == {"another": "1"}


def test_only_the_very_object_is_updated(site: Site) -> None:
    site.settle(config_map(a="1"))
    site.declare(config_map(a="2"))
    resource = site.run(site.store.get(site.ref()))
    assert resource is not None
    intent = site.run(resolve_intent(resource, site.engine))
    look = site.run(site.kind.observe(intent.location))
    assert isinstance(look, Present)
    site.access.call("DELETE", site.path("configmaps", "map"))

    with pytest.raises(RemoteConflict):
        site.run(site.kind.update(intent, {}, PlannedWrite(Action.UPDATE, "update"), look))

    assert site.live("configmaps", "map") is None


@pytest.mark.usefixtures("controllers")
def test_what_an_object_owns_stays_when_the_author_wants_it_to(site: Site) -> None:
    site.settle(config_map(a="1"), deletion={"propagation": "Orphan"})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "map", "uid": uid_of(site, "configmaps", "map", "api/v1")}
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [owner]
    site.access.call("POST", site.path("configmaps"), child)

    site.remove()

    assert site.is_gone()
    live = site.live("configmaps", "child")
    assert live is not None
    assert "ownerReferences" not in live["metadata"]


@pytest.mark.usefixtures("controllers")
def test_a_namespace_says_what_holds_it(site: Site) -> None:
    inner = f"{site.namespace}-in"
    site.settle({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}, "space")
    stuck = held(a="1")
    stuck["metadata"]["namespace"] = inner
    site.settle(stuck, "stuck")
    site.remove("space")

    error = site.stop("space")
    while HELD not in str(error):
        # The controller tells when it has looked.
        assert isinstance(error, StillWaiting), error
        error = site.stop("space")

    assert "held by the finalizer kubernetes (until what is in it is gone)" in str(error)
    site.edit(f"/api/v1/namespaces/{inner}/configmaps/map", {"metadata": {"finalizers": None}})
    assert site.is_gone("space")
