"""Databases, users and buckets send the writes of Config Connector's recordings."""

from typing import Any

import pytest

from tests.conformance.instance_shapes import MYSQL, NETWORK, POSTGRES, instance
from tests.conformance.sql_service import SqlService
from tests.conformance.storage_service import StorageService
from tests.conformance.two_controllers import Shape, written_by_setpoint
from tests.conformance.wire import PROJECT, Wire, WireRequest

MAIN = {"instanceRef": {"name": "main"}}
NAMED = {"instance": "main", "name": "some-name"}
IN_SECRET = {"valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}
POLICY = {"allowedFailedAttempts": 10, "enableFailedAttemptsCheck": True, "passwordExpirationDuration": "2592000s"}
IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
LABELS = {"cnrm-test": "true", "managed-by-cnrm": "true"}
NEW = {
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
    "labels": LABELS,
    "lifecycle": {"rule": []},
    "location": "US",
    "name": "some-name",
    "storageClass": "STANDARD",
}
Sent = list[tuple[str, dict[str, str], Any]]


def manifest(group: str, kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
    labels = {"cnrm-test": "true", **metadata.pop("labels", {})}
    return {
        "apiVersion": f"{group}.cnrm.cloud.google.com/v1beta1",
        "kind": kind,
        "metadata": {"name": "some-name", "namespace": PROJECT, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def database(**spec: Any) -> dict[str, Any]:
    return manifest("sql", "SQLDatabase", {**MAIN, **spec})


def user(**spec: Any) -> dict[str, Any]:
    return manifest("sql", "SQLUser", {**MAIN, **spec})


def bucket(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return manifest("storage", "StorageBucket", spec, **metadata)


def summary(writes: list[WireRequest]) -> Sent:
    return [(one.method, one.query, one.body) for one in writes]


# --- What is in an instance -------------------------------------------------------------------------------------------


def inside(version: str, create: dict[str, Any], update: dict[str, Any] | None = None) -> Sent:
    """The writes for a user or database, without those of its instance."""
    shape = Shape(create, update, (instance(version, {}, "main"),), {"login": "Pa55-word"})
    written = written_by_setpoint(shape, Wire(SqlService().answer))
    of_root = 1 if version == MYSQL else 0
    return summary(written[1 + of_root : -1])


def test_sqldatabasesismerge_is_reproduced() -> None:
    before, after = {"charset": "utf8"}, {"charset": "utf8mb4", "collation": "utf8mb4_bin"}

    assert inside(MYSQL, database(**before), database(**after)) == [
        ("POST", {}, {**before, **NAMED}),
        ("PUT", {}, {**after, **NAMED}),
        ("DELETE", {}, None),
    ]


@pytest.mark.parametrize("host", ["%", "foo"])
def test_sqluser_is_reproduced(host: str) -> None:
    password = {"password": "Pa55-word"}

    assert inside(MYSQL, user(host=host, password=IN_SECRET)) == [
        ("POST", {}, {"host": host, **NAMED, **password}),
        ("DELETE", {"host": host, "name": "some-name"}, None),
    ]


def test_sqluser_full_is_reproduced_and_its_policy_is_sent() -> None:
    after = {**POLICY, "allowedFailedAttempts": 5}
    specified = {"type": "BUILT_IN", "password": {"value": "one"}}

    assert inside(POSTGRES, user(**specified, passwordPolicy=POLICY), user(**specified, passwordPolicy=after)) == [
        ("POST", {}, {**NAMED, "password": "one", "passwordPolicy": POLICY}),
        ("PUT", {"name": "some-name"}, {**NAMED, "passwordPolicy": {**after, "enablePasswordVerification": False}}),
        ("DELETE", {"name": "some-name"}, None),
    ]


# --- Buckets ----------------------------------------------------------------------------------------------------------

AGED = [{"action": {"type": "Delete"}, "condition": {"age": 7}}]
SOFT = {"retentionDurationSeconds": 604800}
FILTER = {
    "mode": "Enabled",
    "publicNetworkSource": {"allowedIpCidrRanges": ["192.0.2.0/24"]},
    "vpcNetworkSources": [{"networkRef": {"external": f"{NETWORK}a"}, "allowedIpCidrRanges": ["10.0.0.0/8"]}],
    "allowCrossOrgVpcs": True,
    "allowAllServiceAgentAccess": True,
}
FILTER_SENT = {**FILTER, "vpcNetworkSources": [{"network": f"{NETWORK}a", "allowedIpCidrRanges": ["10.0.0.0/8"]}]}
BUCKETS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # Before, after; what a new bucket has besides; what the patch has.
    "autoclass": (
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}},
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}},
    ),
    "autoclass, turned off": (
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": False, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": False, "terminalStorageClass": "ARCHIVE"}},
    ),
    "autoclassdefault, turned off": (
        {"autoclass": {"enabled": True}},
        {"autoclass": {"enabled": False}},
        {"autoclass": {"enabled": True}},
        {"autoclass": {"enabled": False, "terminalStorageClass": "NEARLINE"}},
    ),
    "autoclassdefault, turned on": (
        {"autoclass": {"enabled": False}},
        {"autoclass": {"enabled": True}},
        {},
        {"autoclass": {"enabled": True}},
    ),
    "autoclassnonstandard": (
        {"storageClass": "NEARLINE", "autoclass": {"enabled": True}},
        {"storageClass": "NEARLINE", "autoclass": {"enabled": True}, "versioning": {"enabled": True}},
        {"storageClass": "NEARLINE", "autoclass": {"enabled": True}},
        {"versioning": {"enabled": True}},
    ),
    "autoclassdisabled": (
        {"autoclass": {"enabled": False, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {},
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
    ),
    "basic": (
        {"versioning": {"enabled": False}, "lifecycleRule": AGED, "softDeletePolicy": SOFT},
        {"versioning": {"enabled": True}, "lifecycleRule": [], "softDeletePolicy": {"retentionDurationSeconds": 0}},
        {
            "versioning": {"enabled": False},
            "lifecycle": {"rule": AGED},
            "softDeletePolicy": {"retentionDurationSeconds": "604800"},
        },
        {
            "versioning": {"enabled": True},
            "lifecycle": {"rule": []},
            "softDeletePolicy": {"retentionDurationSeconds": "0"},
        },
    ),
    "zero": (
        {"versioning": {"enabled": True}, "lifecycleRule": AGED, "softDeletePolicy": SOFT},
        {"versioning": {"enabled": False}, "lifecycleRule": [], "softDeletePolicy": {}},
        {
            "versioning": {"enabled": True},
            "lifecycle": {"rule": AGED},
            "softDeletePolicy": {"retentionDurationSeconds": "604800"},
        },
        {"versioning": {"enabled": False}, "lifecycle": {"rule": []}},
    ),
    "ipfilter": (
        {"ipFilter": FILTER},
        {"ipFilter": {**FILTER, "mode": "Disabled"}},
        {"ipFilter": FILTER_SENT},
        {"ipFilter": {**FILTER_SENT, "mode": "Disabled"}},
    ),
}


@pytest.mark.parametrize("name", BUCKETS)
def test_a_bucket_is_recorded_with_these_writes_and_no_precondition(name: str) -> None:
    before, after, inserted, patched = BUCKETS[name]
    wire = Wire(StorageService().answer)

    assert summary(written_by_setpoint(Shape(bucket(before), bucket(after)), wire)) == [
        ("POST", {"project": PROJECT}, {**NEW, **inserted}),
        ("PATCH", {}, patched),
        ("DELETE", {}, None),
    ]


def test_labels_are_sent_whole_and_removed_ones_as_null() -> None:
    shape = Shape(bucket({}, labels={"a": "1", "b": "2"}), bucket({}, labels={"a": "1", "c": "3"}))

    assert summary(written_by_setpoint(shape, Wire(StorageService().answer)))[1] == (
        "PATCH",
        {},
        {"labels": {**LABELS, "a": "1", "b": None, "c": "3"}},
    )


def test_softdelete_is_reproduced_where_unspecified_fields_are_ignored() -> None:
    before = {"lifecycleRule": AGED, "softDeletePolicy": SOFT, "versioning": {"enabled": False}}
    shape = Shape(bucket(before, annotations=IGNORE), bucket({"versioning": {"enabled": True}}, annotations=IGNORE))

    assert summary(written_by_setpoint(shape, Wire(StorageService().answer)))[1] == (
        "PATCH",
        {},
        {"versioning": {"enabled": True}},
    )
