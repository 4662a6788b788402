"""An object in the cluster that a resource manages is neither adopted by another resource nor by an owner."""

from typing import Any

from tests.cluster.polling import until
from tests.security.tenant_cluster import TenantCluster


def trustee(name: str) -> Any:
    return {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "TrusteeConfig",
        "metadata": {"name": name},
        "spec": {"profileType": "Permissive"},
    }


def kept_config_map(resource: str, name: str, **data: str) -> Any:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": resource},
        "spec": {"manifest": manifest, "forceConflicts": True},
    }


def test_a_second_resource_of_a_cluster_object_is_refused(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kept_config_map("keeper", "kept", color="red"))
    alice.until_reason("kubernetesobject/keeper", "UpToDate")
    alice.apply(kept_config_map("thief", "kept", color="blue"))

    message = alice.until_reason("kubernetesobject/thief", "ManagementConflict")
    assert alice.kubectl("delete", "kubernetesobject/thief", "--timeout=240s").returncode == 0
    assert f"is managed by KubernetesObject {alice.namespace}/keeper already" in message
    assert alice.get("configmap/kept")["data"] == {"color": "red"}


def test_the_child_of_an_owner_is_not_adopted(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(trustee("lab"))
    until(lambda: alice.get("configmap/lab-kbs-config") is not None)
    before = alice.get("configmap/lab-kbs-config")["data"]
    alice.apply(kept_config_map("weaken", "lab-kbs-config", **{"kbs-config.toml": "insecure = true"}))

    message = alice.until_reason("kubernetesobject/weaken", "ManagementConflict")
    assert alice.kubectl("delete", "kubernetesobject/weaken", "--timeout=240s").returncode == 0
    assert f"is managed by TrusteeConfig {alice.namespace}/lab already" in message
    assert alice.get("configmap/lab-kbs-config")["data"] == before


def test_an_object_of_another_resource_does_not_become_a_child(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kept_config_map("first", "late-kbs-config", color="red"))
    alice.until_reason("kubernetesobject/first", "UpToDate")
    alice.apply(trustee("late"))

    message = alice.until_reason("trusteeconfig/late", "ManagementConflict")
    found = alice.get("configmap/late-kbs-config")
    assert f"is managed by KubernetesObject {alice.namespace}/first already" in message
    assert (found["data"], found["metadata"].get("ownerReferences")) == ({"color": "red"}, None)
