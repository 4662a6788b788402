"""`setpoint run` says what it does: a log line for each write, drift and refusal, and an audit log that outlives it."""

import json
import signal
from typing import Any

from setpoint.localcloud.faults import AddLatency
from tests.cli.programs import Piped
from tests.cli.workspace import Workspace, bucket
from tests.cluster.polling import until

PATH = "/b/logs"


def _audit(workspace: Workspace) -> list[dict[str, Any]]:
    lines = (workspace.folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _logged(daemon: Piped, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in daemon.text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_writes_drift_and_refusals_are_logged_with_their_fields_and_audited(workspace: Workspace) -> None:
    daemon = workspace.daemon("--audit", "audit.jsonl")
    workspace.write(bucket("logs"))
    workspace.run("apply", "-f", "manifest.yaml")
    workspace.in_cloud(lambda cloud: cloud.edit(PATH, {"website": {"mainPageSuffix": "index.html"}}))
    workspace.run("reconcile", "StorageBucket/logs")
    workspace.write(bucket("logs", location="US"))
    workspace.run("apply", "-f", "manifest.yaml")
    daemon.until(lambda: _logged(daemon, "refused"))
    daemon.send(signal.SIGTERM)
    daemon.end()

    written = [(line["action"], line["target"].rpartition("/")[2]) for line in _logged(daemon, "written")]
    assert written == [("create", "logs"), ("update", "logs")]
    assert _logged(daemon, "drift found")[0]["fields"] == ["spec.website.mainPageSuffix"]
    refused = _logged(daemon, "refused")[0]
    assert (refused["level"], refused["error"]) == ("warning", "ImmutableFieldChanged")
    assert 'spec.location cannot change from "EU" to "US"' in refused["why"]
    audit = _audit(workspace)
    events = [line["event"] for line in audit]
    assert events == [
        *("started", "write", "request", "response", "written"),
        *("drift", "write", "request", "response", "written", "refused", "ended"),
    ]
    create, sent, received = audit[1:4]
    assert (create["action"], create["resource"]["name"]) == ("create", "logs")
    assert create["askedBy"] == "its declaration"
    assert (sent["service"], sent["request"], sent["body"]["location"]) == ("google", "POST /storage/v1/b", "EU")
    assert (received["status"], audit[6]["fields"][0]["path"]) == (200, "spec.website.mainPageSuffix")


def test_a_killed_process_leaves_the_write_that_it_was_sending(workspace: Workspace) -> None:
    daemon = workspace.daemon("--audit", "audit.jsonl")
    workspace.hold_operations()
    workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(3600, method="POST")))
    workspace.write(bucket("logs"))
    workspace.piped("apply", "-f", "manifest.yaml")
    until(lambda: _audit(workspace)[-1]["event"] == "request")
    daemon.send(signal.SIGKILL)
    daemon.end()
    workspace.release()

    assert [line["event"] for line in _audit(workspace)] == ["started", "write", "request"]


def test_an_audit_log_that_cannot_be_opened_is_an_error_at_the_start(workspace: Workspace) -> None:
    ended = workspace.run("run", "--audit", "no/such/audit.jsonl")

    assert ended.returncode == 1
    assert "error: --audit no/such/audit.jsonl: No such file or directory: name a file" in ended.stderr
