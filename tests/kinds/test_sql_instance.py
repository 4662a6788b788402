"""SQLInstance in the local cloud: creation, adoption, deletion and status."""

from typing import Any

from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.reconcile import step
from setpoint.errors import OperationRunning, RemoteRefused, UserError
from setpoint.localcloud.faults import FailOperation
from setpoint.localcloud.sql.users import password_matches
from tests.kinds.instances import (
    IGNORE,
    INSTANCES,
    MYSQL,
    PATH,
    POSTGRES,
    REF,
    create_as_another_writer,
    error_in,
    in_instance_harness,
    instance,
    is_settled,
    users,
    with_settings,
    write_calls,
)
from tests.kinds.kind_harness import PROJECT, KindHarness

# --- Creation --------------------------------------------------------------------------------------------------------


def test_a_new_mysql_instance_loses_its_default_root_user() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[str], list[str]]:
        return is_settled(await engine.settle(instance(MYSQL))), write_calls(engine), users(engine)

    assert in_instance_harness(scenario) == (True, ["POST instances", "DELETE users"], [])


def test_a_new_instance_of_another_engine_keeps_its_default_user_without_a_request() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str], bool]:
        await engine.settle(instance(POSTGRES))
        return write_calls(engine), users(engine), any("users" in entry.path for entry in engine.cloud.journal.entries)

    assert in_instance_harness(scenario) == (["POST instances"], ["postgres"], False)


def test_the_default_root_user_of_a_new_mysql_instance_is_deleted_with_any_password() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str], str]:
        await engine.settle(instance({**MYSQL, "rootPassword": {"value": "s3cret"}}))
        await engine.step_until_done(REF)
        return write_calls(engine), users(engine), (await engine.ready(REF))[1]

    assert in_instance_harness(scenario) == (["POST instances", "DELETE users"], [], "UpToDate")


def test_adoption_keeps_the_root_user() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str]]:
        create_as_another_writer(
            engine, databaseVersion="MYSQL_8_0", settings={"userLabels": {"managed-by-cnrm": "true"}}
        )
        await engine.settle(instance(MYSQL))
        return write_calls(engine), users(engine)

    assert in_instance_harness(scenario) == ([], ["root"])


def test_a_root_user_that_is_created_later_is_kept() -> None:
    async def scenario(engine: KindHarness) -> list[str]:
        await engine.settle(instance(MYSQL))
        engine.cloud.call("POST", f"{PATH}/users", {"name": "root", "password": "x"})
        await engine.settle(instance(with_settings(MYSQL, tier="db-custom-2-7680")))
        return users(engine)

    assert in_instance_harness(scenario) == ["root"]


def test_an_instance_that_another_writer_is_creating_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, StepOutcome, list[str]]:
        body = {"name": "some-instance", "databaseVersion": "MYSQL_8_0", "settings": {"tier": "db-custom-1-3840"}}
        engine.cloud.call("POST", INSTANCES, body)
        engine.cloud.journal.clear()
        waiting = await step(await engine.apply(instance(MYSQL, annotations=IGNORE)), engine.engine)
        return error_in(waiting), await engine.step_until_done(REF), users(engine)

    waiting, outcome, left = in_instance_harness(scenario)

    assert isinstance(waiting, OperationRunning)
    assert str(waiting) == "instance some-instance is still being made"
    assert is_settled(outcome)
    assert left == ["root"]


def test_a_failed_creation_is_reported_and_its_remains_can_be_deleted() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, Exception, Any]:
        engine.cloud.inject(FailOperation(message="no room"))
        failed = await engine.settle(instance(POSTGRES))
        still = await engine.step_until_done(REF)
        await engine.delete(REF)
        return error_in(failed), error_in(still), await engine.store.get(REF)

    failed, still, left = in_instance_harness(scenario)

    assert isinstance(failed, RemoteRefused)
    assert "no room" in str(failed)
    assert isinstance(still, RemoteRefused)
    assert str(still).startswith("instance some-instance is in the state FAILED")
    assert left is None


def test_a_replica_names_its_primary_and_waits_for_it_to_be_ready() -> None:
    logged = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
    replica = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "primary"}}

    async def scenario(engine: KindHarness) -> tuple[str, Any, list[str]]:
        primary = await engine.apply(instance(logged, "primary"))
        ref = await engine.apply(instance(replica))
        early = await step(ref, engine.engine)
        await engine.step_until_done(primary)
        await engine.step_until_done(ref)
        return str(error_in(early)), engine.live(PATH)["masterInstanceName"], users(engine)

    early, primary, left = in_instance_harness(scenario)

    assert early == "reference SQLInstance team/primary is not ready"
    assert (primary, left) == ("some-project:primary", [])


def test_a_clone_is_created_from_its_source_and_then_updated() -> None:
    source = with_settings(POSTGRES, databaseFlags=[{"name": "a", "value": "1"}])
    copy = {**with_settings(POSTGRES, locationPreference={"zone": "us-central1-b"}), "cloneSource": {}}
    copy["cloneSource"] = {"sqlInstanceRef": {"name": "source"}, "pointInTime": "2026-01-01T00:00:00Z"}

    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], Any]:
        await engine.settle(instance(source, "source"))
        engine.cloud.journal.clear()
        await engine.settle(instance(copy))
        return engine.sent, engine.live(PATH)["settings"].get("databaseFlags")

    sent, flags = in_instance_harness(scenario)

    context = {
        "destinationInstanceName": "some-instance",
        "kind": "sql#cloneContext",
        "pointInTime": "2026-01-01T00:00:00Z",
        "preferredZone": "us-central1-b",
    }
    assert sent[0] == ("POST", {"cloneContext": context})
    assert [method for method, _ in sent] == ["POST", "PUT"]
    assert flags is None


