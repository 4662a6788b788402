"""`setpoint record`, as a user types it, and what is recorded: planned again without a network."""

import asyncio
import gzip
import json
from typing import Any

import pytest

from setpoint.app import StoreAccess, open_engine
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.errors import Bug
from setpoint.preview import require_same_report
from setpoint.replay.preview_report import PreviewReport
from tests.cli.fleets import (
    BUCKET,
    CUT,
    INSTANCE,
    drift,
    preview_report_of,
    settings_of,
    with_changed_default,
    with_revision,
)
from tests.cli.test_transfer import SECRET, writes
from tests.cli.trustees import KBS, TrusteeCommands, trustee
from tests.cli.workspace import Workspace, bucket


def test_a_recorded_world_gives_the_same_report_without_a_network(
    fleet: Workspace, second_workspace: Workspace
) -> None:
    drift(fleet)
    live = fleet.run("plan", "--all", "-o", "json")

    recorded = fleet.run("record", "--to", "world.gz")
    (second_workspace.folder / "world.gz").write_bytes((fleet.folder / "world.gz").read_bytes())
    played = second_workspace.run("plan", "--world", "world.gz", "-o", "json", **CUT)

    assert recorded.stdout.splitlines()[-1] == "5 resources and 4 answers in world.gz"
    assert (recorded.returncode, live.returncode, played.returncode) == (0, 2, 2)
    assert played.stdout == live.stdout
    assert writes(fleet) == writes(second_workspace) == []
    assert [path.name for path in second_workspace.folder.iterdir()] == ["world.gz"]


LOGIN = """
apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-login, interactiveMode: Never}}
contexts: [{name: prod, context: {cluster: c, user: u}}]
"""


def _object(name: str, **cluster: Any) -> str:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    spec = {"manifest": manifest, **({"cluster": cluster} if cluster else {})}
    metadata = {"name": name, "namespace": "default"}
    return json.dumps(
        {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": metadata, "spec": spec}
    )


@pytest.mark.parametrize("problem", ["there is no kubeconfig at ", "cannot run no-login"])
def test_what_cannot_be_reached_is_replayed_as_it_was(
    workspace: Workspace, second_workspace: Workspace, problem: str
) -> None:
    if "login" in problem:
        (workspace.folder / ".kube").mkdir()
        (workspace.folder / ".kube" / "config").write_text(LOGIN)
    objects = (_object("a"), _object("b", inCluster=True), _object("c", context="prod"))
    workspace.write(*(f"{one}\n" for one in (*objects, bucket("logs"))))
    # Google's services want credentials that are not there.
    credentials = str(workspace.folder / "none.json")
    google = {"SETPOINT_GCP_AUTH": "default", "GOOGLE_APPLICATION_CREDENTIALS": credentials}
    unreached = {**google, "STORAGE_EMULATOR_HOST": ""}
    workspace.run("apply", "-f", "manifest.yaml", "--no-wait", **unreached)
    live = workspace.run("plan", "--all", "-o", "json", **unreached)

    recorded = workspace.run("record", "--to", "world.gz", **unreached)
    (second_workspace.folder / "world.gz").write_bytes((workspace.folder / "world.gz").read_bytes())
    played = second_workspace.run("plan", "--world", "world.gz", "-o", "json", **CUT)

    assert recorded.returncode == 0, recorded.stderr
    assert (played.returncode, played.stdout) == (live.returncode, live.stdout)
    errors = [one["error"] for one in json.loads(played.stdout)["resources"]]
    expected = (problem, "there is no cluster around this process", problem, credentials)
    assert [found for found, words in zip(errors, expected, strict=True) if words not in found] == []


def test_a_recorded_world_holds_no_password(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")

    text = gzip.decompress((fleet.folder / "world.gz").read_bytes()).decode()

    assert "hidden-" in text
    assert [one for one in ("Sesame", "U2VzYW1l") if one in text] == []


def test_cookies_match_masked_values(fleet: Workspace) -> None:
    report = json.loads(fleet.run("record", "--to", "world.gz", "-o", "json").stdout)

    decisions = {one["kind"]: one["plan"]["decision"] for one in report["resources"]}
    assert decisions == {"SQLInstance": "in sync", "SQLUser": "in sync", "StorageBucket": "in sync"}


def test_a_changed_password_is_a_changed_masked_value(fleet: Workspace) -> None:
    fleet.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)
    fleet.write(SECRET.replace("Sesame-1", "Sesame-3"), INSTANCE.replace("Sesame-2", "Sesame-4"))
    fleet.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)
    live = fleet.run("plan", "--all", "-o", "json")
    fleet.run("record", "--to", "world.gz")

    played = fleet.run("plan", "--world", "world.gz", "-o", "json", **CUT)

    assert played.stdout == live.stdout
    found = {one["kind"]: (one["finding"], one["fields"]) for one in json.loads(live.stdout)["resources"]}
    assert found["SQLInstance"] == ("writes", ["spec.rootPassword"])
    assert found["SQLUser"] == ("writes", ["spec.password"])


