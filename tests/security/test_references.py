"""References across namespaces: refused without a grant, told nothing, allowed with one, refused again without it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.running import manifests
from tests.cluster.running.kubectl import Kubectl
from tests.security.tenant_cluster import TenantCluster, TenantUser
from tests.security.test_impersonation import config_map, kubernetes_object

NOT_GRANTED = "ReferenceNotGranted"
GRANTS = "referencegrants.setpoint.dev"
PASSWORD = "Sesame-4711"
DEPENDS_ON = "setpoint.dev/depends-on"
SQL, STORAGE = "sql.cnrm.cloud.google.com", "storage.cnrm.cloud.google.com"


def of_tenant(manifest: Any) -> Any:
    """The manifest in the project of its namespace."""
    del manifest["metadata"]["annotations"]["cnrm.cloud.google.com/project-id"]
    return manifest


def bucket(name: str) -> Any:
    return of_tenant(manifests.bucket(name))


def instance(name: str) -> Any:
    return of_tenant(manifests.instance(name))


def depending(name: str, on: str) -> Any:
    manifest = bucket(name)
    manifest["metadata"]["annotations"][DEPENDS_ON] = on
    return manifest


def taking(name: str, namespace: str, source: str, path: str = "metadata.name") -> Any:
    """An object that takes a value of a bucket in another namespace."""
    ref = {"kind": "StorageBucket", "namespace": namespace, "name": source, "path": path}
    return kubernetes_object(name, config_map(name) | {"data": {"taken": {"$ref": ref}}})


def quoting(name: str, namespace: str, source: str) -> Any:
    """The same, inside a text."""
    return kubernetes_object(name, config_map(name, taken=f"${{ref:StorageBucket/{namespace}/{source}:metadata.name}}"))


def in_instance(name: str, namespace: str, source: str) -> Any:
    manifest = of_tenant(manifests.database(name, source))
    manifest["spec"]["instanceRef"]["namespace"] = namespace
    return manifest


def after(name: str, namespace: str, source: str) -> Any:
    return depending(name, f"StorageBucket/{namespace}/{source}")


def after_in_group(name: str, namespace: str, source: str) -> Any:
    return depending(name, f"StorageBucket.{STORAGE}/{namespace}/{source}")


# A manifest for each spelling, and its kind.
SPELLINGS: dict[str, tuple[Callable[[str, str, str], Any], str]] = {
    "ref": (taking, "kubernetesobject"),
    "inline": (quoting, "kubernetesobject"),
    "field": (in_instance, "sqldatabase"),
    "annotation": (after, "storagebucket"),
    "annotation-with-group": (after_in_group, "storagebucket"),
}


def reference_grant(name: str, namespace: str, source: tuple[str, str], target: tuple[str, str], *names: str) -> Any:
    """Lets resources of that namespace and kind refer to those of another kind, all of them or those with a name."""
    to = [{"group": target[0], "kind": target[1], "name": one} for one in names]
    return {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "ReferenceGrant",
        "metadata": {"name": name},
        "spec": {
            "from": [{"group": source[0], "kind": source[1], "namespace": namespace}],
            "to": to or [{"group": target[0], "kind": target[1]}],
        },
    }


@pytest.fixture(scope="module")
def owner(tenants: TenantCluster) -> Kubectl:
    """The administrator of bob's namespace."""
    kubectl = Kubectl(tenants.program, tenants.access, tenants.bob.namespace)
    kubectl("create", "rolebinding", "administrator", "--clusterrole=admin", "--user=carol")
    return kubectl


@pytest.fixture(scope="module")
def target(tenants: TenantCluster) -> str:
    """A bucket of bob's that is ready, and an instance of the same name that waits for something of bob's."""
    tenants.bob.apply(bucket("vault"), instance("vault"), depending("shut", "SQLInstance/nowhere"))
    tenants.bob.until_reason("storagebucket/vault", "UpToDate")
    tenants.bob.until_reason("storagebucket/shut", "DependencyNotFound")
    return "vault"


