"""Long-running operations, and the instance meanwhile."""

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.faults import FailOperation
from tests.localcloud.requests import (
    DB,
    INSTANCES,
    MYSQL,
    POSTGRES,
    PROJECT,
    create,
    done,
    get,
    held_cloud,
    ok,
    refused,
)


def test_an_operation_is_pending_then_running_then_done(cloud: Cloud) -> None:
    operation = ok(cloud.call("POST", INSTANCES, MYSQL))
    link = f"{PROJECT}/operations/{operation['name']}"
    cloud.advance(3)
    running = get(cloud, link)
    cloud.advance(7)

    assert (operation["status"], operation["operationType"], "startTime" in operation) == ("PENDING", "CREATE", False)
    assert (running["status"], "endTime" in running) == ("RUNNING", False)
    assert (get(cloud, link)["status"], get(cloud, link)["endTime"]) == ("DONE", "2026-01-01T00:00:10.000Z")


def test_a_new_instance_is_pending_until_its_operation_is_done(cloud: Cloud) -> None:
    ok(cloud.call("POST", INSTANCES, MYSQL))
    early = get(cloud, DB)
    users = refused(cloud.call("GET", f"{DB}/users"))
    cloud.advance(10)

    assert (early["state"], "ipAddresses" in early) == ("PENDING_CREATE", False)
    assert users == (400, "invalid")
    assert (get(cloud, DB)["state"], "ipAddresses" in get(cloud, DB)) == ("RUNNABLE", True)


def test_a_change_takes_effect_when_the_operation_is_done(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("PATCH", DB, {"settings": {"tier": "db-custom-2-7680"}}))
    meanwhile = get(cloud, DB)
    cloud.advance(10)

    assert (meanwhile["state"], meanwhile["settings"]["tier"]) == ("MAINTENANCE", "db-custom-1-3840")
    assert (get(cloud, DB)["state"], get(cloud, DB)["settings"]["tier"]) == ("RUNNABLE", "db-custom-2-7680")


def test_any_second_write_during_an_operation_is_refused(cloud: Cloud) -> None:
    create(cloud)
    ok(cloud.call("PATCH", DB, {"settings": {"activationPolicy": "ALWAYS"}}))
    writes = [
        cloud.call("PATCH", DB, {"settings": {"tier": "x"}}),
        cloud.call("PUT", DB, MYSQL),
        cloud.call("DELETE", DB),
        cloud.call("POST", f"{DB}/users", {"name": "eve"}),
        cloud.call("DELETE", f"{DB}/users?name=root&host=%25"),
        cloud.call("POST", f"{DB}/databases", {"name": "orders"}),
        cloud.call("POST", f"{DB}/clone", {"cloneContext": {"destinationInstanceName": "db2"}}),
    ]

    assert {refused(write) for write in writes} == {(409, "operationInProgress")}


def test_other_instances_can_be_written_during_an_operation(cloud: Cloud) -> None:
    create(cloud, {**MYSQL, "name": "other"})
    ok(cloud.call("POST", INSTANCES, MYSQL))

    assert cloud.call("PATCH", f"{INSTANCES}/other", {"settings": {"tier": "db-f1-micro"}}).status == 200


def test_an_operation_that_fails_changes_nothing_and_says_why(cloud: Cloud) -> None:
    before = create(cloud)
    cloud.inject(FailOperation(code="RESOURCE_EXHAUSTED", message="no machines left", type="UPDATE"))
    operation = done(cloud, "PATCH", DB, {"settings": {"tier": "db-custom-2-7680"}})

    assert operation["error"] == {
        "errors": [{"code": "RESOURCE_EXHAUSTED", "kind": "sql#operationError", "message": "no machines left"}],
        "kind": "sql#operationErrors",
    }
    assert get(cloud, DB) == before
    assert "error" not in done(cloud, "PATCH", DB, {"settings": {"tier": "db-custom-2-7680"}})


def test_a_failed_creation_leaves_a_failed_instance_that_can_only_be_deleted(cloud: Cloud) -> None:
    cloud.inject(FailOperation())
    done(cloud, "POST", INSTANCES, MYSQL)

    assert get(cloud, DB)["state"] == "FAILED"
    assert refused(cloud.call("PATCH", DB, {"settings": {"tier": "x"}})) == (409, "invalidState")
    done(cloud, "DELETE", DB)
    assert cloud.call("GET", DB).status == 404


def test_operations_on_users_and_new_databases_are_done_in_the_response(cloud: Cloud) -> None:
    create(cloud, POSTGRES)

    assert ok(cloud.call("POST", f"{DB}/users", {"name": "app", "password": "x"}))["status"] == "DONE"
    assert ok(cloud.call("POST", f"{DB}/databases", {"name": "orders"}))["status"] == "DONE"


def test_the_list_of_operations_is_newest_first_and_of_one_instance(cloud: Cloud) -> None:
    create(cloud)
    create(cloud, {**MYSQL, "name": "other"})
    done(cloud, "PATCH", DB, {"settings": {"tier": "db-f1-micro"}})
    items = get(cloud, f"{PROJECT}/operations?instance=db")["items"]

    assert [item["operationType"] for item in items] == ["UPDATE", "CREATE"]
    assert len(get(cloud, f"{PROJECT}/operations")["items"]) == 3


def test_an_operation_of_another_project_is_not_found(cloud: Cloud) -> None:
    operation = ok(cloud.call("POST", INSTANCES, MYSQL))

    assert refused(cloud.call("GET", f"/sql/v1beta4/projects/rival/operations/{operation['name']}")) == (
        404,
        "notFound",
    )


def test_operations_can_take_no_time() -> None:
    cloud = held_cloud()
    quick = type(cloud)(clock=cloud.clock, operation_seconds=0)

    assert ok(quick.call("POST", INSTANCES, MYSQL))["status"] == "DONE"
    assert get(quick, DB)["state"] == "RUNNABLE"
