"""Objects as owners generate them, of built-in kinds."""

from typing import Final

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource, ResourceRef

LABELS: Final = {"team": "a"}
CONFIG_MAP: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default", "labels": LABELS},
    "data": {"a": "1"},
}
OPAQUE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "default", "labels": LABELS},
    "type": "Opaque",
    "data": {"a": "MQ=="},
}
DEPLOYMENT: Final[JsonObject] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": LABELS},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
        },
    },
}
STORAGE_CLASS: Final[JsonObject] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "slow", "labels": LABELS},
    "provisioner": "example.com/none",
}
VOLUME: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk", "labels": LABELS},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/nowhere"},
    },
}


def ref_of(document: JsonObject) -> ResourceRef:
    """Which object; one without a namespace has none."""
    return Resource(document).ref
