"""`setpoint plan --all` and `setpoint record`, as somebody types them; and what tries to write meanwhile."""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from setpoint.app import Access, open_guarded, open_world
from setpoint.cli.preview_commands import code_of
from setpoint.cli.states import Exit
from setpoint.clients.read_only import Blocks
from setpoint.engine.kind import AnyKind, Present, Resolved, look_at
from setpoint.engine.ports import Query
from setpoint.engine.previews import Finding, with_cookie
from setpoint.engine.reconcile import preview, step
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Stopped
from setpoint.engine.standing import standing_of
from setpoint.errors import WriteBlocked
from setpoint.worlds.survey import Survey
from tests.cli.desk import Desk, bucket
from tests.cli.fleets import BUCKET, looked_at, meddling, settings_of, with_changed_default, with_revision
from tests.cli.test_moving import SECRET, USER, writes
from tests.cli.trustees import KBS, Keeper, trustee

LOGS = ResourceRef(*BUCKET, "default", "logs")
CUT = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1", "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "http://127.0.0.1:1/"}
INSTANCE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: shop
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec:
  region: europe-west1
  databaseVersion: POSTGRES_16
  rootPassword: {value: Sesame-2-root}
  settings: {tier: db-custom-2-8192}
"""


@pytest.fixture
def fleet(desk: Desk) -> Desk:
    """Somebody with buckets, an instance with a password in its manifest, and a user with one in a Secret."""
    desk.make_instance("main")
    desk.in_cloud(lambda cloud: cloud.clock.release())
    desk.apply(bucket("logs"), bucket("more"), SECRET, USER, INSTANCE)
    desk.in_cloud(lambda cloud: cloud.advance(3600))
    desk.act("reconcile")
    desk.in_cloud(lambda cloud: cloud.journal.clear())
    return desk


def drift(desk: Desk) -> None:
    desk.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/logs", {"versioning": {"enabled": True}}))


def forge(desk: Desk) -> None:
    """Puts a cookie on record that vouches for whatever is there."""

    async def main() -> None:
        async with open_world(settings_of(desk), Access.WRITE) as world:
            resource = await world.store.get(LOGS)
            assert resource is not None
            seen = await standing_of(resource, world)
            await world.store.update_status(resource, with_cookie(resource, seen.cookie, seen.body).status)

    asyncio.run(main())


def survey_of(desk: Desk, change: Callable[[AnyKind], AnyKind] | None = None, file: Path | None = None) -> Survey:
    async def main() -> Survey:
        async with looked_at(settings_of(desk, **({} if file is None else CUT)), file, change) as preview:
            return await preview.survey(lambda _: None)

    return asyncio.run(main())


# --- What there is to see ---------------------------------------------------------------------------------------------


def test_nothing_to_do_is_told_in_one_table(fleet: Desk) -> None:
    done = fleet.run("plan", "--all")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "KIND            IN SYNC",
        "SQLInstance     1",
        "SQLUser         1",
        "StorageBucket   2",
    ]
    assert writes(fleet) == []


def test_what_would_be_written_is_told_field_by_field(fleet: Desk) -> None:
    drift(fleet)

    done = fleet.run("plan", "--all")

    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "StorageBucket default/logs writes: drifted",
        "~  spec.versioning.enabled  true → false  back to its default",
        "KIND            IN SYNC   WRITES",
        "SQLInstance     1         0",
        "SQLUser         1         0",
        "StorageBucket   1         1",
    ]
    assert writes(fleet) == []


def test_what_a_forged_cookie_hides_is_masked_and_fails(fleet: Desk) -> None:
    drift(fleet)
    forge(fleet)

    plain, done = fleet.run("plan", "StorageBucket/logs"), fleet.run("plan", "--all")

    assert plain.returncode == 0
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "StorageBucket default/logs masked: the cookie says in sync, and a full comparison does not",
        "~  spec.versioning.enabled  true → false  back to its default",
    ]
    assert writes(fleet) == []


def test_programs_get_both_plans(fleet: Desk) -> None:
    drift(fleet)
    forge(fleet)

    told = json.loads(fleet.run("plan", "--all", "-o", "json").stdout)

    assert list(told) == ["summary", "resources", "blocked", "missed"]
    assert told["summary"]["StorageBucket"] == {"in sync": 1, "masked": 1}
    (masked,) = [one for one in told["resources"] if one["finding"] == "masked"]
    assert (masked["name"], masked["fields"]) == ("logs", ["spec.versioning.enabled"])
    assert (masked["plan"]["writes"], masked["plan"]["decision"]) == ([], "in sync")
    assert masked["withoutCookie"]["writes"][0]["action"] == "update"
    assert fleet.run("plan", "--all", "-o", "yaml").stdout.startswith("summary:\n  SQLInstance:\n    in sync: 1\n")


def test_what_is_not_there_yet_is_a_change_and_an_outage_a_failure(desk: Desk) -> None:
    desk.write(bucket("logs"))
    declared = desk.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)

    ready, cut = desk.run("plan", "--all"), desk.run("plan", "--all", **CUT)

    assert declared.returncode != 0
    assert (ready.returncode, ready.stdout.splitlines()[0]) == (2, "StorageBucket default/logs writes: create")
    assert cut.returncode == 1
    assert cut.stdout.startswith("StorageBucket default/logs failed: GET /storage/v1/b/logs: cannot connect to")


def test_nothing_at_all_is_told_as_well(desk: Desk) -> None:
    done = desk.run("plan", "--all")

    assert (done.returncode, done.stdout) == (0, "Nothing is declared here.\n")
    assert list(desk.folder.iterdir()) == []


def test_everything_and_some_is_a_contradiction(desk: Desk) -> None:
    done = desk.run("plan", "--all", "StorageBucket/logs")

    assert done.returncode == 1
    assert done.stderr == "error: --all and --world look at everything: leave out -f and KIND/NAME\n"


def test_a_terminal_sees_how_far_it_is(fleet: Desk) -> None:
    terminal = fleet.terminal("plan", "--all")

    code = terminal.end()

    assert code == 0
    assert "looking" in terminal.text
    assert "StorageBucket   2" in terminal.lines


# --- What tries to write ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swallows", [False, True])
def test_a_write_from_a_look_is_blocked_and_reported(fleet: Desk, swallows: bool) -> None:  # a parameter
    found = survey_of(fleet, lambda kind: meddling(kind, swallows=swallows))

    assert [(one.way, str(one), one.caller, one.fields) for one in found.blocked] == [
        ("google", "PATCH /storage/v1/b/logs (google)", "StorageBucket default/logs", ("labels.seen",)),
        ("google", "PATCH /storage/v1/b/more (google)", "StorageBucket default/more", ("labels.seen",)),
    ]
    assert found.counts["StorageBucket"] == {Finding.IN_SYNC if swallows else Finding.FAILED: 2}
    assert code_of(found) is Exit.FAILED
    assert writes(fleet) == []


def test_a_write_with_a_client_of_its_own_is_blocked_and_reported(fleet: Desk) -> None:
    address = fleet.environment["STORAGE_EMULATOR_HOST"]

    found = survey_of(fleet, lambda kind: meddling(kind, address=address, swallows=True))

    assert [str(one) for one in found.blocked] == [
        "DELETE /storage/v1/b/logs (elsewhere)",
        "DELETE /storage/v1/b/more (elsewhere)",
    ]
    assert writes(fleet) == []


def test_a_bug_that_takes_the_step_itself_is_blocked_in_the_store(fleet: Desk) -> None:
    drift(fleet)

    async def main() -> tuple[Any, list[str]]:
        async with looked_at(settings_of(fleet)) as preview:
            outcome = await step(LOGS, preview.world)
            return outcome, [str(one) for one in preview.blocks.writes]

    outcome, blocked = asyncio.run(main())

    assert isinstance(outcome, Stopped)
    assert blocked[0] == "update_status StorageBucket default/logs (store)"
    assert writes(fleet) == []


def test_a_bug_that_carries_out_a_plan_is_blocked_on_the_way_out(fleet: Desk) -> None:
    async def main() -> list[str]:
        async with looked_at(settings_of(fleet)) as preview:
            resource = await preview.world.store.get(LOGS)
            kind = preview.world.kinds[BUCKET]
            assert resource is not None
            location = kind.locate(resource, Resolved())
            look = await look_at(location, kind)
            assert isinstance(look, Present)
            with pytest.raises(WriteBlocked):
                await kind.delete(location, look, resource)
            return [str(one) for one in preview.blocks.writes]

    assert asyncio.run(main()) == ["DELETE /storage/v1/b/logs (google)"]
    assert writes(fleet) == []


def test_a_plan_of_some_is_guarded_as_well(fleet: Desk) -> None:
    async def main() -> Blocks:
        blocks = Blocks()
        async with open_guarded(settings_of(fleet), blocks) as world:
            kinds = {**world.kinds, BUCKET: meddling(world.kinds[BUCKET])}
            with pytest.raises(WriteBlocked):
                await preview(LOGS, replace(world, kinds=kinds))
        return blocks

    assert [str(one) for one in asyncio.run(main()).writes] == ["PATCH /storage/v1/b/logs (google)"]
    assert writes(fleet) == []


# --- Recorded worlds --------------------------------------------------------------------------------------------------


def test_a_recorded_world_gives_the_same_report_with_the_network_cut(fleet: Desk, other_desk: Desk) -> None:
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


def test_nobody_can_read_a_password_in_it(fleet: Desk) -> None:
    fleet.run("record", "--to", "world.gz")

    text = gzip.decompress((fleet.folder / "world.gz").read_bytes()).decode()

    assert "hidden-" in text
    assert [one for one in ("Sesame", "U2VzYW1l") if one in text] == []


def test_cookies_vouch_for_what_is_under_the_veil(fleet: Desk) -> None:
    told = json.loads(fleet.run("record", "--to", "world.gz", "-o", "json").stdout)

    decisions = {one["kind"]: one["plan"]["decision"] for one in told["resources"]}
    assert decisions == {"SQLInstance": "in sync", "SQLUser": "first look", "StorageBucket": "in sync"}


def test_a_password_that_was_changed_is_changed_under_the_veil_too(fleet: Desk) -> None:
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


def test_owners_their_children_and_what_they_are_told_by_the_environment_are_in_it(
    desk: Desk, other_desk: Desk
) -> None:
    keeper = Keeper(desk)
    keeper.apply(trustee())
    keeper.edit(KBS, kbsServiceType="NodePort")
    code, live = keeper.run("plan", "--all", "-o", "json")

    recorded = keeper.run("record", "--to", "world.gz")
    (other_desk.folder / "world.gz").write_bytes((desk.folder / "world.gz").read_bytes())
    played = other_desk.run("plan", "--world", "world.gz", "-o", "json")

    assert recorded[0] == 0, recorded
    assert {one["kind"] for one in json.loads(played.stdout)["resources"]} == {"TrusteeConfig", "KbsConfig"}
    assert (played.returncode, played.stdout.splitlines()) == (code, live)


async def _change_secrets(desk: Desk) -> None:
    """Somebody gives every Secret another value, and no step has been taken since."""
    async with open_world(settings_of(desk), Access.WRITE) as world:
        for one in (await world.store.list(Query(kind="Secret"))).resources:
            data: Any = dict.fromkeys(one.document["data"], "U2VzYW1lLTU=")  # type: ignore[arg-type] # a map of texts
            await world.store.replace(one, {**one.document, "data": data})


def test_pods_that_have_to_follow_a_secret_have_to_do_so_under_the_veil_too(desk: Desk) -> None:
    keeper = Keeper(desk)
    keeper.apply(trustee())
    asyncio.run(_change_secrets(desk))
    code, live = keeper.run("plan", "--all")
    assert any("configmap-versions" in line for line in live), live

    recorded = keeper.run("record", "--to", "world.gz")
    played = keeper.run("plan", "--world", "world.gz")

    assert recorded[0] == 0, recorded
    assert (played[0], len(played[1])) == (code, len(live))
    text = gzip.decompress((desk.folder / "world.gz").read_bytes()).decode()
    assert "U2VzYW1lLTU=" not in text


def test_a_kind_of_another_version_is_tried_on_it(fleet: Desk) -> None:
    fleet.run("record", "--to", "world.gz")
    file = fleet.folder / "world.gz"

    same, changed, raised = (survey_of(fleet, one, file) for one in (None, with_changed_default, with_revision))

    assert same.counts["StorageBucket"] == {Finding.IN_SYNC: 2}
    assert [one.fields for one in changed.with_finding(Finding.MASKED)] == [("spec.storageClass",)] * 2
    assert raised.counts["StorageBucket"] == {Finding.ONE_TIME: 2}


def test_what_was_not_asked_is_not_guessed(fleet: Desk) -> None:
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


def test_a_part_of_a_file_is_refused(fleet: Desk) -> None:
    fleet.run("record", "--to", "world.gz")
    whole = (fleet.folder / "world.gz").read_bytes()
    (fleet.folder / "world.gz").write_bytes(whole[: len(whole) // 2])

    done = fleet.run("plan", "--world", "world.gz")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: world.gz breaks off: a part of a recorded world is of no use; record it again\n"
