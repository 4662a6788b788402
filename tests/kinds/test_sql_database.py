"""SQLDatabase in the local cloud: requests, operations, references, deletion."""

from typing import Any

import pytest

from setpoint.engine.intent import check_manifest
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    LocationChanged,
    ManifestInvalid,
    OperationRunning,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.localcloud.faults import FailOperation, FailRequest
from tests.kinds.kind_harness import PROJECT, SQL, KindHarness, database, in_kind_harness

REF = ResourceRef(SQL, "SQLDatabase", "team", "some-database")
INSTANCES = f"/sql/v1beta4/projects/{PROJECT}/instances"
PATH = f"{INSTANCES}/main/databases/some-database"
MAIN = {"instanceRef": {"name": "main"}}
READY: dict[str, Any] = {
    "conditions": [{"type": "Ready", "status": "True", "reason": "UpToDate", "message": "", "lastTransitionTime": ""}],
    "observedGeneration": 1,
}


async def with_instance(engine: KindHarness, version: str = "MYSQL_8_0") -> None:
    """The instance main, in the cloud and, as a ready resource, in the store."""
    settings = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}
    body = {"name": "main", "region": "us-central1", "databaseVersion": version, "settings": settings}
    assert engine.cloud.call("POST", INSTANCES, body).status == 200
    engine.cloud.advance(10)
    engine.cloud.journal.clear()
    applied = await engine.store.apply({**database({}, "main"), "kind": "SQLInstance"})
    await engine.store.update_status(applied, READY)


def error_in(outcome: StepOutcome) -> SetpointError:
    assert isinstance(outcome, Stopped), outcome
    return outcome.error


# --- Requests --------------------------------------------------------------------------------------------------------


def test_only_declared_settings_are_sent() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        for spec in ({"charset": "utf8"}, {"charset": "utf8mb4", "collation": "utf8mb4_bin"}):
            outcome = await engine.settle(database({**MAIN, **spec}))
            assert isinstance(outcome, Settled)
            await engine.step_until_done(REF)
        await engine.delete(REF)
        return [(entry.method, entry.path, entry.body) for entry in engine.writes]

    named = {"instance": "main", "name": "some-database"}
    assert in_kind_harness(scenario) == [
        ("POST", f"{INSTANCES}/main/databases", {"charset": "utf8", **named}),
        ("PUT", PATH, {"charset": "utf8mb4", "collation": "utf8mb4_bin", **named}),
        ("DELETE", PATH, None),
    ]


def test_undeclared_settings_of_a_database_are_chosen_by_the_service() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database(MAIN))
        engine.cloud.edit(PATH, {"collation": "utf8mb4_bin"})
        await engine.step_until_done(REF)
        return engine.sent

    assert in_kind_harness(scenario) == [("POST", {"instance": "main", "name": "some-database"})]


@pytest.mark.parametrize("before", ["latin1", "utf8mb3", "binary"])
def test_a_new_character_set_changes_the_collation(before: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database({**MAIN, "charset": before}))
        await engine.settle(database({**MAIN, "charset": "utf8mb4"}))
        return engine.sent[-1][1], engine.live(PATH)["collation"]

    assert in_kind_harness(scenario) == (
        {"charset": "utf8mb4", "instance": "main", "name": "some-database"},
        "utf8mb4_0900_ai_ci",
    )


def test_drift_is_reverted() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database({**MAIN, "charset": "utf8mb4", "collation": "utf8mb4_bin"}))
        engine.cloud.edit(PATH, {"collation": "utf8mb4_general_ci"})
        await engine.step_until_done(REF)
        return [entry.method for entry in engine.writes], engine.live(PATH)["collation"]

    assert in_kind_harness(scenario) == (["POST", "PUT"], "utf8mb4_bin")


