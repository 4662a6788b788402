"""States of other providers, as they store them, and the objects that they leave in a cluster."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.terraform.objects.workspace import Workspace

REGISTRY = "registry.terraform.io"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config_map_tree(name: str, namespace: str, data: Mapping[str, str], **annotations: str) -> dict[str, Any]:
    """A ConfigMap."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def _typed(value: Any) -> Any:
    match value:
        case dict():
            return ["object", {name: _typed(one) for name, one in value.items()}]
        case list():
            return ["tuple", [_typed(one) for one in value]]
        case str():
            return "string"
        case _:
            return "dynamic"


def _dynamic(value: Any) -> dict[str, Any]:
    return {"value": value, "type": _typed(value)}


@dataclass(frozen=True, slots=True)
class FormerResource:
    """A resource of another provider in a state: its type, its provider, the version of its schema, and its values."""

    type: str
    provider: str
    version: int
    attributes: Mapping[str, Any]

    def in_state(self, name: str) -> dict[str, Any]:
        """The resource in a state file."""
        instance = {"schema_version": self.version, "attributes": self.attributes, "sensitive_attributes": []}
        provider = f'provider["{REGISTRY}/{self.provider}"]'
        return {"mode": "managed", "type": self.type, "name": name, "provider": provider, "instances": [instance]}


def kubernetes_manifest(tree: Mapping[str, Any], uid: str = "", manager: str = "") -> FormerResource:
    """A `kubernetes_manifest` of hashicorp/kubernetes 2.x."""
    live = {**tree, "metadata": {**tree["metadata"], "uid": uid or None, "labels": None}}
    blocks = {
        "field_manager": [{"force_conflicts": None, "name": manager}] if manager else [],
        "timeouts": [],
        "wait": [],
    }
    computed = {"computed_fields": None, "object": _dynamic(live), "wait_for": None}
    return FormerResource(
        "kubernetes_manifest", "hashicorp/kubernetes", 1, {"manifest": _dynamic(tree), **computed, **blocks}
    )


def kubectl_manifest(tree: Mapping[str, Any], provider: str = "gavinbunney/kubectl", **more: Any) -> FormerResource:
    """A `kubectl_manifest` of gavinbunney/kubectl 1.x or alekc/kubectl 2.x."""
    metadata = tree["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}"
    attributes = {
        "api_version": tree["apiVersion"],
        "apply_only": False,
        "force_conflicts": False,
        "force_new": False,
        "id": path,
        "ignore_fields": None,
        "kind": tree["kind"],
        "live_manifest_incluster": "0" * 64,
        "live_uid": "5f0c1b8e-0000-4000-8000-000000000000",
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "override_namespace": None,
        "sensitive_fields": None,
        "server_side_apply": False,
        "timeouts": None,
        "uid": "5f0c1b8e-0000-4000-8000-000000000000",
        "validate_schema": True,
        "wait": None,
        "wait_for_rollout": True,
        "yaml_body": json.dumps(tree, indent=1),
        "yaml_body_parsed": json.dumps(tree, indent=1),
        "yaml_incluster": "0" * 64,
    }
    return FormerResource("kubectl_manifest", provider, 1, {**attributes, **more})


def k8sconnect_object(tree: Mapping[str, Any], cluster: Mapping[str, Any]) -> FormerResource:
    """A `k8sconnect_object` of jmorris0x0/k8sconnect 0.3."""
    names = ("host", "kubeconfig", "context", "token", "client_certificate", "client_key", "proxy_url", "exec")
    metadata = tree["metadata"]
    ref = {"api_version": tree["apiVersion"], "kind": tree["kind"], "name": metadata["name"]}
    attributes = {
        "cluster": {**dict.fromkeys((*names, "cluster_ca_certificate", "insecure")), **cluster},
        "delete_protection": None,
        "delete_timeout": None,
        "force_destroy": None,
        "id": "0c8b4b2f9a31",
        "ignore_fields": None,
        "managed_fields": {"data.a": "k8sconnect"},
        "managed_state_projection": {"data.a": "1"},
        "object_ref": {**ref, "namespace": metadata.get("namespace")},
        "yaml_body": json.dumps(tree),
    }
    return FormerResource("k8sconnect_object", "jmorris0x0/k8sconnect", 2, attributes)


def write_state(workspace: Workspace, resources: Mapping[str, FormerResource]) -> str:
    """Writes the state file with these resources; its text."""
    state = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": 1,
        "lineage": "c1b5a1f0-0000-4000-8000-000000000000",
        "outputs": {},
        "resources": [one.in_state(name) for name, one in resources.items()],
        "check_results": None,
    }
    text = json.dumps(state)
    (workspace.folder / "terraform.tfstate").write_text(text)
    return text
