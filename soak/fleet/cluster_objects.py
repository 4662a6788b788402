"""The objects that KubernetesObjects of a soak are about: each of their versions, and each request that wrote one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from soak.fleet.api import Api, Tree

# The ServiceAccount of a namespace that controllers act as.
TENANT: Final = "setpoint"
# What the API server is asked to log: the writes of the objects, without their bodies.
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "", "resources": ["configmaps"]}],
        },
        {"level": "None"},
    ],
}


class ObjectVersion(NamedTuple):
    """A version of an object: which object it is, and the edition that it has."""

    uid: str
    edition: str
    resource_version: str


class WriteRequest(NamedTuple):
    """A write of an object that the API server accepted: by which account, and on behalf of which."""

    verb: str
    user: str
    on_behalf_of: str


@dataclass(slots=True)
class ObjectWatch:
    """Observes every version of the ConfigMaps in a namespace. `audit_log` is that of the API server, if it has one."""

    api: Api
    namespace: str
    audit_log: Path | None = None
    versions: dict[str, list[ObjectVersion]] = field(default_factory=dict)
    _live: dict[str, Tree] = field(default_factory=dict)

    async def watch_until_cancelled(self) -> None:
        """Until it is cancelled. The API server ends a watch now and then."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        since = (await self.api.get(path))["metadata"]["resourceVersion"]
        while True:
            async for event in self.api.watch(path, since):
                assert event["type"] != "ERROR", event
                since = event["object"]["metadata"]["resourceVersion"]
                self._observe(event["object"], is_deleted=event["type"] == "DELETED")

    def live(self, name: str) -> Tree | None:
        """The object as it was observed last; None when there is none."""
        return self._live.get(name)

    def writes_to(self, name: str) -> list[WriteRequest]:
        """The requests that wrote the object; none without an audit log."""
        return list(self._logged(name))

    def _observe(self, found: Tree, *, is_deleted: bool) -> None:
        metadata = found["metadata"]
        version = ObjectVersion(metadata["uid"], found.get("data", {}).get("edition", ""), metadata["resourceVersion"])
        self.versions.setdefault(metadata["name"], []).append(version)
        if is_deleted:
            self._live.pop(metadata["name"], None)
        else:
            self._live[metadata["name"]] = found

    def _logged(self, name: str) -> Iterator[WriteRequest]:
        if self.audit_log is None:
            return
        for line in self.audit_log.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            target = event.get("objectRef", {})
            is_real = "dryRun=" not in event["requestURI"] and event.get("responseStatus", {}).get("code", 0) < 300
            if is_real and (target.get("namespace"), target.get("name")) == (self.namespace, name):
                acted_as = event.get("impersonatedUser", {}).get("username", "")
                yield WriteRequest(event["verb"], event["user"]["username"], acted_as)
