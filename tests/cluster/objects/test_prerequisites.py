"""What has to be there first: a kind, a namespace; and kinds that have none."""

import secrets
from collections.abc import Iterator

import pytest

from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.engine.context import Settled
from setpoint.errors import KindNotServed, OperationRunning
from tests.cluster.objects.object_harness import Site, Tree, config_map
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
def group(site: Site) -> Iterator[str]:
    """A group of kinds that is this test's own; its definition goes with the test."""
    name = f"g{secrets.token_hex(4)}.example.com"
    yield name
    site.access.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{name}")


def test_an_object_waits_for_its_kind(group: str, site: Site) -> None:
    site.declare(widget(group), "late")

    error = site.stop("late")
    assert type(error) is OperationRunning
    assert "waits for its kind" in str(error)
    assert error.after == 1
    site.settle(definition(group, "v1"), "definition")

    assert isinstance(site.go_on("late"), Settled)
    assert site.live("widgets", "w", f"apis/{group}/v1") is not None


def test_a_kind_that_comes_between_two_questions_is_there(
    group: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.settle(definition(group, "v1"), "definition")
    site.settle(widget(group), "late")
    find, asked = Discovery.find, list[str]()

    async def find_late(self: Discovery, api_version: str, kind: str) -> ApiResource:
        asked.append(kind)
        # The look comes first; the second question is the way to write.
        if asked.count("Widget") == 2:
            raise KindNotServed(f"{kind} is not served")
        return await find(self, api_version, kind)

    monkeypatch.setattr(Discovery, "find", find_late)
    site.settle(widget(group, 2), "late")

    assert asked.count("Widget") > 2


def test_a_wrong_field_of_a_custom_resource_fails_at_the_plan(group: str, site: Site) -> None:
    site.settle(definition(group, "v1"), "definition")
    site.settle(widget(group), "late")
    wrong = widget(group)
    wrong["spec"]["sise"] = 1
    site.declare(wrong, "late")

    with pytest.raises(Exception, match="sise"):
        site.plan("late")


def test_an_object_whose_kind_is_gone_is_gone(group: str, site: Site) -> None:
    site.settle(definition(group, "v1"), "definition")
    site.settle(widget(group), "late")
    site.remove("definition")
    assert site.is_gone("definition")

    site.remove("late")

    assert site.is_gone("late")


@pytest.fixture
def outdated(group: str, site: Site) -> str:
    """The group of a kind whose object was made in a version that is served no longer."""
    both = definition(group, "v1beta1", "v1")
    site.settle(both, "definition")
    site.settle(widget(group, version="v1beta1"), "late")
    both["spec"]["versions"][0]["served"] = False
    site.settle(both, "definition")
    until(lambda: site.live("widgets", "w", f"apis/{group}/v1beta1") is None)
    site.restart()
    return group


def test_a_version_that_is_served_no_longer_is_refused_with_the_one_that_is(outdated: str, site: Site) -> None:
    error = site.stop("late")

    assert isinstance(error, KindNotServed)
    assert f"serves Widget in {outdated}/v1, and no longer in {outdated}/v1beta1" in str(error)
    assert site.live("widgets", "w", f"apis/{outdated}/v1") is not None


def test_an_object_goes_on_in_another_version(outdated: str, site: Site) -> None:
    before = site.live("widgets", "w", f"apis/{outdated}/v1")

    site.settle(widget(outdated, size=2), "late")

    after = site.live("widgets", "w", f"apis/{outdated}/v1")
    assert before is not None
    assert after is not None
    assert (after["metadata"]["uid"], after["spec"]["size"]) == (before["metadata"]["uid"], 2)


def test_an_object_is_deleted_in_another_version(outdated: str, site: Site) -> None:
    site.remove("late")

    assert site.is_gone("late")
    assert site.live("widgets", "w", f"apis/{outdated}/v1") is None


def test_an_object_waits_for_its_namespace(site: Site) -> None:
    elsewhere = f"{site.namespace}-2"
    inside = config_map(a="1")
    inside["metadata"]["namespace"] = elsewhere
    site.declare(inside, "inside")

    error = site.stop("inside")
    assert type(error) is OperationRunning
    assert "waits for its namespace" in str(error)
    site.settle({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}}, "space")

    assert isinstance(site.go_on("inside"), Settled)
    found = site.access.call("GET", f"/api/v1/namespaces/{elsewhere}/configmaps/map")
    assert found.body["data"] == {"a": "1"}
    site.access.delete_namespace(elsewhere)


@pytest.mark.parametrize("written", [None, "anything"])
def test_a_kind_without_namespaces_has_none_whatever_is_written(written: str | None, site: Site) -> None:
    role: Tree = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"reads:{site.namespace}"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    if written is not None:
        role["metadata"]["namespace"] = written

    site.settle(role)

    assert "namespace" not in site.status()["object"]
    assert site.plan().is_empty
    site.remove()
    assert site.is_gone()


def test_a_namespace_in_the_manifest_goes_before_that_of_the_resource(site: Site) -> None:
    other = site.access.new_namespace()
    elsewhere = config_map(a="1")
    elsewhere["metadata"]["namespace"] = other

    site.settle(elsewhere)

    assert site.access.call("GET", f"/api/v1/namespaces/{other}/configmaps/map").status == 200
    site.access.delete_namespace(other)


def test_an_object_waits_for_a_namespace_that_goes(site: Site) -> None:
    space = site.access.new_namespace()
    held, late = config_map("held"), config_map("late", a="1")
    held["metadata"] |= {"namespace": space, "finalizers": ["example.com/held"]}
    late["metadata"]["namespace"] = space
    site.settle(held, "held")
    site.access.delete_namespace(space)
    site.declare(late, "late")

    error = site.stop("late")

    assert type(error) is OperationRunning
    assert "waits for its namespace" in str(error)
    site.edit(f"/api/v1/namespaces/{space}/configmaps/held", {"metadata": {"finalizers": None}})
