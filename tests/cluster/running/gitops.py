"""A GitOps tool that applies a manifest repeatedly, and prunes other labels and annotations."""

import http.client
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.cluster.access import Access
from tests.cluster.running.manifests import STORAGE

MANAGER: Final = "gitops"


@dataclass(frozen=True, slots=True)
class GitOps:
    """The tool for one bucket, `path` in the API of the cluster."""

    access: Access
    path: str
    manifest: Any

    @staticmethod
    def of(access: Access, namespace: str, manifest: Any) -> "GitOps":
        """The tool for `manifest`."""
        name = manifest["metadata"]["name"]
        return GitOps(access, f"/apis/{STORAGE}/namespaces/{namespace}/storagebuckets/{name}", manifest)

    @property
    def name(self) -> str:
        """The name of the bucket."""
        return str(self.manifest["metadata"]["name"])

    @property
    def target(self) -> str:
        """The argument for kubectl."""
        return f"storagebucket/{self.name}"

    def apply(self) -> Any:
        """Server-side apply that forces conflicts."""
        return self._send(f"?fieldManager={MANAGER}&force=true", "application/apply-patch+yaml", self.manifest)

    def prune(self) -> Any:
        """Removes every annotation and label that is not in the manifest: more than Argo CD and Flux do."""
        now = self.access.call("GET", self.path).body["metadata"]
        foreign = {
            member: {key: None for key in now.get(member, {}) if key not in self.manifest["metadata"].get(member, {})}
            for member in ("annotations", "labels")
        }
        return self._send(f"?fieldManager={MANAGER}", "application/merge-patch+json", {"metadata": foreign})

    def _send(self, query: str, content_type: str, body: Any) -> Any:
        connection = http.client.HTTPSConnection(urlsplit(self.access.url).netloc, context=self.access.tls())
        try:
            connection.request("PATCH", self.path + query, json.dumps(body), {"Content-Type": content_type})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status in (200, 201), answer
        return answer