@pytest.mark.parametrize(
    ("version", "live", "declared"),
    [
        ("POSTGRES_16", {"charset": "UTF8", "collation": "en_US.UTF8"}, {"charset": "utf8"}),
        ("MYSQL_8_0", {"charset": "utf8mb3", "collation": "utf8mb3_bin"}, {"charset": "utf8", "collation": "utf8_bin"}),
        ("MYSQL_8_0", {"charset": "UTF8MB4", "collation": "utf8mb4_bin"}, {"charset": "utf8mb4"}),
        ("MYSQL_5_7", {"charset": "utf8", "collation": "utf8mb4_bin"}, {"charset": "utf8mb4"}),
    ],
    ids=["any case", "two names for one", "any case again", "the collation decides"],
)
def test_equivalent_spellings_are_no_difference(version: str, live: dict[str, str], declared: dict[str, str]) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, version)
        await engine.settle(database(MAIN))
        engine.cloud.edit(PATH, live)
        outcome = await engine.settle(database({**MAIN, **declared}))
        return outcome, engine.sent[1:]

    outcome, sent = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert (outcome.ready.reason, sent) == ("UpToDate", [])


def test_the_spelling_of_the_author_is_sent() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await engine.settle(database({**MAIN, "charset": "UTF8"}))
        return engine.sent[0][1]["charset"]

    assert in_kind_harness(scenario) == "UTF8"


def test_only_mysql_can_change_a_collation() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        await engine.settle(database(MAIN))
        return await engine.settle(database({**MAIN, "collation": "de_DE.UTF8"})), engine.sent[1:]

    outcome, sent = in_kind_harness(scenario)
    error = error_in(outcome)

    assert isinstance(error, ImmutableFieldChanged)
    assert (error.paths, sent) == (("spec.collation",), [])


# --- Operations ------------------------------------------------------------------------------------------------------


def test_an_operation_is_waited_for_across_steps_and_named() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database({**MAIN, "charset": "latin1"}))
        await engine.apply(database({**MAIN, "charset": "utf8mb4"}))
        first, second = await step(REF, engine.engine), await step(REF, engine.engine)
        on_record: Any = (await engine.resource(REF)).status["setpoint"]
        engine.cloud.advance(10)
        return first, second, on_record["operation"], await step(REF, engine.engine)

    first, second, operation, last = in_kind_harness(scenario)

    assert isinstance(error_in(first), OperationRunning)
    assert isinstance(error_in(second), OperationRunning)
    assert operation.startswith(f"projects/{PROJECT}/operations/")
    assert isinstance(last, Settled)


def test_an_operation_that_ends_in_an_error_fails_the_step() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.inject(FailOperation("INTERNAL_ERROR", "It broke.", type="CREATE_DATABASE"))
        return await engine.settle(database(MAIN))

    error = error_in(in_kind_harness(scenario))

    assert isinstance(error, RemoteRefused)
    assert str(error) == "operation CREATE_DATABASE on main failed: INTERNAL_ERROR: It broke."


def test_a_busy_instance_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.call("PATCH", f"{INSTANCES}/main", {"settings": {"userLabels": {"a": "b"}}})
        return await step(await engine.apply(database(MAIN)), engine.engine)

    assert isinstance(error_in(in_kind_harness(scenario)), OperationRunning)


# --- The instance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "external",
    [
        "main",
        f"projects/{PROJECT}/instances/main",
        f"https://sqladmin.googleapis.com/sql/v1beta4/projects/{PROJECT}/instances/main",
    ],
)
def test_an_instance_can_be_referred_to_by_every_form_of_its_name(external: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database({"instanceRef": {"external": external}, "resourceID": "other name"}))
        status = (await engine.resource(REF)).status
        return status["selfLink"], engine.live(f"{INSTANCES}/main/databases/other%20name")["name"]

    assert in_kind_harness(scenario) == (
        f"https://sqladmin.googleapis.com/sql/v1beta4/projects/{PROJECT}/instances/main/databases/other name",
        "other name",
    )


