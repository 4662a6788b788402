"""A namespace with resources as Config Connector leaves them; its controller itself does not run."""

from collections.abc import Mapping
from typing import Any, Final

from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.cluster.polling import until
from tests.scenarios.served_kinds import serve_kinds

BUCKETS: Final = "/apis/storage.cnrm.cloud.google.com/v1beta1/namespaces/{}/storagebuckets"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CORE: Final = "core.cnrm.cloud.google.com"
CONTEXT: Final = f"configconnectorcontext.{_CORE}"
_COOKIE: Final = "c/2jmj7l5rSw0yVb_vlWAYkK_YBwk=/2jmj7l5rSw0yVb_vlWAYkK_YBwk="
_FINALIZERS: Final = ("cnrm.cloud.google.com/finalizer", "cnrm.cloud.google.com/deletion-defender")


def serve_config_connector_kinds(cluster: Access) -> None:
    """Serves the kinds of Config Connector and ConfigConnectorContext."""
    serve_kinds(cluster)
    names = {
        "plural": "configconnectorcontexts",
        "singular": "configconnectorcontext",
        "kind": "ConfigConnectorContext",
    }
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"configconnectorcontexts.{_CORE}"},
        "spec": {"group": _CORE, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert cluster.call("POST", _CRDS, definition).status in (201, 409)
    path = f"/apis/{_CORE}/v1beta1/namespaces/default/configconnectorcontexts"
    until(lambda: cluster.call("GET", path).status == 200)


def config_connector_bucket(name: str, **annotations: str) -> dict[str, Any]:
    """A bucket that is declared to Config Connector."""
    given = {"cnrm.cloud.google.com/project-id": "some-project", **annotations}
    head = {"apiVersion": "storage.cnrm.cloud.google.com/v1beta1", "kind": "StorageBucket"}
    return {**head, "metadata": {"name": name, "annotations": given}, "spec": {"location": "EU"}}


class ConfigConnectorCluster:
    """A namespace in the state that Config Connector leaves, with its buckets."""

    def __init__(self, cluster: Access, namespace: str, workspace: Workspace) -> None:
        self.cluster, self.namespace, self.workspace = cluster, namespace, workspace
        self.context = f"/apis/{_CORE}/v1beta1/namespaces/{namespace}/configconnectorcontexts"
        spec = {"actuationMode": "Reconciling"}
        body = {"apiVersion": f"{_CORE}/v1beta1", "kind": "ConfigConnectorContext", "metadata": {"name": CONTEXT}}
        assert cluster.call("POST", self.context, {**body, "spec": spec}).status == 201

    def create(self, name: str, live: Mapping[str, Any] | None = None, **annotations: str) -> None:
        """A bucket in cluster and cloud, as Config Connector leaves it."""
        self.settle(config_connector_bucket(name, **annotations), live or {})

    def settle(self, manifest: dict[str, Any], live: Mapping[str, Any]) -> None:
        """The same for this manifest; `live` holds further fields of the bucket in the cloud."""
        name, given = manifest["metadata"]["name"], manifest["metadata"]["annotations"]
        annotations = {"cnrm.cloud.google.com/last-changed-cookie": _COOKIE, **given}
        metadata = {"name": name, "annotations": annotations, "finalizers": list(_FINALIZERS)}
        made = self.cluster.call("POST", BUCKETS.format(self.namespace), {**manifest, "metadata": metadata})
        assert made.status == 201, made
        body = {"name": name, **manifest["spec"], "labels": {"managed-by-cnrm": "true"}, **live}
        path = f"/storage/v1/b?project={given['cnrm.cloud.google.com/project-id']}"
        self.workspace.in_cloud(lambda cloud: cloud.call("POST", path, body))

    def uninstall(self) -> None:
        """Removes Config Connector from the namespace."""
        assert self.cluster.call("DELETE", f"{self.context}/{CONTEXT}").status == 200

    def resource(self, name: str) -> dict[str, Any]:
        """The resource in the cluster."""
        body: dict[str, Any] = self.cluster.call("GET", f"{BUCKETS.format(self.namespace)}/{name}").body
        return body

    @property
    def mode(self) -> str:
        """The actuation mode of Config Connector."""
        return str(self.cluster.call("GET", f"{self.context}/{CONTEXT}").body["spec"]["actuationMode"])
