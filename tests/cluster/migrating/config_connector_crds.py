"""Config Connector's own CustomResourceDefinitions, in short: their names, labels and status, without their schemas."""

from typing import Any, Final

from tests.cluster.access import Access
from tests.cluster.polling import until

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# By group: each kind with its plural and its short names.
_KINDS: Final = {
    "core.cnrm.cloud.google.com": (("ConfigConnectorContext", "configconnectorcontexts", ()),),
    "sql.cnrm.cloud.google.com": (
        ("SQLInstance", "sqlinstances", ("gcpsqlinstance", "gcpsqlinstances")),
        ("SQLDatabase", "sqldatabases", ("gcpsqldatabase", "gcpsqldatabases")),
        ("SQLUser", "sqlusers", ("gcpsqluser", "gcpsqlusers")),
    ),
    "storage.cnrm.cloud.google.com": (("StorageBucket", "storagebuckets", ("gcpstoragebucket", "gcpstoragebuckets")),),
}
# Everything is kept: what Config Connector's schemas list in full does not matter to another reader.
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def config_connector_crds() -> list[dict[str, Any]]:
    """The definitions."""
    return [
        _definition(group, kind, plural, list(short))
        for group, kinds in _KINDS.items()
        for kind, plural, short in kinds
    ]


def install_config_connector(cluster: Access) -> None:
    """Returns when the cluster serves these kinds; none of ours is installed."""
    for definition in config_connector_crds():
        assert cluster.call("POST", _CRDS, definition).status == 201
    paths = [f"/apis/{group}/v1beta1/{plural}" for group, kinds in _KINDS.items() for _, plural, _ in kinds]
    until(lambda: all(cluster.call("GET", path).status == 200 for path in paths))


def _definition(group: str, kind: str, plural: str, short: list[str]) -> dict[str, Any]:
    labels = {
        "cnrm.cloud.google.com/managed-by-kcc": "true",
        "cnrm.cloud.google.com/stability-level": "stable",
        "cnrm.cloud.google.com/system": "true",
        "cnrm.cloud.google.com/tf2crd": "true",
    }
    names = {
        **{"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": short},
        "categories": ["gcp"],
    }
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": _ANYTHING, "status": _ANYTHING}}
    version = {
        **{"name": "v1beta1", "served": True, "storage": True, "subresources": {"status": {}}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": labels,
            "annotations": {"cnrm.cloud.google.com/version": "1.120.0"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
