"""The CRDs of the store contract: they accept any spec."""

from http import HTTPStatus
from typing import Any, Final

from setpoint.stores.kubernetes.served_kinds import ServedKind
from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.stores.samples import GROUP

KINDS: Final = (
    ServedKind(GROUP, "v1beta1", "SQLInstance", "sqlinstances"),
    ServedKind("", "v1", "Secret", "secrets"),
)
# Kinds that owners generate.
OTHERS: Final = (
    ServedKind("", "v1", "ConfigMap", "configmaps"),
    ServedKind("apps", "v1", "Deployment", "deployments"),
    ServedKind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    ServedKind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False),
)
NAMESPACES: Final = ("default", "one", "two", "other")
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def install(access: Access) -> None:
    """Creates the namespaces and the CRD, and waits until it is served."""
    for name in NAMESPACES:
        access.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    made = access.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _crd())
    assert made.status in (HTTPStatus.CREATED, HTTPStatus.CONFLICT), made
    until(lambda: access.call("GET", f"/apis/{GROUP}/v1/sqlinstances").status == HTTPStatus.OK)


def wipe(access: Access) -> None:
    """Removes all objects of the contract's kinds, Events and Leases."""
    for kind in (*KINDS, *OTHERS):
        for one in access.call("GET", kind.all_in(None).path).body["items"]:
            _remove_finalizers(access, kind, one["metadata"])
        # All at once: there may be a thousand.
        for namespace in NAMESPACES if kind.namespaced else (None,):
            access.call("DELETE", kind.all_in(namespace).path)
    for namespace in NAMESPACES:
        access.call("DELETE", f"/api/v1/namespaces/{namespace}/events")
    access.call("DELETE", _LEASES)


def _remove_finalizers(access: Access, kind: ServedKind, metadata: dict[str, Any]) -> None:
    if metadata.get("finalizers"):
        path = f"{kind.all_in(metadata.get('namespace')).path}/{metadata['name']}"
        access.call("PATCH", path, {"metadata": {"finalizers": None}})


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
