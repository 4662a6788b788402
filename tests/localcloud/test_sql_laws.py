"""Laws of instances: replacement, patch, settings version, operations, pages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody, member, merge_patch, without_member
from tests.localcloud.requests import (
    DB,
    INSTANCES,
    MYSQL,
    OPERATION_SECONDS,
    PROJECT,
    create,
    done,
    get,
    held_cloud,
    ok,
)

pytestmark = pytest.mark.laws

label_keys = st.sampled_from(("team", "env", "cost-center", "ü"))
labels = st.dictionaries(label_keys, st.sampled_from(("", "a", "b-1")), max_size=3)
flags = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "value": st.sampled_from(("on", "off"))}),
    max_size=2,
    unique_by=lambda flag: flag["name"],
)
# The service neither refuses nor rewrites these.
free_settings = {
    "activationPolicy": st.sampled_from(("ALWAYS", "NEVER", "ON_DEMAND")),
    "connectorEnforcement": st.sampled_from(("NOT_REQUIRED", "REQUIRED")),
    "deletionProtectionEnabled": st.booleans(),
    "storageAutoResize": st.booleans(),
    "databaseFlags": flags,
    "userLabels": labels,
    "maintenanceWindow": st.fixed_dictionaries({"day": st.integers(1, 7)}, optional={"hour": st.integers(0, 23)}),
    "insightsConfig": st.fixed_dictionaries(
        {}, optional={"queryInsightsEnabled": st.booleans(), "queryStringLength": st.integers(256, 4500)}
    ),
    "passwordValidationPolicy": st.fixed_dictionaries({"enablePasswordPolicy": st.booleans()}),
    "denyMaintenancePeriods": st.just([{"startDate": "2027-01-01", "endDate": "2027-02-01", "time": "00:00:00"}]),
}
backups = st.sampled_from(
    (
        {},
        {"enabled": True},
        {"enabled": True, "transactionLogRetentionDays": 3},
        {"enabled": False, "startTime": "03:30", "location": "us"},
        {"enabled": True, "backupRetentionSettings": {"retainedBackups": 30}},
    )
)
networks = st.sampled_from(
    (
        {},
        {"requireSsl": True},
        {"sslMode": "ENCRYPTED_ONLY"},
        {"sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"},
        {"authorizedNetworks": [{"value": "10.0.0.0/8", "name": "all"}]},
        {"ipv4Enabled": False, "privateNetwork": "projects/acme/global/networks/net"},
        {"enablePrivatePathForGoogleCloudServices": False},
    )
)
editions: st.SearchStrategy[JsonBody] = st.sampled_from(
    (
        {"edition": "ENTERPRISE", "tier": "db-custom-1-3840"},
        {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"},
        {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2", "dataCacheConfig": {"dataCacheEnabled": False}},
    )
)


@st.composite
def instances(draw: st.DrawFn) -> JsonBody:
    """A body that the service accepts."""
    settings: JsonBody = {**draw(editions), **draw(st.fixed_dictionaries({}, optional=free_settings))}
    more = {"backupConfiguration": draw(backups), "ipConfiguration": draw(networks)}
    version = draw(st.sampled_from(("MYSQL_8_0", "POSTGRES_14", "POSTGRES_16")))
    # The disk is always named, so that no body depends on the one before it.
    size = draw(st.sampled_from(("20", "25")))
    return {**MYSQL, "databaseVersion": version, "settings": {**settings, **more, "dataDiskSizeGb": size}}


def _nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy | st.none()


label_patches = st.dictionaries(label_keys, st.sampled_from(("", "a", None)), max_size=3)
patches = st.fixed_dictionaries(
    {},
    optional={
        name: _nullable(label_patches if name == "userLabels" else strategy) for name, strategy in free_settings.items()
    },
).filter(bool)


def _settings(cloud: Cloud) -> JsonBody:
    return without_member(get(cloud, DB)["settings"], "settingsVersion")


@given(instances())
def test_a_put_of_what_get_returned_changes_nothing(body: JsonBody) -> None:
    cloud = held_cloud()
    live = create(cloud, body)
    done(cloud, "PUT", DB, live)

    assert get(cloud, DB) == live


@given(instances(), instances())
def test_a_replacement_results_in_the_settings_of_a_new_instance(first: JsonBody, second: JsonBody) -> None:
    second = {**second, "databaseVersion": first["databaseVersion"]}
    second = merge_patch(second, {"settings": {"dataDiskSizeGb": "25", "backupConfiguration": {"startTime": "01:00"}}})
    changed, fresh = held_cloud(), held_cloud()
    create(changed, first)
    done(changed, "PUT", DB, second)
    create(fresh, second)

    assert _settings(changed) == _settings(fresh)


@given(instances(), patches)
def test_a_patch_equals_a_replacement_by_the_merged_body(body: JsonBody, patch: JsonBody) -> None:
    patched, replaced = held_cloud(), held_cloud()
    live = create(patched, body)
    create(replaced, body)
    done(patched, "PATCH", DB, {"settings": patch})
    # Merged leaf by leaf, in another way than the service does it.
    whole = json.loads(json.dumps(live))
    for name, value in patch.items():
        if isinstance(value, dict):
            whole["settings"].setdefault(name, {}).update(value)
            whole["settings"][name] = {key: one for key, one in whole["settings"][name].items() if one is not None}
        elif value is None:
            whole["settings"].pop(name, None)
        else:
            whole["settings"][name] = value
    done(replaced, "PUT", DB, whole)

    assert _settings(patched) == _settings(replaced)


@given(instances(), st.lists(patches, max_size=4))
def test_the_settings_version_rises_by_one_exactly_when_something_changed(
    body: JsonBody, changes: list[JsonBody]
) -> None:
    cloud = held_cloud()
    create(cloud, body)
    for patch in changes:
        before, version = _settings(cloud), member(get(cloud, DB), "settings.settingsVersion")
        done(cloud, "PATCH", DB, {"settings": patch})
        step = int(_settings(cloud) != before)

        assert member(get(cloud, DB), "settings.settingsVersion") == str(int(str(version)) + step)


@given(st.lists(st.floats(0.01, 4.0), max_size=12))
def test_the_status_of_an_operation_only_advances_and_it_ends_with_its_effect(steps: list[float]) -> None:
    cloud, order = held_cloud(), ["PENDING", "RUNNING", "DONE"]
    operation = ok(cloud.call("POST", INSTANCES, MYSQL))
    statuses = [operation["status"]]
    for step in [*steps, OPERATION_SECONDS]:
        cloud.advance(step)
        status = get(cloud, f"{PROJECT}/operations/{operation['name']}")["status"]
        statuses.append(status)

        assert (get(cloud, DB)["state"] == "RUNNABLE") == (status == "DONE")
    assert [order.index(status) for status in statuses] == sorted(order.index(status) for status in statuses)
    assert statuses[-1] == "DONE"


@given(st.integers(0, 7), st.integers(1, 4))
def test_the_pages_of_a_list_hold_every_item_once(count: int, size: int) -> None:
    cloud = Cloud(operation_seconds=0)
    for number in range(count):
        ok(cloud.call("POST", INSTANCES, {**MYSQL, "name": f"db-{number}"}))
    names: list[str] = []
    token: str | None = ""
    while token is not None:
        page = get(cloud, f"{INSTANCES}?maxResults={size}&pageToken={token}")
        assert len(page.get("items", [])) <= size
        names += [item["name"] for item in page.get("items", [])]
        token = page.get("nextPageToken")

    assert names == [f"db-{number}" for number in range(count)]