def test_a_missing_or_unready_instance_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        missing = await engine.settle(database(MAIN))
        await engine.store.apply({**database({}, "main"), "kind": "SQLInstance"})
        return missing, await engine.settle(database(MAIN)), await engine.ready(REF), engine.cloud.journal.entries

    missing, unready, ready, asked = in_kind_harness(scenario)

    assert type(error_in(missing)) is DependencyNotFound
    assert type(error_in(unready)) is DependencyNotReady
    assert ready == ("False", "DependencyNotReady", "reference SQLInstance team/main is not ready")
    assert asked == ()


def test_a_database_does_not_move_to_another_instance() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database(MAIN))
        return await engine.settle(database({"instanceRef": {"external": "other"}}))

    assert isinstance(error_in(in_kind_harness(scenario)), LocationChanged)


# --- Deletion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "left"),
    [
        (database(MAIN), 404),
        (database({**MAIN, "deletionPolicy": "DELETE"}), 404),
        (database({**MAIN, "deletionPolicy": "ABANDON"}), 200),
        (database(MAIN, annotations={"cnrm.cloud.google.com/deletion-policy": "abandon"}), 200),
    ],
)
def test_deletion_deletes_the_object_unless_it_is_abandoned(manifest: dict[str, Any], left: int) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(manifest)
        return await engine.delete(REF), engine.cloud.call("GET", PATH).status

    assert in_kind_harness(scenario) == (Gone(), left)


@pytest.mark.parametrize("word", ["abandon", "Abandon", "ABANDON ", "KEEP", "", True, ["ABANDON"]])
def test_no_other_word_is_taken_for_a_wish_to_delete(word: Any) -> None:
    """A store keeps what was written: the last edit may have been refused."""

    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database(MAIN))
        await engine.settle(database({**MAIN, "deletionPolicy": word}))
        return await engine.delete(REF), engine.cloud.call("GET", PATH).status

    outcome, left = in_kind_harness(scenario)

    assert (type(error_in(outcome)), left) == (ManifestInvalid, 200)
    assert str(error_in(outcome)) == f"spec.deletionPolicy is {word!r}: write ABANDON or DELETE; nothing is deleted"


def test_deletion_succeeds_when_the_instance_is_gone() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database(MAIN))
        engine.cloud.call("DELETE", f"{INSTANCES}/main")
        engine.cloud.advance(10)
        await engine.store.delete(ResourceRef(SQL, "SQLInstance", "team", "main"))
        return await engine.delete(REF), await engine.store.get(REF)

    assert in_kind_harness(scenario) == (Gone(), None)


def test_an_outage_is_not_taken_for_absence() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(database(MAIN))
        engine.cloud.inject(FailRequest(500, method="GET"))
        return await engine.delete(REF), (await engine.resource(REF)).finalizers

    outcome, finalizers = in_kind_harness(scenario)

    assert isinstance(error_in(outcome), RemoteUnavailable)
    assert finalizers


# --- Invalid manifests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.instanceRef is missing"),
        *(
            ({"instanceRef": {"external": wrong}}, "write the instance's name, or projects/…/instances/…")
            for wrong in ("projects/p", "p:region:main/x", "https://x/instances/main")
        ),
        ({**MAIN, "resourceID": 7}, "spec.resourceID"),
        ({"instanceRef": {}}, "spec.instanceRef needs name or external"),
        ({**MAIN, "charSet": "utf8"}, "there is no field spec.charSet; did you mean spec.charset?"),
        ({**MAIN, "deletionPolicy": "KEEP"}, "spec.deletionPolicy: invalid enum value 'KEEP'"),
    ],
)
def test_an_invalid_spec_is_refused_before_any_request(spec: dict[str, Any], message: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        with pytest.raises(ManifestInvalid) as caught:
            check_manifest(Resource(database(spec)), SqlDatabaseKind(engine.google))
        return caught.value, await engine.settle(database(spec)), engine.cloud.journal.entries

    at_once, outcome, asked = in_kind_harness(scenario)

    error = error_in(outcome)
    assert isinstance(error, ManifestInvalid)
    assert message in str(error)
    assert str(at_once) == str(error)
    assert asked == ()
