"""Managed fields of a real API server, and the projection that is made of them."""

from typing import Any

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import get_at
from setpoint.kinds.kubernetes_object.managed_fields import (
    extract,
    managed_fields_of,
    manager_fields,
    project,
    setpoint_projection,
)
from tests.clients.api_server_client import tree
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment
from tests.cluster.polling import until

MANAGER = "setpoint/shop/web"
SERVICE: Tree = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}, "finalizers": ["example.com/a"]},
    "spec": {
        "selector": {"app": "web"},
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 5353},
        ],
    },
}
BUSY: Tree = deployment(replicas=2, strategy={"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}})
BUSY["spec"]["template"]["spec"] |= {
    "containers": [
        {
            "name": "main",
            "image": "nginx:1",
            "args": ["--a", "--b"],
            "env": [
                {"name": "B", "value": "1"},
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}},
            ],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"requests": {"cpu": "100m"}},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
MANIFESTS = {
    "configmaps": config_map(a="1", b=""),
    "services": SERVICE,
    "deployments": BUSY,
}


def endpoint(harness: ObjectHarness, plural: str) -> Endpoint:
    manifest = MANIFESTS[plural]
    group, _, version = manifest["apiVersion"].rpartition("/")
    return Endpoint(group, version, plural, harness.namespace, manifest["metadata"]["name"])


def applied(harness: ObjectHarness, plural: str, *bodies: Tree, manager: str = MANAGER) -> Any:
    """The object after each of these was applied."""

    async def apply() -> Any:
        client = KubernetesClient(connection_from_files([harness.access.kubeconfig]))
        try:
            return [
                tree(await client.apply(endpoint(harness, plural), body, ApiWriteOptions(manager), force=True))
                for body in bodies
            ]
        finally:
            await client.close()

    return harness.run(apply())[-1]


@pytest.mark.parametrize("plural", MANIFESTS)
def test_every_owned_leaf_was_applied(plural: str, harness: ObjectHarness) -> None:
    manifest = MANIFESTS[plural]
    live = applied(harness, plural, manifest)

    found = setpoint_projection(live).leaves

    assert found
    for path, value in found.items():
        if path.steps[0] != "metadata" or "finalizers" not in path.steps:
            declared = get_at(manifest, path)
            assert declared is not MISSING, path
            assert same(declared, value), path


@pytest.mark.parametrize("plural", MANIFESTS)
def test_the_extracted_fields_are_all_that_was_applied(plural: str, harness: ObjectHarness) -> None:
    """Applying the extract again changes neither the object nor its managed fields."""
    manifest = MANIFESTS[plural]
    live = applied(harness, plural, manifest)
    owned = manager_fields(live, MANAGER)
    assert owned is not None
    extracted = extract(live, owned)
    assert isinstance(extracted, dict)
    metadata = {**extracted.get("metadata", {}), "name": manifest["metadata"]["name"]}

    again = applied(
        harness,
        plural,
        {**extracted, "apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata},
    )

    assert again == live


@pytest.mark.parametrize("plural", MANIFESTS)
def test_fields_of_another_manager_are_not_owned(plural: str, harness: ObjectHarness) -> None:
    manifest = MANIFESTS[plural]
    before = setpoint_projection(applied(harness, plural, manifest))
    labels = {**manifest, "metadata": {"name": manifest["metadata"]["name"], "labels": {"theirs": "1"}}}
    only = {name: value for name, value in labels.items() if name in ("apiVersion", "kind", "metadata")}

    after = applied(harness, plural, only, manager="helm")

    assert setpoint_projection(after).to_data() == before.to_data()
    assert {owner.manager for owner in managed_fields_of(after)} == {MANAGER, "helm"}


def test_a_field_can_be_owned_by_two_managers(harness: ObjectHarness) -> None:
    applied(harness, "configmaps", config_map(a="1"))

    live = applied(harness, "configmaps", config_map(a="1", b="2"), manager="helm")

    fields = {
        owner.manager: sorted(str(path) for path in project(live, owner.fields).leaves)
        for owner in managed_fields_of(live)
    }
    assert fields == {MANAGER: ["data.a"], "helm": ["data.a", "data.b"]}


def test_the_rules_of_an_aggregated_role_are_left_to_its_controller(harness: ObjectHarness, controllers: None) -> None:
    label = {f"rbac.example.com/{harness.namespace}": "true"}
    parts = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    names = [f"{harness.namespace}-{name}" for name in ("all", "part")]
    whole = {
        **parts,
        "metadata": {"name": names[0]},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label}]},
        "rules": [],
    }
    harness.settle({**parts, "metadata": {"name": names[1], "labels": label}, "rules": rules}, "part")
    harness.settle(whole, "all")
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{names[0]}"
    until(lambda: harness.access.call("GET", path).body.get("rules") == rules)

    assert harness.plan("all").is_empty
    harness.settle({**whole, "metadata": {"name": names[0], "labels": {"a": "b"}}}, "all")
    assert harness.access.call("GET", path).body["rules"] == rules
    for name in ("all", "part"):
        harness.remove(name)
