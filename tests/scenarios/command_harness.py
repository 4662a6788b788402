"""One manifest, the command that is run on it, another writer in the same project, and what reached the cloud."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from setpoint.localcloud.journal import RecordedRequest
from setpoint.localcloud.server import LocalCloud
from tests.cli.workspace import Workspace

_MINUTE: Final = 60.0


class CommandHarness:
    """Every command is a process of its own; between two of them there is only the store."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def apply(self, *manifests: Mapping[str, Any]) -> list[RecordedRequest]:
        """The writes that reach the cloud when the manifests are applied until they are settled."""
        self._write(*manifests)
        return self._writes_of("apply")

    def reconcile(self) -> list[RecordedRequest]:
        """The writes that reach the cloud when the manifests are reconciled."""
        return self._writes_of("reconcile")

    def delete(self) -> list[RecordedRequest]:
        """The writes that reach the cloud when the manifests are deleted until they are gone."""
        return self._writes_of("delete")

    def plan(self, manifest: Mapping[str, Any]) -> str:
        """The plan that the command shows."""
        self._write(manifest)
        done = self._workspace.run("plan", "-f", "manifest.yaml")
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stdout

    def live(self, path: str) -> dict[str, Any]:
        """The object at an API path."""
        body = self._workspace.in_cloud(lambda cloud: cloud.call("GET", path).body)
        assert body is not None
        return body

    def write_as_another(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Another writer sends a request, and it is executed."""

        def send(cloud: LocalCloud) -> None:
            answer = cloud.call(method, path, body)
            assert answer.status == 200, answer.body
            cloud.advance(_MINUTE)

        self._workspace.in_cloud(send)

    def _write(self, *manifests: Mapping[str, Any]) -> None:
        # JSON is YAML.
        self._workspace.write(*(f"{orjson.dumps(manifest).decode()}\n" for manifest in manifests))

    def _writes_of(self, command: str) -> list[RecordedRequest]:
        self._workspace.in_cloud(lambda cloud: cloud.journal.clear())
        done = self._workspace.run(command, "-f", "manifest.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        entries = self._workspace.in_cloud(lambda cloud: cloud.journal.entries)
        # A command that asked nothing shows nothing about what it would have written.
        assert entries
        return [entry for entry in entries if entry.is_write]
