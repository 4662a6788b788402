"""Fault injection."""

import pytest

from setpoint.errors import UserError
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.faults import (
    AddFields,
    AddLatency,
    DropConnection,
    FailRequest,
    FaultTiming,
    LimitRequests,
    RewriteField,
)
from tests.localcloud.requests import (
    BUCKET,
    DB,
    INSTANCES,
    MYSQL,
    create,
    done,
    get,
    held_cloud,
    make_bucket,
    ok,
    refused,
)


def test_a_fault_fails_as_many_matching_requests_as_it_says(cloud: Cloud) -> None:
    cloud.inject(FailRequest(status=503, method="GET", path="/instances", times=2, retry_after=7))
    first, second, third = (cloud.call("GET", INSTANCES) for _ in range(3))

    assert (first.status, second.status, third.status) == (503, 503, 200)
    assert first.headers == {"Retry-After": "7"}
    assert cloud.faults.active == ()


def test_requests_that_do_not_match_a_fault_pass(cloud: Cloud) -> None:
    cloud.inject(FailRequest(status=500, method="PUT", path="/instances"))

    assert cloud.call("GET", INSTANCES).status == 200
    assert cloud.call("PUT", BUCKET).status == 404


def test_a_request_can_fail_before_or_after_it_took_effect(cloud: Cloud) -> None:
    cloud.inject(FailRequest(status=500, method="POST"))
    cloud.call("POST", INSTANCES, MYSQL)
    before = cloud.call("GET", DB).status
    cloud.inject(FailRequest(status=500, method="POST", moment=FaultTiming.AFTER))
    lost = cloud.call("POST", INSTANCES, MYSQL).status

    assert (before, lost) == (404, 500)
    assert get(cloud, DB)["state"] == "PENDING_CREATE"


def test_a_connection_can_be_dropped_after_the_request_took_effect(cloud: Cloud) -> None:
    cloud.inject(DropConnection(method="POST", moment=FaultTiming.AFTER))
    with pytest.raises(ConnectionError):
        cloud.call("POST", INSTANCES, MYSQL)

    assert get(cloud, DB)["name"] == "db"
    assert [entry.status for entry in cloud.journal.entries] == [None, 200]


def test_a_rewritten_field_stays_rewritten(cloud: Cloud) -> None:
    create(cloud)
    cloud.inject(RewriteField(kind="sql#instance", field="settings.activationPolicy", value="ON_DEMAND"))
    done(cloud, "PATCH", DB, {"settings": {"activationPolicy": "ALWAYS", "tier": "db-f1-micro"}})
    settings = get(cloud, DB)["settings"]

    assert (settings["activationPolicy"], settings["tier"]) == ("ON_DEMAND", "db-f1-micro")


def test_a_rewrite_to_the_live_value_is_no_change(cloud: Cloud) -> None:
    make_bucket(cloud)
    cloud.inject(RewriteField(kind="storage#bucket", field="storageClass", value="STANDARD"))

    assert ok(cloud.call("PATCH", BUCKET, {"storageClass": "NEARLINE"}))["metageneration"] == "1"


def test_added_fields_are_in_every_response_and_accepted_in_requests(cloud: Cloud) -> None:
    create(cloud)
    cloud.inject(AddFields(kind="sql#instance", members={"settings": {"quantumMode": "OFF"}, "newThing": {"a": 1}}))
    live = get(cloud, DB)

    assert (live["settings"]["quantumMode"], live["newThing"]) == ("OFF", {"a": 1})
    assert get(cloud, INSTANCES)["items"][0]["newThing"] == {"a": 1}
    assert "newThing" not in get(cloud, INSTANCES)
    done(cloud, "PUT", DB, live)
    assert get(cloud, DB) == live


def test_requests_over_the_quota_of_a_project_get_429_until_the_next_second(cloud: Cloud) -> None:
    cloud.inject(LimitRequests(requests_per_second=2))
    answers = [cloud.call("GET", INSTANCES) for _ in range(3)]
    other = cloud.call("GET", "/sql/v1beta4/projects/rival/instances")
    cloud.advance(1)

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert refused(answers[2]) == (429, "rateLimitExceeded")
    assert answers[2].headers == {"Retry-After": "1"}
    assert (other.status, cloud.call("GET", INSTANCES).status) == (200, 200)


def test_requests_on_a_bucket_count_against_the_quota_of_its_project(cloud: Cloud) -> None:
    make_bucket(cloud)
    cloud.inject(LimitRequests(requests_per_second=1))

    assert cloud.call("GET", BUCKET).status == 200
    assert cloud.call("GET", INSTANCES).status == 429
    cloud.inject(LimitRequests(requests_per_second=None))
    assert cloud.call("GET", INSTANCES).status == 200


def test_latencies_of_matching_faults_add_up_and_exclude_the_control_api() -> None:
    cloud = held_cloud(latency=1.0)
    cloud.inject(AddLatency(2.0, method="POST"))

    assert [cloud.latency(CloudRequest(method, "/b")) for method in ("GET", "POST")] == [1.0, 3.0]
    assert cloud.latency(CloudRequest("POST", "/_local/clock")) == 0.0


def test_an_invalid_fault_is_refused(cloud: Cloud) -> None:
    with pytest.raises(UserError, match="not a regular expression"):
        cloud.inject(FailRequest(status=500, path="("))
    with pytest.raises(UserError, match="breaks off"):
        cloud.inject(RewriteField(kind="sql#instance", field="a..b", value=1))


def test_without_faults_requests_succeed_again(cloud: Cloud) -> None:
    cloud.inject(FailRequest(status=500, times=100))
    cloud.faults.clear()

    assert cloud.call("GET", INSTANCES).status == 200
