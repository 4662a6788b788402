"""Objects wait for their kind and their namespace; cluster-scoped kinds have none."""

import secrets
from collections.abc import Iterator

import pytest

from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import KindNotServed, OperationRunning
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map
from tests.cluster.polling import until


def definition(group: str, *versions: str) -> Tree:
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        }
    }
    served = [{"name": one, "served": True, "storage": one == versions[-1], "schema": schema} for one in versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": served,
        },
    }


def widget(group: str, size: int = 1, version: str = "v1") -> Tree:
    return {"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}}


@pytest.fixture
def group(harness: ObjectHarness) -> Iterator[str]:
    """An API group of the test's own; its definition is deleted after the test."""
    name = f"g{secrets.token_hex(4)}.example.com"
    yield name
    harness.access.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{name}")


def test_an_object_waits_for_its_kind(group: str, harness: ObjectHarness) -> None:
    harness.declare(widget(group), "late")

    error = harness.stop_reason("late")
    assert type(error) is OperationRunning
    assert "waits for its kind" in str(error)
    assert error.after == 1
    harness.settle(definition(group, "v1"), "definition")

    assert isinstance(harness.step_until_done("late"), Settled)
    assert harness.live("widgets", "w", f"apis/{group}/v1") is not None


def test_a_kind_that_is_missing_for_one_request_is_found_again(
    group: str, harness: ObjectHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.settle(definition(group, "v1"), "definition")
    harness.settle(widget(group), "late")
    find, requested = Discovery.find, list[str]()

    async def find_late(self: Discovery, api_version: str, kind: str) -> ApiResource:
        requested.append(kind)
        # The first request is for the observation, the second for the write.
        if requested.count("Widget") == 2:
            raise KindNotServed(f"{kind} is not served")
        return await find(self, api_version, kind)

    monkeypatch.setattr(Discovery, "find", find_late)
    harness.settle(widget(group, 2), "late")

    assert requested.count("Widget") > 2


def test_an_unknown_field_of_a_custom_resource_fails_the_plan(group: str, harness: ObjectHarness) -> None:
    harness.settle(definition(group, "v1"), "definition")
    harness.settle(widget(group), "late")
    wrong = widget(group)
    wrong["spec"]["sise"] = 1
    harness.declare(wrong, "late")

    with pytest.raises(Exception, match="sise"):
        harness.plan("late")


def test_an_object_without_its_kind_counts_as_deleted(group: str, harness: ObjectHarness) -> None:
    harness.settle(definition(group, "v1"), "definition")
    harness.settle(widget(group), "late")
    harness.remove("definition")
    assert harness.is_gone("definition")

    harness.remove("late")

    assert harness.is_gone("late")


@pytest.fixture
def outdated(group: str, harness: ObjectHarness) -> str:
    """The group of a kind with an object that was created in a version that is no longer served."""
    both = definition(group, "v1beta1", "v1")
    harness.settle(both, "definition")
    harness.settle(widget(group, version="v1beta1"), "late")
    both["spec"]["versions"][0]["served"] = False
    harness.settle(both, "definition")
    until(lambda: harness.live("widgets", "w", f"apis/{group}/v1beta1") is None)
    harness.restart()
    return group


def test_a_version_that_is_no_longer_served_is_refused_with_the_one_that_is(
    outdated: str, harness: ObjectHarness
) -> None:
    error = harness.stop_reason("late")

    assert isinstance(error, KindNotServed)
    assert f"serves Widget in {outdated}/v1, and no longer in {outdated}/v1beta1" in str(error)
    assert harness.live("widgets", "w", f"apis/{outdated}/v1") is not None


def test_an_object_is_updated_in_another_version(outdated: str, harness: ObjectHarness) -> None:
    before = harness.live("widgets", "w", f"apis/{outdated}/v1")

    harness.settle(widget(outdated, size=2), "late")

    after = harness.live("widgets", "w", f"apis/{outdated}/v1")
    assert before is not None
    assert after is not None
    assert (after["metadata"]["uid"], after["spec"]["size"]) == (before["metadata"]["uid"], 2)


def test_an_object_is_deleted_in_another_version(outdated: str, harness: ObjectHarness) -> None:
    harness.remove("late")

    assert harness.is_gone("late")
    assert harness.live("widgets", "w", f"apis/{outdated}/v1") is None


def test_an_object_waits_for_its_namespace(harness: ObjectHarness) -> None:
    other_namespace = f"{harness.namespace}-2"
    inside = config_map(a="1")
    inside["metadata"]["namespace"] = other_namespace
    harness.declare(inside, "inside")

    error = harness.stop_reason("inside")
    assert type(error) is OperationRunning
    assert "waits for its namespace" in str(error)
    harness.settle({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other_namespace}}, "space")

    assert isinstance(harness.step_until_done("inside"), Settled)
    found = harness.access.call("GET", f"/api/v1/namespaces/{other_namespace}/configmaps/map")
    assert found.body["data"] == {"a": "1"}
    harness.access.delete_namespace(other_namespace)


@pytest.mark.parametrize("written", [None, "anything"])
def test_a_namespace_of_a_cluster_scoped_object_is_ignored(written: str | None, harness: ObjectHarness) -> None:
    role: Tree = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"reads:{harness.namespace}"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    if written is not None:
        role["metadata"]["namespace"] = written

    harness.settle(role)

    assert "namespace" not in harness.status()["object"]
    assert harness.plan().is_empty
    harness.remove()
    assert harness.is_gone()


def test_a_namespace_in_the_manifest_overrides_that_of_the_resource(harness: ObjectHarness) -> None:
    other = harness.access.new_namespace()
    in_other_namespace = config_map(a="1")
    in_other_namespace["metadata"]["namespace"] = other

    harness.settle(in_other_namespace)

    assert harness.access.call("GET", f"/api/v1/namespaces/{other}/configmaps/map").status == 200
    harness.access.delete_namespace(other)


def test_an_object_waits_for_a_namespace_that_is_being_deleted(harness: ObjectHarness) -> None:
    space = harness.access.new_namespace()
    held, late = config_map("held"), config_map("late", a="1")
    held["metadata"] |= {"namespace": space, "finalizers": ["example.com/held"]}
    late["metadata"]["namespace"] = space
    harness.settle(held, "held")
    harness.access.delete_namespace(space)
    harness.declare(late, "late")

    error = harness.stop_reason("late")

    assert type(error) is OperationRunning
    assert "waits for its namespace" in str(error)
    harness.edit(f"/api/v1/namespaces/{space}/configmaps/held", {"metadata": {"finalizers": None}})