def shown(user: TenantUser, resource: str) -> str:
    """Everything that the cluster shows to a user of a resource: its status and its events."""
    name = resource.rpartition("/")[2]
    events = user.kubectl("get", "events", f"--field-selector=involvedObject.name={name}", "-o", "json")
    return str(user.get(resource).get("status")) + events.stdout


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_reference_into_another_namespace_tells_nothing(tenants: TenantCluster, target: str, spelling: str) -> None:
    alice, other = tenants.alice, tenants.bob.namespace
    make, kind = SPELLINGS[spelling]
    names = {f"{spelling}-there": target, f"{spelling}-gone": "missing"}
    alice.apply(*(make(name, other, source) for name, source in names.items()))

    messages = [
        alice.until_reason(f"{kind}/{name}", NOT_GRANTED).replace(source, "NAME") for name, source in names.items()
    ]

    assert messages[0] == messages[1]
    assert f"namespace {other} does not grant that" in messages[0]
    assert "to: [{group: " in messages[0]
    statuses = [shown(alice, f"{kind}/{name}") for name in names]
    assert not any("UpToDate" in one or "is ready" in one or "not found" in one for one in statuses)


def test_a_grant_wakes_the_dependants_and_its_end_stops_them(
    tenants: TenantCluster, owner: Kubectl, target: str
) -> None:
    alice, other = tenants.alice, tenants.bob.namespace
    alice.apply(taking("granted", other, target), taking("beside", other, "shut"))
    for name in ("granted", "beside"):
        alice.until_reason(f"kubernetesobject/{name}", NOT_GRANTED)

    objects, buckets = ("setpoint.dev", "KubernetesObject"), (STORAGE, "StorageBucket")
    owner.apply(reference_grant("to-vault", alice.namespace, objects, buckets, target))
    alice.until_reason("kubernetesobject/granted", "UpToDate")
    assert alice.get("configmap/granted")["data"] == {"taken": target}
    # The grant names one resource.
    assert alice.ready("kubernetesobject/beside")["reason"] == NOT_GRANTED

    owner("delete", "referencegrant/to-vault")
    alice.until_reason("kubernetesobject/granted", NOT_GRANTED)


def test_of_a_resource_that_is_granted_only_its_readiness_is_told(
    tenants: TenantCluster, owner: Kubectl, target: str
) -> None:
    alice, other = tenants.alice, tenants.bob.namespace
    owner.apply(reference_grant("to-shut", alice.namespace, (STORAGE, "StorageBucket"), (STORAGE, "StorageBucket")))
    alice.apply(after("second", other, "shut"))

    message = alice.until_reason("storagebucket/second", "DependencyNotReady")

    assert message == f"reference StorageBucket {other}/shut is not ready"
    assert "nowhere" not in shown(alice, "storagebucket/second")
    trigger = alice.get("storagebucket/second")["status"].get("setpoint", {})
    assert other not in str(trigger).replace(message, "").replace(f"'namespace': '{other}'", "")


@pytest.mark.parametrize(
    ("number", "source", "to"),
    [
        (0, ("", "KubernetesObject"), (STORAGE, "StorageBucket")),
        (1, ("setpoint.dev", "Kubernetesobject"), (STORAGE, "StorageBucket")),
        (2, ("setpoint.dev", "KubernetesObject"), ("", "StorageBucket")),
        (3, ("setpoint.dev", "KubernetesObject"), (SQL, "StorageBucket")),
    ],
)
def test_a_grant_for_something_else_grants_nothing(
    tenants: TenantCluster, owner: Kubectl, target: str, number: int, source: tuple[str, str], to: tuple[str, str]
) -> None:
    alice, other, name = tenants.alice, tenants.bob.namespace, f"other-{number}"
    owner.apply(reference_grant(name, alice.namespace, source, to))
    # In the dependant's own namespace it grants nothing either.
    Kubectl(tenants.program, tenants.access, alice.namespace).apply(
        reference_grant(name, alice.namespace, ("setpoint.dev", "KubernetesObject"), (STORAGE, "StorageBucket"))
    )
    alice.apply(taking(name, other, target))

    alice.until_reason(f"kubernetesobject/{name}", NOT_GRANTED)
    assert alice.get(f"configmap/{name}") is None


@pytest.mark.parametrize(
    ("source", "to"),
    [(("*", "*"), ("*", "*")), (("setpoint.dev", "kubernetesobject"), (STORAGE, "StorageBucket"))],
    ids=["everything", "lower case"],
)
def test_a_grant_for_everything_or_for_no_kind_is_refused(
    tenants: TenantCluster, owner: Kubectl, source: tuple[str, str], to: tuple[str, str]
) -> None:
    grant = reference_grant("wide", tenants.alice.namespace, source, to)

    done = owner.run("apply", "-f", "-", stdin=json.dumps(grant))

    assert "spec.from[0].kind: Invalid value" in done.stderr
    assert owner.get("referencegrant/wide") is None


