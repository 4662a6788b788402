"""SQLInstance in the local cloud: how it is made, adopted and removed, and what can be seen of it."""

from typing import Any

from setpoint.engine.context import StepOutcome
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
    asked,
    error_in,
    instance,
    is_settled,
    plant,
    played,
    users,
    with_settings,
)
from tests.kinds.kind_harness import PROJECT, KindHarness

# --- Making ----------------------------------------------------------------------------------------------------------


def test_a_new_mysql_instance_loses_its_default_root_user() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[str], list[str]]:
        return is_settled(await engine.settle(instance(MYSQL))), asked(engine), users(engine)

    assert played(scenario) == (True, ["POST instances", "DELETE users"], [])


def test_a_new_instance_of_another_engine_keeps_its_default_user_without_a_request() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str], bool]:
        await engine.settle(instance(POSTGRES))
        return asked(engine), users(engine), any("users" in entry.path for entry in engine.cloud.journal.entries)

    assert played(scenario) == (["POST instances"], ["postgres"], False)


def test_the_root_user_of_a_new_mysql_instance_goes_whatever_its_password() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str], str]:
        await engine.settle(instance({**MYSQL, "rootPassword": {"value": "s3cret"}}))
        await engine.go_on(REF)
        return asked(engine), users(engine), (await engine.ready(REF))[1]

    assert played(scenario) == (["POST instances", "DELETE users"], [], "UpToDate")


def test_a_root_user_that_was_there_on_adoption_stays() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], list[str]]:
        plant(engine, databaseVersion="MYSQL_8_0", settings={"userLabels": {"managed-by-cnrm": "true"}})
        await engine.settle(instance(MYSQL))
        return asked(engine), users(engine)

    assert played(scenario) == ([], ["root"])


def test_a_root_user_that_is_created_later_stays() -> None:
    async def scenario(engine: KindHarness) -> list[str]:
        await engine.settle(instance(MYSQL))
        engine.cloud.call("POST", f"{PATH}/users", {"name": "root", "password": "x"})
        await engine.settle(instance(with_settings(MYSQL, tier="db-custom-2-7680")))
        return users(engine)

    assert played(scenario) == ["root"]


def test_an_instance_that_another_writer_is_creating_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, StepOutcome, list[str]]:
        body = {"name": "some-instance", "databaseVersion": "MYSQL_8_0", "settings": {"tier": "db-custom-1-3840"}}
        engine.cloud.call("POST", INSTANCES, body)
        engine.cloud.journal.clear()
        waiting = await step(await engine.apply(instance(MYSQL, annotations=IGNORE)), engine.engine)
        return error_in(waiting), await engine.go_on(REF), users(engine)

    waiting, outcome, left = played(scenario)

    assert isinstance(waiting, OperationRunning)
    assert str(waiting) == "instance some-instance is still being made"
    assert is_settled(outcome)
    assert left == ["root"]


def test_a_creation_that_fails_is_told_and_what_is_left_can_be_deleted() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, Exception, Any]:
        engine.cloud.inject(FailOperation(message="no room"))
        failed = await engine.settle(instance(POSTGRES))
        still = await engine.go_on(REF)
        await engine.delete(REF)
        return error_in(failed), error_in(still), await engine.store.get(REF)

    failed, still, left = played(scenario)

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
        await engine.go_on(primary)
        await engine.go_on(ref)
        return str(error_in(early)), engine.live(PATH)["masterInstanceName"], users(engine)

    early, primary, left = played(scenario)

    assert early == "reference SQLInstance team/primary is not ready"
    assert (primary, left) == ("some-project:primary", [])


def test_a_clone_is_made_from_its_source_and_then_mended() -> None:
    source = with_settings(POSTGRES, databaseFlags=[{"name": "a", "value": "1"}])
    copy = {**with_settings(POSTGRES, locationPreference={"zone": "us-central1-b"}), "cloneSource": {}}
    copy["cloneSource"] = {"sqlInstanceRef": {"name": "source"}, "pointInTime": "2026-01-01T00:00:00Z"}

    async def scenario(engine: KindHarness) -> tuple[list[tuple[str, Any]], Any]:
        await engine.settle(instance(source, "source"))
        engine.cloud.journal.clear()
        await engine.settle(instance(copy))
        return engine.sent, engine.live(PATH)["settings"].get("databaseFlags")

    sent, flags = played(scenario)

    context = {
        "destinationInstanceName": "some-instance",
        "kind": "sql#cloneContext",
        "pointInTime": "2026-01-01T00:00:00Z",
        "preferredZone": "us-central1-b",
    }
    assert sent[0] == ("POST", {"cloneContext": context})
    assert [method for method, _ in sent] == ["POST", "PUT"]
    assert flags is None


def test_a_clone_gets_its_own_root_password_once_it_is_there() -> None:
    copy = {**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}, "rootPassword": {"value": "own"}}

    async def scenario(engine: KindHarness) -> tuple[list[str], bool]:
        await engine.settle(instance({**POSTGRES, "rootPassword": {"value": "theirs"}}, "source"))
        engine.cloud.journal.clear()
        await engine.settle(instance(copy))
        await engine.go_on(REF)
        (user,) = engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return asked(engine), password_matches(user, "own")

    assert played(scenario) == (["POST clone", "PUT users"], True)


