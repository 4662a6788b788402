"""Manifests of KubernetesObjects and of their objects."""

from typing import Any, Final

ADDRESS: Final = "status.loadBalancer.ingress[0].ip"
_POD: Final[dict[str, Any]] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}
_SELECTED: Final = {"selector": {"matchLabels": {"app": "web"}}, "template": _POD}


def kubernetes_object(tree: Any, *, after: str = "", **spec: Any) -> dict[str, Any]:
    """A KubernetesObject with the name of its object; `after` are its dependencies, `spec` further fields."""
    metadata: dict[str, Any] = {"name": tree["metadata"]["name"]}
    if after:
        metadata["annotations"] = {"setpoint.dev/depends-on": after}
    spec = {"manifest": tree, **spec}
    return {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": metadata, "spec": spec}


def service(name: str) -> dict[str, Any]:
    """A Service of type LoadBalancer."""
    spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def record(name: str, target: Any = "192.0.2.1") -> dict[str, Any]:
    """A record of a DNS service, which is a custom resource."""
    spec = {"host": f"{name}.example.com", "target": target}
    return {"apiVersion": "names.example.com/v1", "kind": "DNSRecord", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, replicas: int = 3) -> dict[str, Any]:
    """A Deployment."""
    return _workload("apps/v1", "Deployment", name, {"replicas": replicas, **_SELECTED})


def stateful_set(name: str, replicas: int, **strategy: Any) -> dict[str, Any]:
    """A StatefulSet with this update strategy."""
    spec = {"serviceName": "web", "replicas": replicas, "updateStrategy": strategy, **_SELECTED}
    return _workload("apps/v1", "StatefulSet", name, spec)


def daemon_set(name: str) -> dict[str, Any]:
    """A DaemonSet."""
    return _workload("apps/v1", "DaemonSet", name, _SELECTED)


def job(name: str) -> dict[str, Any]:
    """A Job."""
    template = {"spec": {**_POD["spec"], "restartPolicy": "Never"}}
    return _workload("batch/v1", "Job", name, {"template": template})


def _workload(api_version: str, kind: str, name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def value_of(name: str, path: str = ADDRESS) -> dict[str, Any]:
    """A reference to a value of another KubernetesObject."""
    return {"$ref": {"kind": "KubernetesObject", "name": name, "path": path}}


def definition(group: str) -> dict[str, Any]:
    """The definition of DNSRecord in a group of that name."""
    spec = {"type": "object", "properties": {"host": {"type": "string"}, "target": {"type": "string"}}}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": anything}}},
    }
    names = {"kind": "DNSRecord", "plural": "dnsrecords", "singular": "dnsrecord"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"dnsrecords.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