def test_cookies_in_annotations_match_masked_values(workspace: Workspace) -> None:
    there = ("--cookie-location", "annotation")
    workspace.write(bucket("logs"), INSTANCE)
    workspace.run(*there, "apply", "-f", "manifest.yaml")
    workspace.in_cloud(lambda cloud: cloud.advance(3600))
    workspace.run(*there, "reconcile", "-f", "manifest.yaml")

    report = json.loads(workspace.run(*there, "record", "--to", "world.gz", "-o", "json").stdout)

    assert [(one["kind"], one["plan"]["decision"]) for one in report["resources"]] == [
        ("SQLInstance", "in sync"),
        ("StorageBucket", "in sync"),
    ]


def test_a_recording_whose_replay_differs_is_not_saved() -> None:
    refs = [ResourceRef(*BUCKET, "default", f"b{number}") for number in range(5)]
    live = PreviewReport(tuple(PreviewResult(ref, PreviewFinding.FAILED, trouble="a") for ref in refs))
    played = PreviewReport(tuple(PreviewResult(ref, PreviewFinding.FAILED, trouble="b") for ref in refs))

    require_same_report(live, live, lambda value: value)
    with pytest.raises(Bug, match=r"^StorageBucket default/b0, .*b2 and 2 more: differs when it is replayed"):
        require_same_report(live, played, lambda value: value)


def test_a_recorded_world_has_owners_their_children_and_the_environment_they_read(
    workspace: Workspace, second_workspace: Workspace
) -> None:
    commands = TrusteeCommands(workspace)
    commands.apply(trustee())
    commands.edit(KBS, kbsServiceType="NodePort")
    code, live = commands.run("plan", "--all", "-o", "json")

    recorded = commands.run("record", "--to", "world.gz")
    (second_workspace.folder / "world.gz").write_bytes((workspace.folder / "world.gz").read_bytes())
    played = second_workspace.run("plan", "--world", "world.gz", "-o", "json")

    assert recorded[0] == 0, recorded
    assert {one["kind"] for one in json.loads(played.stdout)["resources"]} == {"TrusteeConfig", "KbsConfig"}
    assert (played.returncode, played.stdout.splitlines()) == (code, live)


async def _change_secrets(workspace: Workspace) -> None:
    """Gives every Secret another value, without a step."""
    async with open_engine(settings_of(workspace), StoreAccess.WRITE) as engine:
        for one in (await engine.store.list(ResourceQuery(kind="Secret"))).resources:
            data: Any = dict.fromkeys(one.document["data"], "U2VzYW1lLTU=")  # type: ignore[arg-type] # a map of texts
            await engine.store.replace(one, {**one.document, "data": data})


def test_a_changed_masked_secret_restarts_its_pods(workspace: Workspace) -> None:
    commands = TrusteeCommands(workspace)
    commands.apply(trustee())
    asyncio.run(_change_secrets(workspace))
    code, live = commands.run("plan", "--all")
    assert any("configmap-versions" in line for line in live), live

    recorded = commands.run("record", "--to", "world.gz")
    played = commands.run("plan", "--world", "world.gz")

    assert recorded[0] == 0, recorded
    assert (played[0], len(played[1])) == (code, len(live))
    text = gzip.decompress((workspace.folder / "world.gz").read_bytes()).decode()
    assert "U2VzYW1lLTU=" not in text


def test_another_revision_of_a_kind_is_planned_on_a_recorded_world(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    file = fleet.folder / "world.gz"

    same, changed, raised = (preview_report_of(fleet, one, file) for one in (None, with_changed_default, with_revision))

    assert same.counts["StorageBucket"] == {PreviewFinding.IN_SYNC: 2}
    assert [one.fields for one in changed.with_findings(PreviewFinding.MASKED)] == [("spec.storageClass",)] * 2
    assert raised.counts["StorageBucket"] == {PreviewFinding.ONE_TIME: 2}


def test_a_request_that_was_not_recorded_fails(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    lines = gzip.decompress((fleet.folder / "world.gz").read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    kept = [line for line in lines[1:] if '"target":"/storage/v1/b/logs' not in line]
    header["answers"] -= 1
    text = "".join(f"{line}\n" for line in (json.dumps(header), *kept))
    (fleet.folder / "world.gz").write_bytes(gzip.compress(text.encode()))

    done = fleet.run("plan", "--world", "world.gz")

    assert done.returncode == 1
    message = "GET /storage/v1/b/logs (google) was not asked when this world was recorded: record it again"
    assert f"StorageBucket default/logs failed: {message}" in done.stdout.splitlines()
    assert "not recorded: GET /storage/v1/b/logs (google)" in done.stdout.splitlines()


def test_a_truncated_world_file_is_refused(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    whole = (fleet.folder / "world.gz").read_bytes()
    (fleet.folder / "world.gz").write_bytes(whole[: len(whole) // 2])

    done = fleet.run("plan", "--world", "world.gz")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: world.gz breaks off: a part of a recorded world is of no use; record it again\n"