def test_a_deleted_clone_is_not_created_again_automatically() -> None:
    async def scenario(engine: KindHarness) -> tuple[Exception, list[str]]:
        await engine.settle(instance(POSTGRES, "source"))
        await engine.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        del engine.cloud.sql.state.instances[f"{PROJECT}/some-instance"]
        return error_in(await engine.go_on(REF)), asked(engine)

    error, sent = played(scenario)

    assert isinstance(error, UserError)
    assert str(error).startswith("SQLInstance team/some-instance was a clone, and is gone")
    assert sent == ["POST instances", "POST clone"]


def test_a_clone_outlives_its_source() -> None:
    async def scenario(engine: KindHarness) -> bool:
        source = await engine.apply(instance(POSTGRES, "source"))
        await engine.go_on(source)
        await engine.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        await engine.delete(source)
        return is_settled(await engine.go_on(REF))

    assert played(scenario)


def test_primary_and_failover_replica_may_name_each_other() -> None:
    logged = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
    primary = {**logged, "replicationCluster": {"failoverDrReplicaRef": {"name": "replica"}}}
    replica = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "some-instance"}}

    async def scenario(engine: KindHarness) -> tuple[bool, bool, Any]:
        await engine.settle(instance(logged))
        other = await engine.apply(instance(replica, "replica"))
        await engine.go_on(other)
        first = is_settled(await engine.settle(instance(primary)))
        return first, is_settled(await engine.go_on(other)), engine.live(PATH)["replicationCluster"]

    assert played(scenario) == (True, True, {"failoverDrReplicaName": "replica"})


# --- Adopting --------------------------------------------------------------------------------------------------------

BETTER = {
    "tier": "db-perf-optimized-N-2",
    "edition": "ENTERPRISE_PLUS",
    "deletionProtectionEnabled": True,
    "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
}


def test_a_silent_spec_writes_nothing_to_a_better_instance_under_ignore_unspecified_fields() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[str]]:
        plant(engine, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await engine.settle(instance(silent, annotations=IGNORE))), asked(engine)

    assert played(scenario) == (True, [])


def test_without_it_a_silent_spec_still_gives_up_no_protection() -> None:
    async def scenario(engine: KindHarness) -> tuple[bool, list[tuple[str, Any]], Any]:
        plant(engine, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await engine.settle(instance(silent))), engine.sent, engine.live(PATH)["settings"]

    settled, sent, live = played(scenario)

    assert settled
    assert [method for method, _ in sent] == ["PUT"]
    assert (live["edition"], live["deletionProtectionEnabled"]) == ("ENTERPRISE_PLUS", True)
    assert live["backupConfiguration"]["enabled"] is True
    assert live["backupConfiguration"]["pointInTimeRecoveryEnabled"] is True
    assert live["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"] == 15


# --- Removing, and what can be seen ----------------------------------------------------------------------------------


def test_the_refusal_to_delete_a_protected_instance_is_shown_as_it_is() -> None:
    async def scenario(engine: KindHarness) -> tuple[str, str, str]:
        await engine.settle(instance(with_settings(POSTGRES, deletionProtectionEnabled=True)))
        await engine.delete(REF)
        return await engine.ready(REF)

    status, reason, message = played(scenario)

    assert (status, reason) == ("False", "DeleteFailed")
    assert "The instance is protected. Set deletionProtectionEnabled to false, then delete it." in message


def test_the_status_shows_what_the_service_says() -> None:
    async def scenario(engine: KindHarness) -> dict[str, Any]:
        await engine.settle(instance(POSTGRES))
        return dict((await engine.resource(REF)).status)

    status = played(scenario)

    addresses = status["ipAddress"]
    assert [one["type"] for one in addresses] == ["PRIMARY", "OUTGOING"]
    assert status["firstIpAddress"] == status["publicIpAddress"] == addresses[0]["ipAddress"]
    assert set(status["serverCaCert"]) == {"cert", "commonName", "createTime", "expirationTime", "sha1Fingerprint"}
    assert status["connectionName"] == "some-project:us-central1:some-instance"
    assert status["serviceAccountEmailAddress"].endswith("gserviceaccount.com")
    assert status["instanceType"] == "CLOUD_SQL_INSTANCE"
    assert status["selfLink"] == f"https://sqladmin.googleapis.com{PATH}"


def test_what_is_unmanaged_is_left_alone_from_the_moment_it_is_said() -> None:
    async def scenario(engine: KindHarness) -> tuple[list[str], Any]:
        await engine.settle(instance(POSTGRES))
        engine.cloud.edit(PATH, {"settings": {"tier": "db-custom-4-15360"}})
        unmanaged = {"cnrm.cloud.google.com/unmanaged": "spec.settings.tier"}
        await engine.settle(instance(POSTGRES, annotations=unmanaged))
        before = asked(engine)
        await engine.settle(instance(POSTGRES))
        return before, engine.live(PATH)["settings"]["tier"]

    assert played(scenario) == (["POST instances"], "db-custom-1-3840")
