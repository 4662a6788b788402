"""Replicas and clones."""

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody, merge_patch
from tests.localcloud.requests import (
    DB,
    INSTANCES,
    LOGGED,
    MYSQL,
    POSTGRES,
    create,
    done,
    error_message,
    get,
    ok,
    refused,
)

PRIMARY = merge_patch(MYSQL, LOGGED)
REPLICA: JsonBody = {
    **MYSQL,
    "name": "follower",
    "instanceType": "READ_REPLICA_INSTANCE",
    "masterInstanceName": "acme:db",
}
FOLLOWER = f"{INSTANCES}/follower"


def test_a_replica_and_its_primary_name_each_other(cloud: Cloud) -> None:
    create(cloud, PRIMARY)
    operation = done(cloud, "POST", INSTANCES, REPLICA)

    assert (operation["operationType"], operation["targetId"]) == ("CREATE_REPLICA", "acme:db")
    assert get(cloud, FOLLOWER)["masterInstanceName"] == "acme:db"
    assert get(cloud, DB)["replicaNames"] == ["follower"]


def test_a_primary_cannot_be_deleted_before_its_replicas(cloud: Cloud) -> None:
    create(cloud, PRIMARY)
    create(cloud, REPLICA)
    early = refused(cloud.call("DELETE", DB))
    done(cloud, "DELETE", FOLLOWER)

    assert early == (400, "errorReplicationMasterInvalidOperation")
    assert "replicaNames" not in get(cloud, DB)
    assert cloud.call("DELETE", DB).status == 200


def test_creating_or_deleting_a_replica_moves_the_settings_version_of_its_primary(cloud: Cloud) -> None:
    before = create(cloud, PRIMARY)
    create(cloud, REPLICA)
    with_replica = get(cloud, DB)
    done(cloud, "DELETE", FOLLOWER)

    assert before["settings"]["settingsVersion"] == "1"
    assert with_replica["settings"]["settingsVersion"] == "2"
    assert get(cloud, DB)["settings"]["settingsVersion"] == "3"
    assert refused(cloud.call("PUT", DB, with_replica)) == (412, "staleData")


def test_the_primary_is_locked_while_a_replica_is_created(cloud: Cloud) -> None:
    create(cloud, PRIMARY)
    ok(cloud.call("POST", INSTANCES, REPLICA))

    assert refused(cloud.call("PATCH", DB, {"settings": {"tier": "x"}})) == (409, "operationInProgress")
    assert get(cloud, DB)["state"] == "RUNNABLE"


def test_a_replica_inherits_version_region_and_disk_of_its_primary(cloud: Cloud) -> None:
    create(cloud, POSTGRES, {"region": "europe-west1", "settings": {"dataDiskSizeGb": "50"}})
    silent = {"name": "follower", "masterInstanceName": "db", "settings": MYSQL["settings"]}
    live = create(cloud, silent)

    assert (live["databaseVersion"], live["region"], live["instanceType"]) == (
        "POSTGRES_15",
        "europe-west1",
        "READ_REPLICA_INSTANCE",
    )
    assert live["settings"]["dataDiskSizeGb"] == "50"
    assert live["masterInstanceName"] == "acme:db"


def test_a_replica_that_does_not_fit_its_primary_is_refused(cloud: Cloud) -> None:
    create(cloud, MYSQL)
    no_log = cloud.call("POST", INSTANCES, REPLICA)
    no_primary = cloud.call("POST", INSTANCES, {**REPLICA, "masterInstanceName": "acme:missing"})
    done(cloud, "PUT", DB, merge_patch(PRIMARY, {"settings": {"dataDiskSizeGb": "50"}}))
    other_version = cloud.call("POST", INSTANCES, {**REPLICA, "databaseVersion": "MYSQL_8_4"})
    small_disk = cloud.call("POST", INSTANCES, merge_patch(REPLICA, {"settings": {"dataDiskSizeGb": "10"}}))
    wrong_type = cloud.call("POST", INSTANCES, {**REPLICA, "instanceType": "CLOUD_SQL_INSTANCE"})

    assert "must have the binary log enabled" in error_message(no_log)
    assert "acme:missing does not exist" in error_message(no_primary)
    assert "the database version of its primary" in error_message(other_version)
    assert "must not be smaller" in error_message(small_disk)
    assert "READ_REPLICA_INSTANCE" in error_message(wrong_type)
    assert cloud.call("GET", FOLLOWER).status == 404


def test_a_clone_has_everything_of_its_source_but_the_name(cloud: Cloud) -> None:
    create(cloud, POSTGRES, {"settings": {"userLabels": {"a": "b"}}})
    ok(cloud.call("POST", f"{DB}/users", {"name": "app", "password": "hunter2"}))
    ok(cloud.call("POST", f"{DB}/databases", {"name": "orders"}))
    context = {"destinationInstanceName": "copy", "preferredZone": "us-central1-c"}
    operation = done(cloud, "POST", f"{DB}/clone", {"cloneContext": context})
    copy = get(cloud, f"{INSTANCES}/copy")

    assert operation["operationType"] == "CLONE"
    assert (copy["settings"]["userLabels"], copy["gceZone"]) == ({"a": "b"}, "us-central1-c")
    assert get(cloud, f"{INSTANCES}/copy/databases/orders")["instance"] == "copy"
    assert cloud.password_matches("acme", "copy", "app", "hunter2")


def test_a_clone_needs_a_free_name_and_a_source(cloud: Cloud) -> None:
    create(cloud)

    assert refused(cloud.call("POST", f"{DB}/clone", {"cloneContext": {"destinationInstanceName": "db"}})) == (
        409,
        "instanceAlreadyExists",
    )
    assert refused(cloud.call("POST", f"{DB}/clone", {"cloneContext": {}})) == (400, "invalid")
    assert cloud.call("POST", f"{FOLLOWER}/clone", {"cloneContext": {}}).status == 404
