"""Services of the catalogue on the local cloud: what is refused, how updates, operations and preconditions work."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from aiohttp import ClientSession

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.faults import DropConnection, FailOperation, FailRequest, RewriteField
from setpoint.localcloud.server import LocalCloud
from tests.localcloud.conftest import Scenario
from tests.localcloud.requests import OPERATION_SECONDS, error_message, get, gone, held_cloud, ok

PUBSUB = "/pubsub.googleapis.com/v1/projects/acme"
TOPIC = f"{PUBSUB}/topics/orders"
KMS = "/cloudkms.googleapis.com/v1/projects/acme/locations/global"
COMPUTE = "/compute.googleapis.com/compute/v1/projects/acme"
NETWORK = f"{COMPUTE}/global/networks/main"
DISK = f"{COMPUTE}/zones/z1/disks/data"
REDIS = "/redis.googleapis.com/v1/projects/acme/locations/r1/instances"
BIGQUERY = "/bigquery.googleapis.com/bigquery/v2/projects/acme/datasets"


def _status(cloud: Cloud, method: str, path: str, body: dict[str, object] | None = None) -> tuple[int, str]:
    answer = cloud.call(method, path, body)
    return answer.status, error_message(answer)


def _made(cloud: Cloud, path: str, body: Mapping[str, object]) -> None:
    ok(cloud.call("POST", path, dict(body)))
    cloud.advance(OPERATION_SECONDS)


def test_an_object_has_what_its_service_sets(cloud: Cloud) -> None:
    _made(cloud, f"{COMPUTE}/global/networks", {"name": "main"})
    body = {"name": "sub", "ipCidrRange": "10.0.0.0/8", "network": "global/networks/main"}
    _made(cloud, f"{COMPUTE}/regions/r1/subnetworks", body)

    made = get(cloud, f"{COMPUTE}/regions/r1/subnetworks/sub")

    links = "https://www.googleapis.com/compute/v1/projects/acme"
    assert made["network"] == f"{links}/global/networks/main"
    assert made["selfLink"] == f"{links}/regions/r1/subnetworks/sub"
    assert made["region"] == f"{links}/regions/r1"
    assert made["kind"] == "compute#subnetwork"
    assert made["creationTimestamp"] == "2026-01-01T00:00:10.000Z"
    assert made["id"].isdecimal()
    assert made["fingerprint"]


def test_errors_are_in_the_words_of_the_service(cloud: Cloud) -> None:
    assert _status(cloud, "GET", TOPIC) == (404, "Resource not found (resource=orders).")
    assert _status(cloud, "GET", NETWORK) == (404, "The resource 'projects/acme/global/networks/main' was not found")
    assert _status(cloud, "GET", f"{BIGQUERY}/ds") == (404, "Not found: Dataset acme:ds")
    assert _status(cloud, "POST", f"{COMPUTE}/global/networks", {"name": "Main"}) == (
        400,
        "Invalid value for field 'resource.name': 'Main'. "
        "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'",
    )


def test_older_front_ends_list_reasons_and_newer_ones_do_not(cloud: Cloud) -> None:
    older, newer = cloud.call("GET", NETWORK).body, cloud.call("GET", TOPIC).body

    assert older is not None
    assert newer is not None
    assert older["error"]["errors"][0]["reason"] == "notFound"
    assert set(newer["error"]) == {"code", "message", "status"}


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ({"messageRetentionDuration": "a day"}, "(type.googleapis.com/google.protobuf.Duration)"),
        ({"labels": {"a": 1}}, "Invalid value at 'labels.a' (TYPE_STRING), 1"),
        ({"labels": ["a"]}, "Invalid value at 'labels'"),
        ({"schemaSettings": {"encoding": "XML", "schema": "s"}}, "(TYPE_ENUM)"),
        ({"schemaSettings": {"encoding": "JSON"}}, "Required field 'schemaSettings.schema' not specified."),
        ({"messageStoragePolicy": {"regions": []}}, "Unknown name \"regions\" at 'messageStoragePolicy'"),
    ],
)
def test_wrong_values_are_refused(cloud: Cloud, member: dict[str, object], message: str) -> None:
    status, said = _status(cloud, "PUT", TOPIC, member)

    assert status == 400
    assert message in said
    assert _status(cloud, "GET", TOPIC)[0] == 404


def test_a_mask_sets_what_it_names_and_removes_what_the_body_lacks(cloud: Cloud) -> None:
    ok(cloud.call("PUT", TOPIC, {"labels": {"a": "1"}, "messageRetentionDuration": "600s"}))

    body = {"topic": {"labels": {"a": "2"}}, "updateMask": "labels,message_retention_duration"}
    after = ok(cloud.call("PATCH", TOPIC, body))

    assert after["labels"] == {"a": "2"}
    assert "messageRetentionDuration" not in after


def test_a_mask_that_is_missing_or_unknown_is_refused(cloud: Cloud) -> None:
    ok(cloud.call("PUT", TOPIC, {}))

    missing = _status(cloud, "PATCH", TOPIC, {"topic": {}})
    unknown = _status(cloud, "PATCH", TOPIC, {"topic": {}, "updateMask": "colour"})

    assert missing == (400, "The updateMask in the request must be set.")
    assert unknown == (400, "Invalid update mask path 'colour': the resource has no such field.")


def test_a_merge_patch_removes_by_null_and_keeps_the_rest(cloud: Cloud) -> None:
    dataset = {"datasetReference": {"datasetId": "ds"}, "description": "a", "labels": {"a": "1", "b": "2"}}
    ok(cloud.call("POST", BIGQUERY, dataset))

    after = ok(cloud.call("PATCH", f"{BIGQUERY}/ds", {"description": None, "labels": {"a": None}}))

    assert "description" not in after
    assert after["labels"] == {"b": "2"}
    assert after["id"] == "acme:ds"


def test_what_is_fixed_at_creation_stays(cloud: Cloud) -> None:
    ok(cloud.call("POST", f"{KMS}/keyRings?keyRingId=ring", {}))
    ok(cloud.call("POST", f"{KMS}/keyRings/ring/cryptoKeys?cryptoKeyId=key", {"purpose": "MAC"}))

    path = f"{KMS}/keyRings/ring/cryptoKeys/key?updateMask=purpose"

    assert _status(cloud, "PATCH", path, {"purpose": "ENCRYPT_DECRYPT"}) == (
        400,
        "Field 'purpose' is immutable: it cannot be changed after creation.",
    )
    assert ok(cloud.call("PATCH", path, {"purpose": "MAC"}))["purpose"] == "MAC"


def test_a_container_must_exist(cloud: Cloud) -> None:
    status, message = _status(cloud, "POST", f"{KMS}/keyRings/ring/cryptoKeys?cryptoKeyId=key", {})

    assert (status, message) == (404, "KeyRing projects/acme/locations/global/keyRings/ring not found.")


def test_what_an_object_refers_to_must_exist_in_a_strict_cloud() -> None:
    cloud = held_cloud(check_references=True)
    body: dict[str, object] = {"name": "sub", "ipCidrRange": "10.0.0.0/8", "network": "global/networks/main"}
    subnetworks = f"{COMPUTE}/regions/r1/subnetworks"

    status, message = _status(cloud, "POST", subnetworks, body)
    _made(cloud, f"{COMPUTE}/global/networks", {"name": "main"})

    assert status == 400
    assert "Invalid value for field 'resource.network'" in message
    assert cloud.call("POST", subnetworks, body).status == 200


def test_a_dataset_with_tables_is_deleted_by_force_alone(cloud: Cloud) -> None:
    ok(cloud.call("POST", BIGQUERY, {"datasetReference": {"datasetId": "ds"}}))
    ok(cloud.call("POST", f"{BIGQUERY}/ds/tables", {"tableReference": {"tableId": "t"}}))

    assert _status(cloud, "DELETE", f"{BIGQUERY}/ds") == (400, "Dataset acme:ds is still in use")
    gone(cloud.call("DELETE", f"{BIGQUERY}/ds?deleteContents=true"))
    assert _status(cloud, "GET", f"{BIGQUERY}/ds/tables/t")[0] == 404


def test_a_list_has_pages_and_a_dash_is_any_parent(cloud: Cloud) -> None:
    for name in ("a", "b", "c"):
        ok(cloud.call("POST", f"{KMS}/keyRings?keyRingId={name}", {}))

    first = get(cloud, f"{KMS}/keyRings?pageSize=2")
    rest = get(cloud, f"{KMS}/keyRings?pageSize=2&pageToken={first['nextPageToken']}")
    everywhere = get(cloud, f"{KMS.replace('global', '-')}/keyRings")

    assert [one["name"][-1] for one in first["keyRings"]] == ["a", "b"]
    assert [one["name"][-1] for one in rest["keyRings"]] == ["c"]
    assert "nextPageToken" not in rest
    assert len(everywhere["keyRings"]) == 3


# --- Operations -------------------------------------------------------------------------------------------------------


def test_an_operation_is_done_when_its_time_is_up(cloud: Cloud) -> None:
    started = ok(cloud.call("POST", f"{REDIS}?instanceId=cache", {"memorySizeGb": 1}))
    path = f"/redis.googleapis.com/v1/{started['name']}"

    assert "done" not in get(cloud, path)
    assert get(cloud, f"{REDIS}/cache")["state"] == "CREATING"
    assert _status(cloud, "DELETE", f"{REDIS}/cache")[0] == 409
    cloud.advance(OPERATION_SECONDS)
    done = get(cloud, path)

    assert done["done"] is True
    assert done["response"]["name"] == "projects/acme/locations/r1/instances/cache"
    assert done["response"]["state"] == "READY"
    assert done["metadata"]["verb"] == "create"


def test_an_operation_of_compute_is_where_its_object_is(cloud: Cloud) -> None:
    started = ok(cloud.call("POST", f"{COMPUTE}/zones/z1/disks", {"name": "data", "sizeGb": "10"}))
    path = f"{COMPUTE}/zones/z1/operations/{started['name']}"

    assert (started["status"], started["operationType"]) == ("RUNNING", "insert")
    cloud.advance(OPERATION_SECONDS)
    assert (get(cloud, path)["status"], ok(cloud.call("POST", f"{path}/wait"))["progress"]) == ("DONE", 100)


def test_an_operation_that_fails_changes_nothing(cloud: Cloud) -> None:
    cloud.inject(FailOperation(code="RESOURCE_EXHAUSTED", message="no room", type="create", target="instances/cache"))
    started = ok(cloud.call("POST", f"{REDIS}?instanceId=cache", {"memorySizeGb": 1}))
    cloud.advance(OPERATION_SECONDS)

    failed = get(cloud, f"/redis.googleapis.com/v1/{started['name']}")

    assert failed["error"] == {"code": 8, "message": "no room"}
    assert _status(cloud, "GET", f"{REDIS}/cache")[0] == 404


def test_a_wait_is_answered_when_the_operation_is_done(over_http: Callable[[Scenario], None]) -> None:
    async def scenario(cloud: LocalCloud, client: ClientSession) -> None:
        started = ok(cloud.call("POST", f"{COMPUTE}/global/networks", {"name": "main"}))
        cloud.clock.release()
        cloud.google.state.operations[f"compute/projects/acme/global/operations/{started['name']}"].ends -= 9.9
        async with client.post(f"{COMPUTE}/global/operations/{started['name']}/wait") as answer:
            assert (await answer.json())["status"] == "DONE"

    over_http(scenario)


# --- Methods for one part ---------------------------------------------------------------------------------------------


def test_labels_are_set_with_their_fingerprint(cloud: Cloud) -> None:
    _made(cloud, f"{COMPUTE}/zones/z1/disks", {"name": "data", "sizeGb": "10"})
    current = get(cloud, DISK)["labelFingerprint"]

    stale = cloud.call("POST", f"{DISK}/setLabels", {"labels": {"a": "1"}, "labelFingerprint": "c3RhbGU="})
    _made(cloud, f"{DISK}/setLabels", {"labels": {"a": "1"}, "labelFingerprint": current})

    assert stale.status == 412
    assert get(cloud, DISK)["labels"] == {"a": "1"}
    assert get(cloud, DISK)["labelFingerprint"] != current


def test_a_disk_grows_and_does_not_shrink(cloud: Cloud) -> None:
    _made(cloud, f"{COMPUTE}/zones/z1/disks", {"name": "data", "sizeGb": "10"})

    _made(cloud, f"{DISK}/resize", {"sizeGb": "20"})

    assert get(cloud, DISK)["sizeGb"] == "20"
    assert _status(cloud, "POST", f"{DISK}/resize", {"sizeGb": "5"})[0] == 400


# --- IAM --------------------------------------------------------------------------------------------------------------


def test_a_policy_is_changed_with_its_etag(cloud: Cloud) -> None:
    ok(cloud.call("PUT", TOPIC, {}))
    policy = get(cloud, f"{TOPIC}:getIamPolicy")
    binding = {"role": "roles/pubsub.publisher", "members": ["user:a@example.com", "user:a@example.com"]}

    after = ok(cloud.call("POST", f"{TOPIC}:setIamPolicy", {"policy": {**policy, "bindings": [binding]}}))
    again = cloud.call("POST", f"{TOPIC}:setIamPolicy", {"policy": {**policy, "bindings": []}})

    assert after["bindings"] == [{"role": "roles/pubsub.publisher", "members": ["user:a@example.com"]}]
    assert again.status == 409
    assert get(cloud, f"{TOPIC}:getIamPolicy") == after


def test_conditions_need_the_third_version(cloud: Cloud) -> None:
    path = "/cloudresourcemanager.googleapis.com/v1/projects/acme"
    condition = {"title": "t", "expression": "true"}
    binding = {"role": "roles/browser", "members": ["user:jo@example.com"], "condition": condition}

    assert _status(cloud, "POST", f"{path}:setIamPolicy", {"policy": {"bindings": [binding]}})[0] == 400
    ok(cloud.call("POST", f"{path}:setIamPolicy", {"policy": {"version": 3, "bindings": [binding]}}))
    shown = ok(cloud.call("POST", f"{path}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}}))
    plain = ok(cloud.call("POST", f"{path}:getIamPolicy"))

    assert shown["bindings"] == [binding]
    assert "_withcond_" in plain["bindings"][0]["role"]


@pytest.mark.parametrize(
    "binding",
    [
        {"role": "viewer", "members": []},
        {"role": "roles/viewer", "members": ["bob"]},
        {"role": "roles/viewer", "members": ["user:jo@example.com"], "condition": {"title": "t", "expression": "true"}},
        {"role": "roles/browser", "members": ["allUsers"], "condition": {"title": "t", "expression": "true"}},
        {"role": "roles/browser", "members": ["user:jo@example.com"], "condition": {"expression": "true"}},
        {"role": "roles/browser", "members": ["user:jo@example.com"], "condition": {"title": "t"}},
    ],
)
def test_an_invalid_binding_is_refused(cloud: Cloud, binding: dict[str, object]) -> None:
    path = "/cloudresourcemanager.googleapis.com/v1/projects/acme:setIamPolicy"

    assert _status(cloud, "POST", path, {"policy": {"version": 3, "bindings": [binding]}})[0] == 400


def test_audit_configs_change_only_with_a_mask_that_names_them(cloud: Cloud) -> None:
    path = "/cloudresourcemanager.googleapis.com/v1/projects/acme"
    audit = [{"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ"}]}]
    ok(cloud.call("POST", f"{path}:setIamPolicy", {"policy": {"auditConfigs": audit}}))
    before = ok(cloud.call("POST", f"{path}:getIamPolicy"))
    named = {"policy": {"auditConfigs": audit}, "updateMask": "bindings,etag,auditConfigs"}
    ok(cloud.call("POST", f"{path}:setIamPolicy", named))
    ok(cloud.call("POST", f"{path}:setIamPolicy", {"policy": {"bindings": []}}))

    assert "auditConfigs" not in before
    assert ok(cloud.call("POST", f"{path}:getIamPolicy"))["auditConfigs"] == audit
    assert _status(cloud, "POST", f"{path}:setIamPolicy", {"policy": {}, "updateMask": "owner"})[0] == 400


def test_e_mail_addresses_of_members_are_kept_in_lower_case(cloud: Cloud) -> None:
    path = "/cloudresourcemanager.googleapis.com/v1/projects/acme"
    binding = {"role": "roles/viewer", "members": ["user:Jo@Example.com", "user:jo@example.com"]}
    ok(cloud.call("POST", f"{path}:setIamPolicy", {"policy": {"bindings": [binding]}}))

    found = ok(cloud.call("POST", f"{path}:getIamPolicy"))["bindings"]
    assert found == [{"role": "roles/viewer", "members": ["user:jo@example.com"]}]


# --- Control ----------------------------------------------------------------------------------------------------------


def test_an_edit_is_there_and_moves_the_etag(cloud: Cloud) -> None:
    secrets = "/secretmanager.googleapis.com/v1/projects/acme/secrets"
    ok(cloud.call("POST", f"{secrets}?secretId=s", {"replication": {"automatic": {}}}))
    before = get(cloud, f"{secrets}/s")

    cloud.edit(f"{secrets}/s", {"labels": {"drift": "yes"}})

    assert get(cloud, f"{secrets}/s")["labels"] == {"drift": "yes"}
    assert get(cloud, f"{secrets}/s")["etag"] != before["etag"]


def test_faults_and_the_journal_know_every_service(cloud: Cloud) -> None:
    cloud.inject(FailRequest(status=503, method="PUT", path="topics/orders"))
    cloud.inject(DropConnection(method="GET", path="topics/orders"))
    cloud.inject(RewriteField(kind="PubSubTopic", field="messageRetentionDuration", value="60s"))

    assert cloud.call("PUT", TOPIC, {}).status == 503
    assert ok(cloud.call("PUT", TOPIC, {}))["messageRetentionDuration"] == "60s"
    with pytest.raises(ConnectionError):
        cloud.call("GET", TOPIC)
    assert [(one.method, one.status) for one in cloud.journal.entries] == [("PUT", 503), ("PUT", 200), ("GET", None)]


def test_a_path_without_a_host_is_served_where_one_service_has_it(cloud: Cloud) -> None:
    ok(cloud.call("PUT", "/v1/projects/acme/topics/orders", {}))

    assert get(cloud, TOPIC)["name"] == "projects/acme/topics/orders"
    status, message = _status(cloud, "POST", "/v1/projects/acme/locations/r1/instances?instanceId=x", {})
    assert status == 404
    assert "several services have it" in message


def test_the_state_file_keeps_every_service(tmp_path: Path) -> None:
    first = held_cloud(state_file=tmp_path / "state.json")
    ok(first.call("PUT", TOPIC, {"labels": {"a": "1"}}))

    second = held_cloud(state_file=tmp_path / "state.json")

    assert get(second, TOPIC) == get(first, TOPIC)
