"""SQLInstance in the local cloud: how it is made, adopted and removed, and what can be seen of it."""

from typing import Any

from setpoint.engine.reconcile import step
from setpoint.engine.scene import Outcome
from setpoint.errors import OperationRunning, RemoteRefused, UserError
from setpoint.localcloud.faults import FailOperation
from setpoint.localcloud.sql_users import password_matches
from tests.kinds.bench import PROJECT, Bench
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

# --- Making ----------------------------------------------------------------------------------------------------------


def test_a_new_mysql_instance_loses_the_root_user_that_nobody_asked_for() -> None:
    async def scenario(world: Bench) -> tuple[bool, list[str], list[str]]:
        return is_settled(await world.settle(instance(MYSQL))), asked(world), users(world)

    assert played(scenario) == (True, ["POST instances", "DELETE users"], [])


def test_a_new_instance_of_another_engine_keeps_its_user_and_nobody_asks() -> None:
    async def scenario(world: Bench) -> tuple[list[str], list[str], bool]:
        await world.settle(instance(POSTGRES))
        return asked(world), users(world), any("users" in entry.path for entry in world.cloud.journal.entries)

    assert played(scenario) == (["POST instances"], ["postgres"], False)


def test_the_root_user_of_a_new_mysql_instance_goes_whatever_its_password() -> None:
    async def scenario(world: Bench) -> tuple[list[str], list[str], str]:
        await world.settle(instance({**MYSQL, "rootPassword": {"value": "s3cret"}}))
        await world.go_on(REF)
        return asked(world), users(world), (await world.ready(REF))[1]

    assert played(scenario) == (["POST instances", "DELETE users"], [], "UpToDate")


def test_a_root_user_that_was_there_on_adoption_stays() -> None:
    async def scenario(world: Bench) -> tuple[list[str], list[str]]:
        plant(world, databaseVersion="MYSQL_8_0", settings={"userLabels": {"managed-by-cnrm": "true"}})
        await world.settle(instance(MYSQL))
        return asked(world), users(world)

    assert played(scenario) == ([], ["root"])


def test_a_root_user_that_somebody_makes_later_stays() -> None:
    async def scenario(world: Bench) -> list[str]:
        await world.settle(instance(MYSQL))
        world.cloud.call("POST", f"{PATH}/users", {"name": "root", "password": "x"})
        await world.settle(instance(with_settings(MYSQL, tier="db-custom-2-7680")))
        return users(world)

    assert played(scenario) == ["root"]


def test_an_instance_that_somebody_else_is_making_is_waited_for() -> None:
    async def scenario(world: Bench) -> tuple[Exception, Outcome, list[str]]:
        body = {"name": "some-instance", "databaseVersion": "MYSQL_8_0", "settings": {"tier": "db-custom-1-3840"}}
        world.cloud.call("POST", INSTANCES, body)
        world.cloud.journal.clear()
        waiting = await step(await world.apply(instance(MYSQL, annotations=IGNORE)), world.world)
        return error_in(waiting), await world.go_on(REF), users(world)

    waiting, outcome, left = played(scenario)

    assert isinstance(waiting, OperationRunning)
    assert str(waiting) == "instance some-instance is still being made"
    assert is_settled(outcome)
    assert left == ["root"]


def test_a_creation_that_fails_is_told_and_what_is_left_can_be_deleted() -> None:
    async def scenario(world: Bench) -> tuple[Exception, Exception, Any]:
        world.cloud.inject(FailOperation(message="no room"))
        failed = await world.settle(instance(POSTGRES))
        still = await world.go_on(REF)
        await world.delete(REF)
        return error_in(failed), error_in(still), await world.store.get(REF)

    failed, still, left = played(scenario)

    assert isinstance(failed, RemoteRefused)
    assert "no room" in str(failed)
    assert isinstance(still, RemoteRefused)
    assert str(still).startswith("instance some-instance is in the state FAILED")
    assert left is None


def test_a_replica_names_its_primary_and_waits_for_it_to_be_ready() -> None:
    logged = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
    replica = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "primary"}}

    async def scenario(world: Bench) -> tuple[str, Any, list[str]]:
        primary = await world.apply(instance(logged, "primary"))
        ref = await world.apply(instance(replica))
        early = await step(ref, world.world)
        await world.go_on(primary)
        await world.go_on(ref)
        return str(error_in(early)), world.live(PATH)["masterInstanceName"], users(world)

    early, primary, left = played(scenario)

    assert early == "reference SQLInstance team/primary is not ready"
    assert (primary, left) == ("some-project:primary", [])


