"""The token of the controller is worth little, and users get no rights that no administrator gave them."""

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.polling import until
from tests.cluster.running.kubectl import Kubectl
from tests.security.tenant_cluster import TenantCluster
from tests.security.test_impersonation import config_map, kubernetes_object

COOKIE = "cnrm.cloud.google.com/last-changed-cookie"
BUCKET = {
    "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
    "kind": "StorageBucket",
    "metadata": {"name": "ledger", "labels": {"team": "bob"}, "annotations": {"setpoint.dev/management": "paused"}},
    "spec": {"location": "EU"},
}


@dataclass(frozen=True, slots=True)
class Thief:
    """kubectl with the token of the controller."""

    tenants: TenantCluster

    def kubectl(self, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """The exit code and output."""
        kubeconfig = self.tenants.folder / "controller.kubeconfig"
        command = [str(self.tenants.program), f"--kubeconfig={kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env={**os.environ})


@pytest.fixture
def thief(tenants: TenantCluster) -> Thief:
    return Thief(tenants)


def test_the_token_of_the_controller_reads_no_secret_by_name(tenants: TenantCluster, thief: Thief) -> None:
    tenants.bob.kubectl("create", "secret", "generic", "database", "--from-literal=password=Sesame-1")

    done = thief.kubectl("get", "secret", "database", "--namespace", tenants.bob.namespace, "-o", "yaml")

    assert "cannot get resource" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("namespace", ["kube-system", "setpoint-system", "bob"])
@pytest.mark.parametrize(
    "what",
    [
        ("deployment", "miner", "--image=miner:1"),
        ("secret", "generic", "mine"),
        ("configmap", "mine"),
        ("serviceaccount", "mine"),
        ("rolebinding", "mine", "--clusterrole=admin", "--user=mallory"),
        ("token", "setpoint"),
    ],
    ids=lambda what: what[0],
)
def test_the_token_of_the_controller_makes_nothing(
    tenants: TenantCluster, thief: Thief, what: tuple[str, ...], namespace: str
) -> None:
    place = tenants.bob.namespace if namespace == "bob" else namespace

    done = thief.kubectl("create", *what, "--namespace", place)

    assert done.returncode != 0
    assert "forbidden" in done.stderr.lower()


@pytest.mark.parametrize(
    "identity",
    [
        ["--as=admin"],
        ["--as=system:serviceaccount:kube-system:default"],
        ["--as=system:serviceaccount:kube-system:namespace-controller"],
        ["--as=system:serviceaccount:bob:setpoint", "--as-group=system:masters"],
        ["--as=alice", "--as-group=system:masters"],
        ["--as=system:serviceaccount:bob:setpoint", "--as-uid=0"],
    ],
    ids=str,
)
def test_the_token_of_the_controller_acts_as_no_other_identity(
    tenants: TenantCluster, thief: Thief, identity: list[str]
) -> None:
    words = [word.replace(":bob:", f":{tenants.bob.namespace}:") for word in identity]

    done = thief.kubectl("get", "configmaps", "--namespace", tenants.bob.namespace, *words)

    assert "cannot impersonate" in done.stderr


def test_an_account_of_a_tenant_reaches_no_other_namespace(tenants: TenantCluster, thief: Thief) -> None:
    alice, bob = tenants.alice.namespace, tenants.bob.namespace
    as_alice = f"--as=system:serviceaccount:{alice}:setpoint"

    assert thief.kubectl("get", "secrets", "--namespace", alice, as_alice).returncode == 0
    for place in (bob, "setpoint-system", "kube-system"):
        assert "cannot list resource" in thief.kubectl("get", "secrets", "--namespace", place, as_alice).stderr


# --- What RBAC cannot say ---------------------------------------------------------------------------------------------


@pytest.fixture
def bucket(tenants: TenantCluster) -> str:
    """A resource of bob that no controller touches."""
    tenants.bob.apply(BUCKET)
    return "storagebucket/ledger"


def _patch(thief: Thief, target: str, patch: Any) -> "subprocess.CompletedProcess[str]":
    place = ("--namespace", thief.tenants.bob.namespace, "--dry-run=server")
    return thief.kubectl("patch", target, *place, "--type=merge", "-p", json.dumps(patch))


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"storageClass": "NEARLINE"}},
        {"spec": {"versioning": {"enabled": False}}},
        {"metadata": {"annotations": {"cnrm.cloud.google.com/project-id": "mallory"}}},
        {"metadata": {"annotations": {"setpoint.dev/management": None}}},
        {"metadata": {"annotations": None}},
        {"metadata": {"labels": {"team": "mallory"}}},
        {"metadata": {"labels": None}},
        {"metadata": {"annotations": {COOKIE: "new"}}, "spec": {"storageClass": "NEARLINE"}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}},
    ],
    ids=json.dumps,
)
def test_the_token_of_the_controller_changes_nothing_that_is_the_author_s(
    thief: Thief, bucket: str, patch: Any
) -> None:
    # A policy counts moments after it was made.
    until(lambda: "setpoint-writes" in _patch(thief, bucket, {"metadata": {"labels": {"probe": "1"}}}).stderr)

    done = _patch(thief, bucket, patch)

    assert done.returncode != 0
    assert "setpoint writes the finalizers, the status and its cookie, and nothing else" in done.stderr


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"finalizers": ["cnrm.cloud.google.com/finalizer"]}},
        {"metadata": {"annotations": {COOKIE: "new"}}},
    ],
    ids=json.dumps,
)
def test_the_controller_writes_its_finalizer_and_its_cookie(thief: Thief, bucket: str, patch: Any) -> None:
    done = _patch(thief, bucket, patch)

    assert done.returncode == 0, done.stderr


# --- Users ------------------------------------------------------------------------------------------------------------


def test_the_role_edit_alone_writes_no_kubernetes_object(tenants: TenantCluster) -> None:
    namespace = tenants.access.new_namespace(is_tenant=False)
    admin = Kubectl(tenants.program, tenants.access, namespace)
    admin("create", "rolebinding", "editor", "--clusterrole=edit", "--user=bob")
    tenants.access.until_permitted("bob", "create", "storagebuckets.storage.cnrm.cloud.google.com", namespace)
    stdin = json.dumps(kubernetes_object("sneaky", config_map("sneaky")))

    done = tenants.bob.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=stdin)

    assert 'cannot create resource "kubernetesobjects"' in done.stderr
    assert tenants.bob.kubectl("get", "kubernetesobjects", "--namespace", namespace).returncode == 0


def test_a_cluster_scoped_object_is_read_as_the_tenant(tenants: TenantCluster) -> None:
    """The controller may read some of them for itself."""
    alice = tenants.alice
    target = {"kind": "ClusterRole", "group": "rbac.authorization.k8s.io", "name": "setpoint", "path": "metadata.uid"}
    alice.apply(kubernetes_object("peeking", {**config_map("peeking"), "data": {"uid": {"$ref": target}}}))

    message = alice.until_reason("kubernetesobject/peeking", "UpdateFailed", "DependencyNotReady", "Blocked")

    assert f'User "system:serviceaccount:{alice.namespace}:setpoint" cannot get resource "clusterroles"' in message
