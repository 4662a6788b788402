"""The kinds that the contract of stores is about, in a cluster: open to any spec."""

import time
from http import HTTPStatus
from typing import Any, Final

from setpoint.stores.kubernetes.served_kinds import ServedKind
from tests.cluster.access import Access
from tests.stores.samples import GROUP

KINDS: Final = (
    ServedKind(GROUP, "v1beta1", "SQLInstance", "sqlinstances"),
    ServedKind("", "v1", "Secret", "secrets"),
)
# What owners make, whoever looks after it.
OTHERS: Final = (
    ServedKind("", "v1", "ConfigMap", "configmaps"),
    ServedKind("apps", "v1", "Deployment", "deployments"),
    ServedKind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    ServedKind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False),
)
NAMESPACES: Final = ("default", "one", "two", "other")
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_PATIENCE: Final = 30.0


def install(access: Access) -> None:
    """The namespaces and the kind, when the cluster serves it."""
    for name in NAMESPACES:
        access.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    made = access.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _crd())
    assert made.status in (HTTPStatus.CREATED, HTTPStatus.CONFLICT), made
    end = time.monotonic() + _PATIENCE
    while access.call("GET", f"/apis/{GROUP}/v1/sqlinstances").status != HTTPStatus.OK:
        assert time.monotonic() < end, "the kind is not served"
        time.sleep(0.05)


def wipe(access: Access) -> None:
    """Nothing of the contract's kinds, no note and no lease is left."""
    for kind in (*KINDS, *OTHERS):
        path = kind.all_in(None).path
        for one in access.call("GET", path).body["items"]:
            _remove(access, kind, one["metadata"])
    for namespace in NAMESPACES:
        access.call("DELETE", f"/api/v1/namespaces/{namespace}/events")
    access.call("DELETE", _LEASES)


def _remove(access: Access, kind: ServedKind, metadata: dict[str, Any]) -> None:
    namespace = metadata.get("namespace")
    if namespace not in (*NAMESPACES, None):
        return
    path = f"{kind.all_in(namespace).path}/{metadata['name']}"
    if metadata.get("finalizers"):
        access.call("PATCH", path, {"metadata": {"finalizers": None}})
    access.call("DELETE", path)


def _crd() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
    versions: list[dict[str, Any]] = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1beta1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        }
        for name in ("v1beta1", "v1")
    ]
    names = {"kind": "SQLInstance", "plural": "sqlinstances", "singular": "sqlinstance"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"sqlinstances.{GROUP}"},
        "spec": spec,
    }
