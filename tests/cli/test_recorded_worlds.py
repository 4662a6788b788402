"""`setpoint record`, as a user types it, and what is recorded: planned again with the network cut."""

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
from tests.cli.fleets import BUCKET, CUT, INSTANCE, drift, settings_of, survey_of, with_changed_default, with_revision
from tests.cli.test_moving import SECRET, writes
from tests.cli.trustees import KBS, Keeper, trustee
from tests.cli.workspace import Workspace, bucket


def test_a_recorded_world_gives_the_same_report_with_the_network_cut(fleet: Workspace, other_desk: Workspace) -> None:
    drift(fleet)
    live = fleet.run("plan", "--all", "-o", "json")

    recorded = fleet.run("record", "--to", "world.gz")
    (other_desk.folder / "world.gz").write_bytes((fleet.folder / "world.gz").read_bytes())
    played = other_desk.run("plan", "--world", "world.gz", "-o", "json", **CUT)

    assert recorded.stdout.splitlines()[-1] == "5 resources and 4 answers in world.gz"
    assert (recorded.returncode, live.returncode, played.returncode) == (0, 2, 2)
    assert played.stdout == live.stdout
    assert writes(fleet) == writes(other_desk) == []
    assert [path.name for path in other_desk.folder.iterdir()] == ["world.gz"]


def test_it_holds_no_password(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")

    text = gzip.decompress((fleet.folder / "world.gz").read_bytes()).decode()

    assert "hidden-" in text
    assert [one for one in ("Sesame", "U2VzYW1l") if one in text] == []


def test_cookies_vouch_for_what_is_under_the_veil(fleet: Workspace) -> None:
    told = json.loads(fleet.run("record", "--to", "world.gz", "-o", "json").stdout)

    decisions = {one["kind"]: one["plan"]["decision"] for one in told["resources"]}
    assert decisions == {"SQLInstance": "in sync", "SQLUser": "first look", "StorageBucket": "in sync"}


def test_a_password_that_was_changed_is_changed_under_the_veil_too(fleet: Workspace) -> None:
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


def test_cookies_in_annotations_vouch_under_the_veil_too(workspace: Workspace) -> None:
    there = ("--cookie-location", "annotation")
    workspace.write(bucket("logs"), INSTANCE)
    workspace.run(*there, "apply", "-f", "manifest.yaml")
    workspace.in_cloud(lambda cloud: cloud.advance(3600))
    workspace.run(*there, "reconcile", "-f", "manifest.yaml")

    told = json.loads(workspace.run(*there, "record", "--to", "world.gz", "-o", "json").stdout)

    assert [(one["kind"], one["plan"]["decision"]) for one in told["resources"]] == [
        ("SQLInstance", "in sync"),
        ("StorageBucket", "in sync"),
    ]


def test_what_looks_different_when_it_is_played_back_is_not_kept() -> None:
    refs = [ResourceRef(*BUCKET, "default", f"b{number}") for number in range(5)]
    live = PreviewReport(tuple(PreviewResult(ref, PreviewFinding.FAILED, trouble="a") for ref in refs))
    played = PreviewReport(tuple(PreviewResult(ref, PreviewFinding.FAILED, trouble="b") for ref in refs))

    require_same_report(live, live, lambda value: value)
    with pytest.raises(
        Bug, match=r"^StorageBucket default/b0, .*b2 and 2 more: looks different when it is played back"
    ):
        require_same_report(live, played, lambda value: value)


def test_owners_their_children_and_what_they_are_told_by_the_environment_are_in_it(
    workspace: Workspace, other_desk: Workspace
) -> None:
    keeper = Keeper(workspace)
    keeper.apply(trustee())
    keeper.edit(KBS, kbsServiceType="NodePort")
    code, live = keeper.run("plan", "--all", "-o", "json")

    recorded = keeper.run("record", "--to", "world.gz")
    (other_desk.folder / "world.gz").write_bytes((workspace.folder / "world.gz").read_bytes())
    played = other_desk.run("plan", "--world", "world.gz", "-o", "json")

    assert recorded[0] == 0, recorded
    assert {one["kind"] for one in json.loads(played.stdout)["resources"]} == {"TrusteeConfig", "KbsConfig"}
    assert (played.returncode, played.stdout.splitlines()) == (code, live)


async def _change_secrets(workspace: Workspace) -> None:
    """Every Secret gets another value, and no step has been taken since."""
    async with open_engine(settings_of(workspace), StoreAccess.WRITE) as engine:
        for one in (await engine.store.list(ResourceQuery(kind="Secret"))).resources:
            data: Any = dict.fromkeys(one.document["data"], "U2VzYW1lLTU=")  # type: ignore[arg-type] # a map of texts
            await engine.store.replace(one, {**one.document, "data": data})


def test_pods_that_have_to_follow_a_secret_have_to_do_so_under_the_veil_too(workspace: Workspace) -> None:
    keeper = Keeper(workspace)
    keeper.apply(trustee())
    asyncio.run(_change_secrets(workspace))
    code, live = keeper.run("plan", "--all")
    assert any("configmap-versions" in line for line in live), live

    recorded = keeper.run("record", "--to", "world.gz")
    played = keeper.run("plan", "--world", "world.gz")

    assert recorded[0] == 0, recorded
    assert (played[0], len(played[1])) == (code, len(live))
    text = gzip.decompress((workspace.folder / "world.gz").read_bytes()).decode()
    assert "U2VzYW1lLTU=" not in text


def test_a_kind_of_another_version_is_tried_on_it(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    file = fleet.folder / "world.gz"

    same, changed, raised = (survey_of(fleet, one, file) for one in (None, with_changed_default, with_revision))

    assert same.counts["StorageBucket"] == {PreviewFinding.IN_SYNC: 2}
    assert [one.fields for one in changed.with_findings(PreviewFinding.MASKED)] == [("spec.storageClass",)] * 2
    assert raised.counts["StorageBucket"] == {PreviewFinding.ONE_TIME: 2}


def test_what_was_not_asked_is_not_guessed(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    lines = gzip.decompress((fleet.folder / "world.gz").read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    kept = [line for line in lines[1:] if '"target":"/storage/v1/b/logs' not in line]
    header["answers"] -= 1
    text = "".join(f"{line}\n" for line in (json.dumps(header), *kept))
    (fleet.folder / "world.gz").write_bytes(gzip.compress(text.encode()))

    done = fleet.run("plan", "--world", "world.gz")

    assert done.returncode == 1
    told = "GET /storage/v1/b/logs (google) was not asked when this world was recorded: record it again"
    assert f"StorageBucket default/logs failed: {told}" in done.stdout.splitlines()
    assert "not recorded: GET /storage/v1/b/logs (google)" in done.stdout.splitlines()


def test_a_part_of_a_file_is_refused(fleet: Workspace) -> None:
    fleet.run("record", "--to", "world.gz")
    whole = (fleet.folder / "world.gz").read_bytes()
    (fleet.folder / "world.gz").write_bytes(whole[: len(whole) // 2])

    done = fleet.run("plan", "--world", "world.gz")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: world.gz breaks off: a part of a recorded world is of no use; record it again\n"
