"""What a real API server says that we own, and what we make of it."""

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
from tests.cluster.objects.object_harness import Site, Tree, config_map, deployment

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


def endpoint(site: Site, plural: str) -> Endpoint:
    manifest = MANIFESTS[plural]
    group, _, version = manifest["apiVersion"].rpartition("/")
    return Endpoint(group, version, plural, site.namespace, manifest["metadata"]["name"])


def applied(site: Site, plural: str, *bodies: Tree, manager: str = MANAGER) -> Any:
    """The object after each of these was applied."""

    async def apply() -> Any:
        client = KubernetesClient(connection_from_files([site.access.kubeconfig]))
        try:
            return [
                tree(await client.apply(endpoint(site, plural), body, ApiWriteOptions(manager), force=True))
                for body in bodies
            ]
        finally:
            await client.close()

    return site.run(apply())[-1]


@pytest.mark.parametrize("plural", MANIFESTS)
def test_every_leaf_that_is_owned_is_one_that_was_sent(plural: str, site: Site) -> None:
    manifest = MANIFESTS[plural]
    live = applied(site, plural, manifest)

    found = setpoint_projection(live).leaves

    assert found
    for path, value in found.items():
        if path.steps[0] != "metadata" or "finalizers" not in path.steps:
            said = get_at(manifest, path)
            assert said is not MISSING, path
            assert same(said, value), path


@pytest.mark.parametrize("plural", MANIFESTS)
def test_what_is_carved_out_is_all_that_was_said(plural: str, site: Site) -> None:
    """Applied again as it is carved out, the object stays the same, and so does what is owned."""
    manifest = MANIFESTS[plural]
    live = applied(site, plural, manifest)
    owned = manager_fields(live, MANAGER)
    assert owned is not None
    carved = extract(live, owned)
    assert isinstance(carved, dict)
    metadata = {**carved.get("metadata", {}), "name": manifest["metadata"]["name"]}

    again = applied(
        site, plural, {**carved, "apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    )

    assert again == live


@pytest.mark.parametrize("plural", MANIFESTS)
def test_what_another_applies_besides_is_not_ours(plural: str, site: Site) -> None:
    manifest = MANIFESTS[plural]
    before = setpoint_projection(applied(site, plural, manifest))
    labels = {**manifest, "metadata": {"name": manifest["metadata"]["name"], "labels": {"theirs": "1"}}}
    only = {name: value for name, value in labels.items() if name in ("apiVersion", "kind", "metadata")}

    after = applied(site, plural, only, manager="helm")

    assert setpoint_projection(after).to_data() == before.to_data()
    assert {owner.manager for owner in managed_fields_of(after)} == {MANAGER, "helm"}


def test_what_two_own_is_owned_by_both(site: Site) -> None:
    applied(site, "configmaps", config_map(a="1"))

    live = applied(site, "configmaps", config_map(a="1", b="2"), manager="helm")

    fields = {
        owner.manager: sorted(str(path) for path in project(live, owner.fields).leaves)
        for owner in managed_fields_of(live)
    }
    assert fields == {MANAGER: ["data.a"], "helm": ["data.a", "data.b"]}