def test_a_clone_gets_its_own_root_password_after_creation() -> None:
    copy = {**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}, "rootPassword": {"value": "own"}}

    async def scenario(engine: KindHarness) -> tuple[list[str], bool]:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "theirs"}}, "source"))
        engine.cloud.journal.clear()
        await engine.settle(instance(copy))
        await engine.step_until_done(REF)
        (user,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return write_calls(engine), password_matches(user, "own")

    assert in_instance_harness(scenario) == (["POST clone", "PUT users"], True)


def test_a_deleted_clone_is_not_created_again_automatically() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, list[str]]:
        await engine.settle(instance(POSTGRES, "source"))
        await engine.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        del engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"]
        return error_in(await engine.step_until_done(REF)), write_calls(engine)

    error, sent = in_instance_harness(scenario)

    assert isinstance(error, UserError)
    assert str(error).startswith("SQLInstance team/some-instance was a clone, and is gone")
    assert sent == ["POST instances", "POST clone"]


def test_a_clone_outlives_its_source() -> None:
    async def scenario(engine: KindHarness) -> bool:
        source = await engine.apply(instance(POSTGRES, "source"))
        await engine.step_until_done(source)
        await engine.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        await engine.delete(source)
        return is_settled(await engine.step_until_done(REF))

    assert in_instance_harness(scenario)


def test_primary_and_failover_replica_may_name_each_other() -> None:
    logged = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
    primary = {**logged, "replicationCluster": {"failoverDrReplicaRef": {"name": "replica"}}}
    replica = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "some-instance"}}

    async def scenario(engine: KindHarness) -> tuple[bool, bool, Any]:
        await engine.settle(instance(logged))
        other = await engine.apply(instance(replica, "replica"))
        await engine.step_until_done(other)
        first = is_settled(await engine.settle(instance(primary)))
        return first, is_settled(await engine.step_until_done(other)), engine.live(PATH)["replicationCluster"]

    assert in_instance_harness(scenario) == (True, True, {"failoverDrReplicaName": "replica"})


# --- Adoption --------------------------------------------------------------------------------------------------------

BETTER = {
    "tier": "db-perf-optimized-N-2",
    "edition": "ENTERPRISE_PLUS",
    "deletionProtectionEnabled": True,
    "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
}


def test_unspecified_settings_are_not_written_under_ignore_unspecified_fields() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[str]]:
        create_as_another_writer(engine, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await engine.settle(instance(silent, annotations=IGNORE))), write_calls(engine)

    assert in_instance_harness(scenario) == (True, [])


def test_unspecified_protections_are_kept_without_that_policy() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[tuple[str, Any]], Any]:
        create_as_another_writer(engine, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await engine.settle(instance(silent))), engine.sent, engine.live(PATH)["settings"]

    settled, sent, live = in_instance_harness(scenario)

    assert settled
    assert [method for method, _ in sent] == ["PUT"]
    assert (live["edition"], live["deletionProtectionEnabled"]) == ("ENTERPRISE_PLUS", True)
    assert live["backupConfiguration"]["enabled"] is True
    assert live["backupConfiguration"]["pointInTimeRecoveryEnabled"] is True
    assert live["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"] == 15


# --- Deletion and status ---------------------------------------------------------------------------------------------


def test_the_message_of_a_refused_deletion_is_shown_unchanged() -> None:
    async def scenario(engine: KindHarness) -> tuple[str, str, str]:
        await engine.settle(instance(with_settings(POSTGRES, deletionProtectionEnabled=True)))
        await engine.delete(REF)
        return await engine.ready(REF)

    status, reason, message = in_instance_harness(scenario)

    assert (status, reason) == ("False", "DeleteFailed")
    assert "The instance is protected. Set deletionProtectionEnabled to false, then delete it." in message


def test_the_status_shows_the_outputs_of_the_service() -> None:
    async def scenario(engine: KindHarness) -> dict[str, Any]:
        await engine.settle(instance(POSTGRES))
        return dict((await engine.resource(REF)).status)

    status = in_instance_harness(scenario)

    addresses = status["ipAddress"]
    assert [one["type"] for one in addresses] == ["PRIMARY", "OUTGOING"]
    assert status["firstIpAddress"] == status["publicIpAddress"] == addresses[0]["ipAddress"]
    assert set(status["serverCaCert"]) == {"cert", "commonName", "createTime", "expirationTime", "sha1Fingerprint"}
    assert status["connectionName"] == "some-project:us-central1:some-instance"
    assert status["serviceAccountEmailAddress"].endswith("gserviceaccount.com")
    assert status["instanceType"] == "CLOUD_SQL_INSTANCE"
    assert status["selfLink"] == f"https://sqladmin.googleapis.com{PATH}"


def test_a_field_is_not_written_from_the_moment_it_is_unmanaged() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], Any]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.edit(PATH, {"settings": {"tier": "db-custom-4-15360"}})
        unmanaged = {"cnrm.cloud.google.com/unmanaged": "spec.settings.tier"}
        await engine.settle(instance(POSTGRES, annotations=unmanaged))
        before = write_calls(engine)
        await engine.settle(instance(POSTGRES))
        return before, engine.live(PATH)["settings"]["tier"]

    assert in_instance_harness(scenario) == (["POST instances"], "db-custom-1-3840")