def test_a_clone_is_made_from_its_source_and_then_mended() -> None:
    source = with_settings(POSTGRES, databaseFlags=[{"name": "a", "value": "1"}])
    copy = {**with_settings(POSTGRES, locationPreference={"zone": "us-central1-b"}), "cloneSource": {}}
    copy["cloneSource"] = {"sqlInstanceRef": {"name": "source"}, "pointInTime": "2026-01-01T00:00:00Z"}

    async def scenario(world: Bench) -> tuple[list[tuple[str, Any]], Any]:
        await world.settle(instance(source, "source"))
        world.cloud.journal.clear()
        await world.settle(instance(copy))
        return world.sent, world.live(PATH)["settings"].get("databaseFlags")

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

    async def scenario(world: Bench) -> tuple[list[str], bool]:
        await world.settle(instance({**POSTGRES, "rootPassword": {"value": "theirs"}}, "source"))
        world.cloud.journal.clear()
        await world.settle(instance(copy))
        await world.go_on(REF)
        (user,) = world.cloud.sql.state.instances[f"{PROJECT}/some-instance"].users
        return asked(world), password_matches(user, "own")

    assert played(scenario) == (["POST clone", "PUT users"], True)


def test_a_clone_that_somebody_deleted_is_not_made_again_by_itself() -> None:
    async def scenario(world: Bench) -> tuple[Exception, list[str]]:
        await world.settle(instance(POSTGRES, "source"))
        await world.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        del world.cloud.sql.state.instances[f"{PROJECT}/some-instance"]
        return error_in(await world.go_on(REF)), asked(world)

    error, sent = played(scenario)

    assert isinstance(error, UserError)
    assert str(error).startswith("SQLInstance team/some-instance was a clone, and is gone")
    assert sent == ["POST instances", "POST clone"]


def test_a_clone_outlives_its_source() -> None:
    async def scenario(world: Bench) -> bool:
        source = await world.apply(instance(POSTGRES, "source"))
        await world.go_on(source)
        await world.settle(instance({**POSTGRES, "cloneSource": {"sqlInstanceRef": {"name": "source"}}}))
        await world.delete(source)
        return is_settled(await world.go_on(REF))

    assert played(scenario)


def test_primary_and_failover_replica_may_name_each_other() -> None:
    logged = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
    primary = {**logged, "replicationCluster": {"failoverDrReplicaRef": {"name": "replica"}}}
    replica = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "some-instance"}}

    async def scenario(world: Bench) -> tuple[bool, bool, Any]:
        await world.settle(instance(logged))
        other = await world.apply(instance(replica, "replica"))
        await world.go_on(other)
        first = is_settled(await world.settle(instance(primary)))
        return first, is_settled(await world.go_on(other)), world.live(PATH)["replicationCluster"]

    assert played(scenario) == (True, True, {"failoverDrReplicaName": "replica"})


# --- Adopting --------------------------------------------------------------------------------------------------------

BETTER = {
    "tier": "db-perf-optimized-N-2",
    "edition": "ENTERPRISE_PLUS",
    "deletionProtectionEnabled": True,
    "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
}


def test_a_silent_spec_writes_nothing_to_a_better_instance_under_ignore_unspecified_fields() -> None:
    async def scenario(world: Bench) -> tuple[bool, list[str]]:
        plant(world, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await world.settle(instance(silent, annotations=IGNORE))), asked(world)

    assert played(scenario) == (True, [])


def test_without_it_a_silent_spec_still_gives_up_no_protection() -> None:
    async def scenario(world: Bench) -> tuple[bool, list[tuple[str, Any]], Any]:
        plant(world, databaseVersion="POSTGRES_15", settings=BETTER)
        silent = with_settings(POSTGRES, tier="db-perf-optimized-N-2")
        return is_settled(await world.settle(instance(silent))), world.sent, world.live(PATH)["settings"]

    settled, sent, live = played(scenario)

    assert settled
    assert [method for method, _ in sent] == ["PUT"]
    assert (live["edition"], live["deletionProtectionEnabled"]) == ("ENTERPRISE_PLUS", True)
    assert live["backupConfiguration"]["enabled"] is True
    assert live["backupConfiguration"]["pointInTimeRecoveryEnabled"] is True
    assert live["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"] == 15


# --- Removing, and what can be seen ----------------------------------------------------------------------------------


def test_the_refusal_to_delete_a_protected_instance_is_shown_as_it_is() -> None:
    async def scenario(world: Bench) -> tuple[str, str, str]:
        await world.settle(instance(with_settings(POSTGRES, deletionProtectionEnabled=True)))
        await world.delete(REF)
        return await world.ready(REF)

    status, reason, message = played(scenario)

    assert (status, reason) == ("False", "DeleteFailed")
    assert "The instance is protected. Set deletionProtectionEnabled to false, then delete it." in message


def test_the_status_shows_what_the_service_says() -> None:
    async def scenario(world: Bench) -> dict[str, Any]:
        await world.settle(instance(POSTGRES))
        return dict((await world.resource(REF)).status)

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
    async def scenario(world: Bench) -> tuple[list[str], Any]:
        await world.settle(instance(POSTGRES))
        world.cloud.edit(PATH, {"settings": {"tier": "db-custom-4-15360"}})
        unmanaged = {"cnrm.cloud.google.com/unmanaged": "spec.settings.tier"}
        await world.settle(instance(POSTGRES, annotations=unmanaged))
        before = asked(world)
        await world.settle(instance(POSTGRES))
        return before, world.live(PATH)["settings"]["tier"]

    assert played(scenario) == (["POST instances"], "db-custom-1-3840")
