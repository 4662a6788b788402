"""A KubernetesObject reaches what the ServiceAccount of its namespace may reach, and nothing else."""

from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.running.kubectl import Kubectl
from tests.security.tenant_cluster import TenantCluster

# Reasons of a step that an error stopped.
REFUSED = ("UpdateFailed", "ServiceAccountNotFound")


def kubernetes_object(name: str, manifest: Any, **spec: Any) -> Any:
    return {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": name},
        "spec": {"manifest": manifest, **spec},
    }


def config_map(name: str, namespace: str | None = None, **data: str) -> Any:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name: str, namespace: str) -> Any:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "attack:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def test_objects_of_the_own_namespace_are_made(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kubernetes_object("own", config_map("own", color="red")))

    alice.until_reason("kubernetesobject/own", "UpToDate")
    assert alice.get("configmap/own")["data"] == {"color": "red"}


def test_a_deployment_in_kube_system_is_refused(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kubernetes_object("miner", deployment("miner", "kube-system")))

    message = alice.until_reason("kubernetesobject/miner", *REFUSED)
    assert f'User "system:serviceaccount:{alice.namespace}:setpoint" cannot' in message
    assert tenants.access.call("GET", "/apis/apps/v1/namespaces/kube-system/deployments/miner").status == 404


def test_an_object_of_another_namespace_is_neither_read_nor_written_nor_deleted(tenants: TenantCluster) -> None:
    alice, bob = tenants.alice, tenants.bob
    bob.apply(config_map("payroll", salary="confidential-4711"))
    wait = {"waitFor": {"field": "data.salary"}}
    alice.apply(kubernetes_object("payroll", config_map("payroll", bob.namespace, salary="0"), **wait))

    alice.until_reason("kubernetesobject/payroll", *REFUSED)
    assert "4711" not in str(alice.get("kubernetesobject/payroll"))
    assert alice.kubectl("delete", "kubernetesobject/payroll", "--wait=false").returncode == 0
    assert bob.get("configmap/payroll")["data"] == {"salary": "confidential-4711"}


def test_rights_cannot_be_raised(tenants: TenantCluster) -> None:
    alice = tenants.alice
    account = {"kind": "ServiceAccount", "name": "setpoint", "namespace": alice.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "raised"},
        "roleRef": role,
        "subjects": [account],
    }
    alice.apply(kubernetes_object("raised", binding))

    alice.until_reason("kubernetesobject/raised", *REFUSED)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/raised"
    assert tenants.access.call("GET", path).status == 404


@pytest.mark.parametrize("account", ["deployer", "default"])
def test_an_account_that_the_controller_may_not_impersonate_is_refused(tenants: TenantCluster, account: str) -> None:
    alice = tenants.alice
    alice.kubectl("create", "serviceaccount", account)
    alice.apply(kubernetes_object(f"by-{account}", config_map(f"by-{account}"), serviceAccountName=account))

    message = alice.until_reason(f"kubernetesobject/by-{account}", *REFUSED)
    assert "serviceaccounts" in message
    assert alice.get(f"configmap/by-{account}") is None


@pytest.mark.parametrize(
    ("number", "name"), [*enumerate(["../bob/setpoint", "bob:setpoint", "a\r\nImpersonate-User: x", "*"])]
)
def test_a_name_that_is_none_reaches_no_other_account(tenants: TenantCluster, number: int, name: str) -> None:
    alice = tenants.alice
    manifest = kubernetes_object(f"tricky-{number}", config_map(f"tricky-{number}"), serviceAccountName=name)

    message = alice.refused(manifest)

    assert "spec.serviceAccountName: Invalid value" in message
    assert alice.get(f"kubernetesobject/tricky-{number}") is None
    assert alice.get(f"configmap/tricky-{number}") is None


@pytest.mark.parametrize("cluster", [{"inCluster": True}, {"context": "tests"}], ids=str)
def test_the_credentials_of_the_controller_cannot_be_named(tenants: TenantCluster, cluster: Any) -> None:
    alice, name = tenants.alice, f"as-{next(iter(cluster)).lower()}"
    alice.apply(kubernetes_object(name, config_map(name, "kube-system"), cluster=cluster))

    message = alice.until_reason(f"kubernetesobject/{name}", *REFUSED)
    assert "the credentials of setpoint itself" in message
    assert tenants.access.call("GET", f"/api/v1/namespaces/kube-system/configmaps/{name}").status == 404


def test_our_own_kinds_are_no_targets(tenants: TenantCluster) -> None:
    alice = tenants.alice
    inner = kubernetes_object("inner", config_map("inner"))
    alice.apply(kubernetes_object("outer", inner))

    message = alice.until_reason("kubernetesobject/outer", *REFUSED)
    assert "a kind that setpoint reconciles in this cluster" in message
    assert alice.get("kubernetesobject/inner") is None


def test_a_namespace_that_was_not_set_up_has_a_clear_condition(tenants: TenantCluster) -> None:
    namespace = tenants.access.new_namespace(is_tenant=False)

    message = _refused_message(tenants, namespace)

    assert f"`setpoint tenant {namespace}`" in message


def test_the_account_of_the_controller_acts_for_no_resource(tenants: TenantCluster) -> None:
    assert "is that of setpoint itself" in _refused_message(tenants, "setpoint-system")


def _refused_message(tenants: TenantCluster, namespace: str) -> str:
    """The message of a KubernetesObject that an administrator makes in a namespace without a tenant's account."""
    admin = Kubectl(tenants.program, tenants.access, namespace)
    admin.apply(kubernetes_object("early", config_map("early")))

    def condition() -> Any:
        found = admin.get("kubernetesobject/early").get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == "Ready"), {})

    until(lambda: condition().get("reason") == "ServiceAccountNotFound")
    assert admin.get("configmap/early") is None
    return str(condition()["message"])


def test_a_tenant_cannot_write_a_status(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kubernetes_object("moved", config_map("moved")))
    alice.until_reason("kubernetesobject/moved", "UpToDate")
    patch = '{"status":{"setpoint":{"location":"v1 Secret kube-system/x @ own:kube-system/setpoint"}}}'
    done = alice.kubectl("patch", "kubernetesobject/moved", "--subresource=status", "--type=merge", "-p", patch)
    assert done.returncode != 0
    assert "forbidden" in done.stderr.lower()
