"""The journal of requests, with redacted passwords."""

from setpoint.localcloud.cloud import Cloud
from tests.localcloud.requests import BUCKET, DB, INSTANCES, MYSQL, create


def test_every_request_is_recorded_with_query_body_and_status(cloud: Cloud) -> None:
    cloud.call("GET", f"{BUCKET}?projection=full")
    cloud.call("POST", INSTANCES, {"name": "Bad"})
    first, second = cloud.journal.entries

    assert (first.method, first.path, first.query, first.body, first.status) == (
        "GET",
        BUCKET,
        {"projection": "full"},
        None,
        404,
    )
    assert (second.body, second.status, second.at) == ({"name": "Bad"}, 400, "2026-01-01T00:00:00.000Z")
    assert [entry.is_write for entry in (first, second)] == [False, True]


def test_counts_are_by_method_and_status_and_can_be_reset(cloud: Cloud) -> None:
    create(cloud)
    cloud.call("GET", BUCKET)
    counts = cloud.journal.counts()
    cloud.journal.clear()

    assert counts == {
        "total": 4,
        "writes": 1,
        "byMethod": {"GET": 3, "POST": 1},
        "byStatus": {"200": 3, "404": 1},
    }
    assert cloud.journal.counts()["total"] == 0


def test_passwords_are_redacted_wherever_they_are(cloud: Cloud) -> None:
    replica = {"mysqlReplicaConfiguration": {"password": "hunter2", "clientKey": "hunter2"}}
    create(cloud, {**MYSQL, "rootPassword": "hunter2", "replicaConfiguration": replica})
    policy = {"enablePasswordVerification": True}
    cloud.call("POST", f"{DB}/users", {"name": "app", "password": "hunter2", "passwordPolicy": policy})
    created = cloud.journal.entries[-1]

    assert "hunter2" not in str(cloud.journal.entries)
    assert created.body == {"name": "app", "password": "[redacted]", "passwordPolicy": policy}


def test_requests_to_the_control_api_are_not_recorded(cloud: Cloud) -> None:
    cloud.call("GET", "/_local")

    assert cloud.journal.entries == ()
