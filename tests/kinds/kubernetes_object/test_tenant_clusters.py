"""The clusters of a tenant, where the definition in the cluster is older than the process and lets anything pass."""

import pytest

from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ManifestInvalid
from setpoint.kinds.kubernetes_object.clusters import Clusters
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
