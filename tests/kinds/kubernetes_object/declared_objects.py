"""KubernetesObjects as an author writes them, without a cluster."""

from typing import Any

from setpoint.engine.intent import check_manifest
from setpoint.engine.ports import SystemClock
from setpoint.engine.resource import Resource
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind

Tree = dict[str, Any]
MAP: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}}


def kind() -> KubernetesObjectKind:
    """The kind, with no cluster to reach."""
    return KubernetesObjectKind(Clusters(), SystemClock())


def resource(manifest: Any, annotations: dict[str, str] | None = None, **spec: Any) -> Resource:
    """A KubernetesObject `shop/web`."""
    metadata: Tree = {"name": "web", "namespace": "shop", "annotations": annotations or {}}
    head: Tree = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": metadata}
    return Resource({**head, "spec": {"manifest": manifest, **spec}})


def check(manifest: Any, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    """What is wrong with it is raised."""
    check_manifest(resource(manifest, annotations, **spec), kind())
