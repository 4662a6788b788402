"""The requests of a preview: captured, reported, and the same that a step sends."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from setpoint.app import StoreAccess, open_engine
from setpoint.clients.write_guard import BlockedWrite
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.replay.preview_report import PreviewReport
from tests.cli.fleets import BUCKET, CUT, drift, match_cookie_to_live, preview_report_of, settings_of
from tests.cli.test_transfer import SECRET, writes
from tests.cli.trustees import TrusteeCommands, trustee
from tests.cli.workspace import Workspace, bucket


def run_in_store(workspace: Workspace, verb: Callable[[EngineContext], Awaitable[Any]]) -> None:
    """Runs `verb` on the engine of the workspace, without a step."""

    async def main() -> None:
        async with open_engine(settings_of(workspace), StoreAccess.WRITE) as engine:
            await verb(engine)

    asyncio.run(main())


def requests_of(found: PreviewReport, kind: str) -> Sequence[BlockedWrite]:
    return [one for ref, sent in found.requests.items() if ref.kind == kind for one in sent]


def test_the_request_of_a_deletion_is_captured(fleet: Workspace) -> None:
    run_in_store(fleet, lambda engine: engine.store.delete(ResourceRef(*BUCKET, "default", "logs")))

    found = preview_report_of(fleet)

    assert [str(one) for one in requests_of(found, "StorageBucket")] == ["DELETE /storage/v1/b/logs (google)"]


def test_the_writes_of_an_owner_are_captured_without_secrets(workspace: Workspace) -> None:
    commands = TrusteeCommands(workspace)
    commands.apply(trustee())
    new: dict[str, Any] = {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "TrusteeConfig",
        "metadata": {"name": "other"},
    }
    run_in_store(workspace, lambda engine: engine.store.apply({**new, "spec": {"profileType": "Permissive"}}))
    workspace.environment["OPERATOR_IMAGE_NAME"] = "operator:1"

    found = preview_report_of(workspace)

    sent = requests_of(found, "TrusteeConfig")
    assert {one.method for one in sent} == {"create"}
    assert "KbsConfig default/other-kbs-config" in {one.target for one in sent}
    secrets: list[Any] = [one.body for one in sent if one.target.startswith("Secret ")]
    assert {body[name] for body in secrets for name in ("data", "stringData") if name in body} == {"(redacted)"}
    assert found.blocked == ()


def test_the_json_report_has_the_captured_requests(fleet: Workspace) -> None:
    drift(fleet)
    fleet.write(bucket("logs"), bucket("more"), bucket("new"), SECRET.replace("Sesame-1", "Sesame-3"))
    fleet.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)

    report = json.loads(fleet.run("plan", "--all", "-o", "json").stdout)

    sent = {
        one["name"]: [(each["method"], each["target"]) for each in one.get("requests", ())]
        for one in report["resources"]
    }
    instance = "/sql/v1beta4/projects/some-project/instances"
    assert sent == {
        "shop": [],
        "app": [("PUT", f"{instance}/main/users")],
        "logs": [("PATCH", "/storage/v1/b/logs")],
        "more": [],
        "new": [("POST", "/storage/v1/b")],
    }
    (logs,) = [one["requests"][0] for one in report["resources"] if one["name"] == "logs"]
    assert (logs["body"], logs["fields"]) == ({"versioning": {"enabled": False}}, ["versioning.enabled"])
    (app,) = [one["requests"][0] for one in report["resources"] if one["name"] == "app"]
    assert app["body"]["password"] == "(redacted)"
    assert report["blocked"] == []
    assert writes(fleet) == []


def test_a_masked_difference_is_reported_with_the_requests_without_a_cookie(fleet: Workspace) -> None:
    drift(fleet)
    match_cookie_to_live(fleet)

    found = preview_report_of(fleet)

    assert [(str(ref), [str(one) for one in sent]) for ref, sent in found.requests.items() if sent] == [
        ("StorageBucket default/logs", ["PATCH /storage/v1/b/logs (google)"])
    ]
    assert found.blocked == ()


def test_the_requests_of_a_step_are_those_that_were_captured(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    drift(workspace)
    run_in_store(workspace, lambda engine: engine.store.delete(ResourceRef(*BUCKET, "default", "more")))
    workspace.write(bucket("logs"), bucket("new"))
    workspace.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    sent = requests_of(preview_report_of(workspace), "StorageBucket")
    assert writes(workspace) == []
    workspace.run("reconcile")

    entries = [one for one in workspace.in_cloud(lambda cloud: cloud.journal.entries) if one.is_write]
    assert len(sent) == 3
    assert sorted((one.method, one.target, json.dumps(one.body, sort_keys=True)) for one in sent) == sorted(
        (one.method, one.path, json.dumps(one.body, sort_keys=True)) for one in entries
    )
