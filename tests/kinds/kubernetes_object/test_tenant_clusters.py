"""The clusters of a tenant, where the definition in the cluster is older than the process and lets anything pass."""

import asyncio

import pytest

from setpoint.clients.kubernetes.watched_objects import ObjectVersion, WatchedCollection
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ManifestInvalid, UserError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.kubernetes_object.spec import KubernetesObjectSpec
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

RESOURCE = Resource(
    {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": "one", "namespace": "alice"},
        "spec": {},
    }
)


def _cluster_id(account: str) -> str:
    clusters = TenantClusters(Clusters(), Tenant("alice"))
    return clusters.cluster_id_of(
        KubernetesObjectSpec(manifest={}, serviceAccountName=account), RESOURCE, ResolvedReferences()
    )


@pytest.mark.parametrize("name", ["../bob/setpoint", "bob:setpoint", "a\r\nImpersonate-User: x", "*", "bob/setpoint"])
def test_a_name_that_is_none_reaches_no_other_account(name: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.serviceAccountName is .*, which cannot be a name"):
        _cluster_id(name)


def test_an_account_is_one_of_the_namespace() -> None:
    assert (_cluster_id(""), _cluster_id("deployer")) == (
        "own:alice/setpoint",
        "own:alice/deployer",
    )


def test_what_the_watch_of_another_account_shows_is_not_used() -> None:
    clusters = Clusters()
    topic = "v1 ConfigMap shared/* @ own:bob/setpoint"
    clusters.watched.begin(topic, WatchedCollection(None, {"one": ObjectVersion("uid", 1)}, is_whole=True))
    kind = KubernetesObjectKind(clusters, SystemClock()).for_tenant(Tenant("alice"))

    with pytest.raises(UserError, match="is not one of the namespace alice"):
        asyncio.run(kind.observe_watched(Location("v1 ConfigMap shared/one @ own:bob/setpoint"), "uid/1"))

    assert clusters.watched.find("v1 ConfigMap shared/* @ own:alice/setpoint", "one", None) is None
