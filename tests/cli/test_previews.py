"""`setpoint plan --all` and `setpoint record`, as a user types them; and kinds that try to write during a preview."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from setpoint.app import open_engine_read_only
from setpoint.clients.write_guard import BlockedWrites
from setpoint.engine.kind import Present, ResolvedReferences, observe_decoded
from setpoint.engine.step.outcomes import Stopped
from setpoint.engine.step.preview import PreviewFinding
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import WriteBlocked
from setpoint.library.inspection.store_plan import StorePlan
from setpoint.library.outcome import ExitCode
from tests.cli.fleets import (
    BUCKET,
    CUT,
    LOGS,
    drift,
    match_cookie_to_live,
    open_session,
    preview_report_of,
    settings_of,
    writing_kind,
)
from tests.cli.test_transfer import writes
from tests.cli.workspace import Workspace, bucket

# --- The report -------------------------------------------------------------------------------------------------------


def test_a_fleet_in_sync_is_one_table(fleet: Workspace) -> None:
    done = fleet.run("plan", "--all")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "KIND            IN SYNC",
        "SQLInstance     1",
        "SQLUser         1",
        "StorageBucket   2",
    ]
    assert writes(fleet) == []


def test_planned_writes_are_shown_field_by_field(fleet: Workspace) -> None:
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


def test_quiet_lists_no_planned_writes(fleet: Workspace) -> None:
    drift(fleet)

    done = fleet.run("plan", "--all", "-q")

    assert (done.returncode, done.stdout.splitlines()[0]) == (2, "KIND            IN SYNC   WRITES")


def test_a_difference_hidden_by_a_cookie_is_masked_and_fails(fleet: Workspace) -> None:
    drift(fleet)
    match_cookie_to_live(fleet)

    plain, done = fleet.run("plan", "StorageBucket/logs"), fleet.run("plan", "--all")

    assert plain.returncode == 0
    assert done.stdout == fleet.run("plan", "--all", "-q").stdout
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "StorageBucket default/logs masked: the cookie says in sync, and a full comparison does not",
        "~  spec.versioning.enabled  true → false  back to its default",
    ]
    assert writes(fleet) == []


def test_the_json_report_has_both_plans(fleet: Workspace) -> None:
    drift(fleet)
    match_cookie_to_live(fleet)

    report = json.loads(fleet.run("plan", "--all", "-o", "json").stdout)

    assert list(report) == ["summary", "resources", "blocked", "missed"]
    assert report["summary"]["StorageBucket"] == {"in sync": 1, "masked": 1}
    (masked,) = [one for one in report["resources"] if one["finding"] == "masked"]
    assert (masked["name"], masked["fields"]) == ("logs", ["spec.versioning.enabled"])
    assert (masked["plan"]["writes"], masked["plan"]["decision"]) == ([], "in sync")
    assert masked["withoutCookie"]["writes"][0]["action"] == "update"
    assert fleet.run("plan", "--all", "-o", "yaml").stdout.startswith("summary:\n  SQLInstance:\n    in sync: 1\n")


def test_a_missing_object_is_a_change_and_an_outage_is_a_failure(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    declared = workspace.run("apply", "-f", "manifest.yaml", "--no-wait", **CUT)

    ready, cut = workspace.run("plan", "--all"), workspace.run("plan", "--all", **CUT)

    assert declared.returncode != 0
    assert (ready.returncode, ready.stdout.splitlines()[0]) == (2, "StorageBucket default/logs writes: create")
    assert cut.returncode == 1
    assert cut.stdout.startswith("StorageBucket default/logs failed: GET /storage/v1/b/logs: cannot connect to")


def test_an_empty_store_has_an_empty_report(workspace: Workspace) -> None:
    done = workspace.run("plan", "--all")

    assert (done.returncode, done.stdout) == (0, "Nothing is declared here.\n")
    assert list(workspace.folder.iterdir()) == []


def test_all_with_named_resources_is_refused(workspace: Workspace) -> None:
    done = workspace.run("plan", "--all", "StorageBucket/logs")

    assert done.returncode == 1
    assert done.stderr == "error: --all and --world plan everything: leave out -f and KIND/NAME\n"


def test_a_terminal_shows_a_progress_bar(fleet: Workspace) -> None:
    terminal = fleet.terminal("plan", "--all")

    code = terminal.end()

    assert code == 0
    assert "planning" in terminal.text
    assert "StorageBucket   2" in terminal.lines


# --- Blocked writes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swallows", [False, True])
def test_a_write_from_observe_is_blocked_and_reported(fleet: Workspace, swallows: bool) -> None:  # a parameter
    found = preview_report_of(fleet, lambda kind: writing_kind(kind, swallows=swallows))

    assert [(one.way, str(one), one.caller, one.fields) for one in found.blocked] == [
        ("google", "PATCH /storage/v1/b/logs (google)", "StorageBucket default/logs", ("labels.seen",)),
        ("google", "PATCH /storage/v1/b/more (google)", "StorageBucket default/more", ("labels.seen",)),
    ]
    assert found.counts["StorageBucket"] == {PreviewFinding.IN_SYNC if swallows else PreviewFinding.FAILED: 2}
    assert StorePlan(found).exit_code is ExitCode.FAILED
    assert writes(fleet) == []


def test_a_write_by_a_client_of_the_kind_is_blocked_and_reported(fleet: Workspace) -> None:
    address = fleet.environment["STORAGE_EMULATOR_HOST"]

    found = preview_report_of(fleet, lambda kind: writing_kind(kind, address=address, swallows=True))

    assert [str(one) for one in found.blocked] == [
        "DELETE /storage/v1/b/logs (elsewhere)",
        "DELETE /storage/v1/b/more (elsewhere)",
    ]
    assert writes(fleet) == []


def test_a_write_by_another_http_library_is_blocked_and_reported(fleet: Workspace) -> None:
    address = fleet.environment["STORAGE_EMULATOR_HOST"]

    found = preview_report_of(fleet, lambda kind: writing_kind(kind, address=address, is_foreign=True, swallows=True))

    connection = f"connect {address.removeprefix('http://')} (past our client)"
    assert [(str(one), one.caller) for one in found.blocked] == [
        (connection, "StorageBucket default/logs"),
        (connection, "StorageBucket default/more"),
    ]
    assert writes(fleet) == []


def test_a_step_taken_by_mistake_is_blocked_in_the_store(fleet: Workspace) -> None:
    drift(fleet)

    async def main() -> tuple[Any, list[str]]:
        async with open_session(settings_of(fleet)) as preview:
            outcome = await step(LOGS, preview.engine)
            return outcome, [str(one) for one in preview.blocked_writes.writes]

    outcome, blocked = asyncio.run(main())

    assert isinstance(outcome, Stopped)
    assert blocked[0] == "update StorageBucket default/logs (store)"
    assert writes(fleet) == []


def test_a_plan_executed_by_mistake_is_blocked_before_it_is_sent(fleet: Workspace) -> None:
    async def main() -> list[str]:
        async with open_session(settings_of(fleet)) as preview:
            resource = await preview.engine.store.get(LOGS)
            kind = preview.engine.kinds[BUCKET]
            assert resource is not None
            location = kind.locate(resource, ResolvedReferences())
            observation = await observe_decoded(location, kind)
            assert isinstance(observation, Present)
            with pytest.raises(WriteBlocked):
                await kind.delete(location, observation, resource)
            return [str(one) for one in preview.blocked_writes.writes]

    assert asyncio.run(main()) == ["DELETE /storage/v1/b/logs (google)"]
    assert writes(fleet) == []


def test_a_plan_of_named_resources_is_guarded_too(fleet: Workspace) -> None:
    async def main() -> BlockedWrites:
        blocked_writes = BlockedWrites()
        async with open_engine_read_only(settings_of(fleet), blocked_writes) as engine:
            kinds = {**engine.kinds, BUCKET: writing_kind(engine.kinds[BUCKET])}
            with pytest.raises(WriteBlocked):
                await preview(LOGS, replace(engine, kinds=kinds))
        return blocked_writes

    assert [str(one) for one in asyncio.run(main()).writes] == ["PATCH /storage/v1/b/logs (google)"]
    assert writes(fleet) == []
