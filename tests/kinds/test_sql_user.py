"""SQLUser in the local cloud: requests, operations, deletion."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from setpoint.clients.http import HttpRequest
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    OperationRunning,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.localcloud.faults import FailOperation, FailRequest
from tests.kinds.kind_harness import PROJECT, SQL, KindHarness, database, in_kind_harness

REF = ResourceRef(SQL, "SQLUser", "team", "some-user")
INSTANCES = f"/sql/v1beta4/projects/{PROJECT}/instances"
USERS = f"{INSTANCES}/main/users"
MAIN = {"instanceRef": {"name": "main"}}
EXTERNAL = {"instanceRef": {"external": "main"}}
POLICY = {
    "allowedFailedAttempts": 10,
    "enableFailedAttemptsCheck": True,
    "enablePasswordVerification": True,
    "passwordExpirationDuration": "2592000s",
}
READY: dict[str, Any] = {
    "conditions": [{"type": "Ready", "status": "True", "reason": "UpToDate", "message": "", "lastTransitionTime": ""}],
    "observedGeneration": 1,
}


def user(spec: Mapping[str, Any], name: str = "some-user", **metadata: Any) -> dict[str, Any]:
    """A SQLUser manifest."""
    return {**database(spec, name, **metadata), "kind": "SQLUser"}


async def with_instance(engine: KindHarness, version: str = "MYSQL_8_0") -> None:
    """The instance main, in the cloud and, as a ready resource, in the store."""
    kinds = {**engine.engine.kinds, (SQL, "SQLUser"): SqlUserKind(engine.google)}
    engine.engine = replace(engine.engine, kinds=kinds)
    settings = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}
    body = {"name": "main", "region": "us-central1", "databaseVersion": version, "settings": settings}
    assert engine.cloud.call("POST", INSTANCES, {**body, "rootPassword": "Hunter1!"}).status == 200
    engine.cloud.advance(10)
    engine.cloud.journal.clear()
    applied = await engine.store.apply({**database({"databaseVersion": version}, "main"), "kind": "SQLInstance"})
    await engine.store.update_status(applied, READY)


def names(engine: KindHarness) -> list[tuple[str, str]]:
    """Name and host of every user."""
    return [(one["name"], one["host"]) for one in engine.live(USERS).get("items", [])]


def calls(engine: KindHarness) -> list[tuple[str, Any, Any]]:
    """Method, query and body of every write."""
    own = ("alt", "prettyPrint")
    return [
        (entry.method, {key: text for key, text in entry.query.items() if key not in own}, entry.body)
        for entry in engine.writes
    ]


def error_in(outcome: StepOutcome) -> SetpointError:
    assert isinstance(outcome, Stopped), outcome
    return outcome.error


# --- Requests --------------------------------------------------------------------------------------------------------


def test_requests_equal_the_recorded_ones_with_the_policy_added() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        spec = {**MAIN, "host": "%", "type": "BUILT_IN"}
        later = {"allowedFailedAttempts": 5, "passwordExpirationDuration": "1296000s"}
        await engine.settle(user({**spec, "password": {"value": "one"}, "passwordPolicy": POLICY}))
        await engine.settle(user({**spec, "password": {"value": "one"}, "passwordPolicy": later}))
        await engine.delete(REF)
        return calls(engine), {entry.path for entry in engine.writes}

    names = {"instance": "main", "name": "some-user"}
    flags = {"enableFailedAttemptsCheck": False, "enablePasswordVerification": False}
    changed = {"allowedFailedAttempts": 5, **flags, "passwordExpirationDuration": "1296000s"}
    assert in_kind_harness(scenario) == (
        [
            ("POST", {}, {"host": "%", **names, "password": "[redacted]", "passwordPolicy": POLICY}),
            ("PUT", {"host": "%", "name": "some-user"}, {**names, "passwordPolicy": changed}),
            ("DELETE", {"host": "%", "name": "some-user"}, None),
        ],
        {USERS},
    )


def test_a_user_without_declared_fields_is_sent_with_its_name_only() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "POSTGRES_16")
        outcome = await engine.settle(user(MAIN))
        await engine.step_until_done(REF)
        await engine.delete(REF)
        return outcome, calls(engine)

    outcome, sent = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert sent == [
        ("POST", {}, {"instance": "main", "name": "some-user"}),
        ("DELETE", {"name": "some-user"}, None),
    ]


def test_a_policy_removed_from_the_spec_is_removed_from_the_user() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "passwordPolicy": POLICY}))
        outcome = await engine.settle(user(MAIN))
        return outcome, engine.live(f"{USERS}/some-user")["passwordPolicy"]

    outcome, policy = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert outcome.ready.reason == "UpToDate"
    assert policy == {
        "allowedFailedAttempts": 0,
        "enableFailedAttemptsCheck": False,
        "enablePasswordVerification": False,
        "status": {},
    }


def test_a_duration_in_another_spelling_is_no_difference() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user({**MAIN, "passwordPolicy": {"passwordExpirationDuration": "0086400.50s"}}))
        await engine.settle(user({**MAIN, "passwordPolicy": {"passwordExpirationDuration": "86400.5s"}}))
        return engine.sent

    policy = {"passwordExpirationDuration": "86400.5s"}
    assert in_kind_harness(scenario) == [("POST", {"instance": "main", "name": "some-user", "passwordPolicy": policy})]


def test_the_details_of_a_sql_server_user_are_in_the_status() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine, "SQLSERVER_2019_STANDARD")
        await engine.settle(user({**MAIN, "resourceID": "sqlserver"}))
        return (await engine.resource(REF)).status["sqlServerUserDetails"], engine.sent

    assert in_kind_harness(scenario) == ([{"disabled": False, "serverRoles": ["CustomerDbRootRole"]}], [])


# --- Operations and deletion -----------------------------------------------------------------------------------------


def test_an_operation_that_ends_in_an_error_fails_the_step() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.inject(FailOperation("INTERNAL_ERROR", "It broke.", type="CREATE_USER"))
        return error_in(await engine.settle(user(MAIN)))

    error = in_kind_harness(scenario)

    assert isinstance(error, RemoteRefused)
    assert str(error) == "operation CREATE_USER on main failed: INTERNAL_ERROR: It broke."


def test_a_busy_instance_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        engine.cloud.call("PATCH", f"{INSTANCES}/main", {"settings": {"userLabels": {"a": "b"}}})
        first = await step(await engine.apply(user(MAIN)), engine.engine)
        return error_in(first), await engine.step_until_done(REF)

    error, outcome = in_kind_harness(scenario)

    assert isinstance(error, OperationRunning)
    assert isinstance(outcome, Settled)


@pytest.mark.parametrize(
    ("annotations", "left"), [({}, False), ({"cnrm.cloud.google.com/deletion-policy": "abandon"}, True)]
)
def test_deletion_deletes_the_object_unless_it_is_abandoned(annotations: dict[str, str], left: bool) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user(MAIN, annotations=annotations))
        return await engine.delete(REF), ("some-user", "%") in names(engine)

    assert in_kind_harness(scenario) == (Gone(), left)


def test_deletion_succeeds_when_the_instance_is_gone() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user(MAIN))
        engine.cloud.call("DELETE", f"{INSTANCES}/main")
        engine.cloud.advance(10)
        await engine.store.delete(ResourceRef(SQL, "SQLInstance", "team", "main"))
        return await engine.delete(REF), await engine.store.get(REF)

    assert in_kind_harness(scenario) == (Gone(), None)


def test_a_user_that_another_writer_deleted_first_is_no_failure() -> None:
    async def scenario(engine: KindHarness) -> Any:
        def another_writer_deletes(request: HttpRequest) -> None:
            if request.method == "DELETE":
                engine.cloud.call("DELETE", f"{USERS}?name=some-user")

        await with_instance(engine)
        await engine.settle(user(MAIN))
        engine.http.interrupt = another_writer_deletes
        return await engine.delete(REF), names(engine)

    assert in_kind_harness(scenario) == (Gone(), [("root", "%")])


def test_an_outage_is_not_taken_for_absence() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await with_instance(engine)
        await engine.settle(user(MAIN))
        engine.cloud.inject(FailRequest(500, method="GET"))
        return await engine.delete(REF), (await engine.resource(REF)).finalizers

    outcome, finalizers = in_kind_harness(scenario)

    assert isinstance(error_in(outcome), RemoteUnavailable)
    assert finalizers
