"""One manifest, the command that is run on it, another writer in the same project, and what reached the cloud."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from setpoint.localcloud.journal import RecordedRequest
from setpoint.localcloud.server import LocalCloud
from tests.cli.workspace import Workspace

_MINUTE: Final = 60.0


class Stage:
    """Every command is a process of its own; between two of them there is only the store."""

    def __init__(self, workspace: Workspace) -> None:
        self._desk = workspace

    def apply(self, *manifests: Mapping[str, Any]) -> list[RecordedRequest]:
        """The writes that reach the cloud when the manifests are applied until they are settled."""
        self._write(*manifests)
        return self._writes_of("apply")

    def reconcile(self) -> list[RecordedRequest]:
        """The writes that reach the cloud when the command looks again."""
        return self._writes_of("reconcile")

    def delete(self) -> list[RecordedRequest]:
        """The writes that reach the cloud when the manifests are deleted until they are gone."""
        return self._writes_of("delete")

    def plan(self, manifest: Mapping[str, Any]) -> str:
        """What the command shows of the changes that it would make."""
        self._write(manifest)
        done = self._desk.run("plan", "-f", "manifest.yaml")
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stdout

    def live(self, path: str) -> dict[str, Any]:
        """The object at an API path."""
        body = self._desk.in_cloud(lambda cloud: cloud.call("GET", path).body)
        assert body is not None
        return body

    def others(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Another writer sends a request, and it is executed."""

        def send(cloud: LocalCloud) -> None:
            answer = cloud.call(method, path, body)
            assert answer.status == 200, answer.body
            cloud.advance(_MINUTE)

        self._desk.in_cloud(send)

    def _write(self, *manifests: Mapping[str, Any]) -> None:
        # JSON is YAML.
        self._desk.write(*(f"{orjson.dumps(manifest).decode()}\n" for manifest in manifests))

    def _writes_of(self, command: str) -> list[RecordedRequest]:
        self._desk.in_cloud(lambda cloud: cloud.journal.clear())
        done = self._desk.run(command, "-f", "manifest.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        entries = self._desk.in_cloud(lambda cloud: cloud.journal.entries)
        # A command that asked nothing shows nothing about what it would have written.
        assert entries
        return [entry for entry in entries if entry.is_write]