def test_a_tenant_with_the_role_edit_cannot_write_a_grant(tenants: TenantCluster, owner: Kubectl) -> None:
    alice, bob = tenants.alice, tenants.bob
    path = f"/apis/setpoint.dev/v1alpha1/namespaces/{bob.namespace}/referencegrants"
    forged = reference_grant("forged", alice.namespace, (STORAGE, "StorageBucket"), (STORAGE, "StorageBucket"))

    for user in (alice.name, bob.name):
        assert tenants.access.call("POST", path, forged, user=user).status == 403
    accounts = [f"system:serviceaccount:{namespace}:setpoint" for namespace in (bob.namespace, "setpoint-system")]
    for account in accounts:
        tenants.access.until_permitted(account, "create", GRANTS, bob.namespace, is_permitted=False)
    tenants.access.until_permitted("carol", "create", GRANTS, bob.namespace)
    # Nor by having it made.
    bob.apply(kubernetes_object("forged", forged))
    assert "setpoint reconciles" in bob.until_reason(
        "kubernetesobject/forged", "UpdateFailed", "ServiceAccountNotFound"
    )


def test_references_of_one_namespace_need_no_grant(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(bucket("own-first"), after("own-second", alice.namespace, "own-first"))
    alice.apply(taking("own-third", alice.namespace, "own-first"), depending("own-fourth", "StorageBucket/own-first"))

    for name in ("storagebucket/own-second", "kubernetesobject/own-third", "storagebucket/own-fourth"):
        alice.until_reason(name, "UpToDate")


# --- Values that are secret by their type -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keeper(tenants: TenantCluster) -> str:
    """A user of alice's with a password in its spec, which is ready."""
    metadata = {"name": "keeper"}
    spec = {"instanceRef": {"name": "kept"}, "password": {"value": PASSWORD}}
    tenants.alice.apply(instance("kept"))
    tenants.alice.apply({"apiVersion": f"{SQL}/v1beta1", "kind": "SQLUser", "metadata": metadata, "spec": spec})
    tenants.alice.until_reason("sqluser/keeper", "UpToDate")
    return "keeper"


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (0, "spec"),
        (1, "spec.password"),
        (2, "spec.password.value"),
        (3, '["spec"]["password"]["value"]'),
        (4, "metadata"),
        (5, "metadata.annotations"),
        (6, 'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]'),
    ],
)
def test_no_path_of_a_user_yields_its_password(tenants: TenantCluster, keeper: str, number: int, path: str) -> None:
    alice, name = tenants.alice, f"thief-{number}"
    ref = {"kind": "SQLUser", "name": keeper, "path": path}
    alice.apply(kubernetes_object(name, config_map(name) | {"data": {"taken": {"$ref": ref}}}))

    message = alice.until_reason(f"kubernetesobject/{name}", "UpdateFailed")

    assert "no resource gets a secret value of another" in message
    assert PASSWORD not in shown(alice, f"kubernetesobject/{name}")
    assert alice.get(f"configmap/{name}") is None


def test_a_secret_whose_kind_comes_from_a_reference_yields_no_output(tenants: TenantCluster) -> None:
    alice = tenants.alice
    alice.apply(kubernetes_object("word", config_map("word", kind="Secret"), waitFor={"field": "data.kind"}))
    ref = {"kind": "KubernetesObject", "name": "word", "path": "data.kind"}
    hidden = {
        "apiVersion": "v1",
        "kind": {"$ref": ref},
        "metadata": {"name": "hidden"},
        "stringData": {"key": PASSWORD},
    }
    alice.apply(kubernetes_object("hidden", hidden, waitFor={"field": "data.key"}))

    alice.until_reason("kubernetesobject/hidden", "WaitFailed")

    status = alice.get("kubernetesobject/hidden")["status"]
    assert alice.get("secret/hidden")["data"]["key"] == "U2VzYW1lLTQ3MTE="
    assert (status["output"]["state"], "last" in status["output"]) == ("unknown", False)
    assert not any(text in shown(alice, "kubernetesobject/hidden") for text in ("U2VzYW1lLTQ3MTE=", PASSWORD))
