"""Request bodies for Cloud Storage, member by member. The small cases are recorded requests of Config Connector."""

from typing import Any

import pytest

from setpoint.engine.step.outcomes import Settled
from tests.kinds.kind_harness import KindHarness, bucket, in_kind_harness

NEW = {"managed-by-cnrm": "true"}
MINIMAL = {
    "name": "some-bucket",
    "location": "US",
    "storageClass": "STANDARD",
    "labels": NEW,
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
    "lifecycle": {"rule": []},
}
EVERYTHING: dict[str, Any] = {
    "location": "us",
    "customPlacementConfig": {"dataLocations": ["us-west1", "us-east1"]},
    "storageClass": "NEARLINE",
    "uniformBucketLevelAccess": True,
    "publicAccessPrevention": "enforced",
    "versioning": {"enabled": True},
    "lifecycleRule": [
        {
            "action": {"type": "SetStorageClass", "storageClass": "ARCHIVE"},
            "condition": {"numNewerVersions": 3, "withState": "ARCHIVED", "matchesPrefix": ["tmp/"]},
        },
        {"action": {"type": "Delete"}, "condition": {"age": 7, "withState": "LIVE"}},
    ],
    "softDeletePolicy": {"retentionDurationSeconds": 864000},
    "retentionPolicy": {"retentionPeriod": 60},
    "defaultEventBasedHold": True,
    "requesterPays": True,
    "encryption": {"kmsKeyRef": {"external": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}},
    "cors": [{"method": ["GET"], "origin": ["*"], "maxAgeSeconds": 60, "responseHeader": []}],
    "website": {"mainPageSuffix": "index.html", "notFoundPage": "404.html"},
    "logging": {"logBucket": "logs", "logObjectPrefix": "mine"},
    "ipFilter": {
        "mode": "Enabled",
        "publicNetworkSource": {"allowedIpCidrRanges": ["192.0.2.0/24"]},
        "vpcNetworkSources": [
            {
                "networkRef": {"external": "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"},
                "allowedIpCidrRanges": ["10.0.0.0/8"],
            }
        ],
        "allowCrossOrgVpcs": True,
    },
}
EVERYTHING_SENT: dict[str, Any] = {
    "name": "some-bucket",
    "location": "us",
    "customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]},
    "storageClass": "NEARLINE",
    "iamConfiguration": {
        "publicAccessPrevention": "enforced",
        "uniformBucketLevelAccess": {"enabled": True},
    },
    "versioning": {"enabled": True},
    "lifecycle": {
        "rule": [
            {
                "action": {"type": "SetStorageClass", "storageClass": "ARCHIVE"},
                "condition": {
                    "age": 0,
                    "numNewerVersions": 3,
                    "isLive": False,
                    "matchesPrefix": ["tmp/"],
                },
            },
            {"action": {"type": "Delete"}, "condition": {"age": 7, "isLive": True}},
        ]
    },
    "softDeletePolicy": {"retentionDurationSeconds": "864000"},
    "retentionPolicy": {"retentionPeriod": "60"},
    "defaultEventBasedHold": True,
    "billing": {"requesterPays": True},
    "encryption": {"defaultKmsKeyName": "projects/p/locations/us/keyRings/r/cryptoKeys/k"},
    "cors": [{"method": ["GET"], "origin": ["*"], "maxAgeSeconds": 60}],
    "website": {"mainPageSuffix": "index.html", "notFoundPage": "404.html"},
    "logging": {"logBucket": "logs", "logObjectPrefix": "mine"},
    "ipFilter": {
        "mode": "Enabled",
        "publicNetworkSource": {"allowedIpCidrRanges": ["192.0.2.0/24"]},
        "vpcNetworkSources": [
            {
                "network": "https://www.googleapis.com/compute/v1/projects/p/global/networks/n",
                "allowedIpCidrRanges": ["10.0.0.0/8"],
            }
        ],
        "allowCrossOrgVpcs": True,
        "allowAllServiceAgentAccess": False,
    },
    "labels": {"managed-by-cnrm": "true", "team": "red"},
}


def writes_of(*manifests: dict[str, Any]) -> list[tuple[str, Any]]:
    """The writes for each manifest in turn, and for one more step at the end."""

    async def scenario(engine: KindHarness) -> list[tuple[str, Any]]:
        for manifest in (*manifests, manifests[-1]):
            outcome = await engine.settle(manifest)
            assert isinstance(outcome, Settled), outcome
            assert outcome.ready.reason == "UpToDate", outcome
        return engine.sent

    return in_kind_harness(scenario)


def test_a_new_bucket_is_sent_with_the_members_that_are_always_sent() -> None:
    assert writes_of(bucket({})) == [("POST", MINIMAL)]


def test_declared_defaults_are_sent_for_a_new_bucket() -> None:
    spec = {
        "versioning": {"enabled": False},
        "lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
        "softDeletePolicy": {"retentionDurationSeconds": 604800},
    }

    assert writes_of(bucket(spec, labels={"team": "red"})) == [
        (
            "POST",
            {
                **MINIMAL,
                "labels": {**NEW, "team": "red"},
                "versioning": {"enabled": False},
                "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]},
                "softDeletePolicy": {"retentionDurationSeconds": "604800"},
            },
        )
    ]


def test_a_patch_has_exactly_the_changed_members() -> None:
    before = {
        "versioning": {"enabled": False},
        "lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
        "softDeletePolicy": {"retentionDurationSeconds": 604800},
        "requesterPays": True,
    }
    after = {
        "versioning": {"enabled": True},
        "lifecycleRule": [],
        "softDeletePolicy": {"retentionDurationSeconds": 0},
        "requesterPays": True,
    }

    sent = writes_of(bucket(before, labels={"team": "red"}), bucket(after, labels={"team": "red", "stage": "test"}))

    assert sent[1:] == [
        (
            "PATCH",
            {
                "labels": {**NEW, "team": "red", "stage": "test"},
                "lifecycle": {"rule": []},
                "softDeletePolicy": {"retentionDurationSeconds": "0"},
                "versioning": {"enabled": True},
            },
        )
    ]


def test_an_empty_soft_delete_policy_keeps_the_live_one() -> None:
    sent = writes_of(
        bucket({"softDeletePolicy": {"retentionDurationSeconds": 1209600}, "versioning": {"enabled": True}}),
        bucket({"softDeletePolicy": {}, "versioning": {"enabled": False}}),
    )

    assert sent[1:] == [("PATCH", {"versioning": {"enabled": False}})]


def test_autoclass_is_sent_as_declared() -> None:
    sent = writes_of(
        bucket({"autoclass": {"enabled": True}}), bucket({"autoclass": {"enabled": True}}, labels={"team": "red"})
    )

    assert sent == [
        ("POST", {**MINIMAL, "autoclass": {"enabled": True}}),
        ("PATCH", {"labels": {**NEW, "team": "red"}}),
    ]


def test_the_storage_class_is_not_sent_while_autoclass_is_on() -> None:
    spec = {"storageClass": "NEARLINE", "autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}}
    later = {"storageClass": "NEARLINE", "autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}

    assert writes_of(bucket(spec), bucket(later)) == [
        ("POST", {**MINIMAL, **spec}),
        ("PATCH", {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}),
    ]


def test_autoclass_is_turned_on_and_off() -> None:
    sent = writes_of(
        bucket({"storageClass": "NEARLINE"}),
        bucket({"storageClass": "NEARLINE", "autoclass": {"enabled": True}}),
        bucket({"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}),
        bucket({"autoclass": {"enabled": True}}),
        bucket({}),
    )

    assert sent[1:] == [
        ("PATCH", {"storageClass": "STANDARD", "autoclass": {"enabled": True}}),
        ("PATCH", {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}),
        ("PATCH", {"autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}}),
        ("PATCH", {"autoclass": {"enabled": False}}),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"autoclass": {"enabled": False}},
        {"autoclass": {"enabled": False, "terminalStorageClass": "ARCHIVE"}},
        {"requesterPays": False, "defaultEventBasedHold": False},
        {"bucketPolicyOnly": False},
        {"cors": [], "lifecycleRule": [], "website": {}},
        {"location": None, "logging": None, "retentionPolicy": None},
    ],
)
def test_initial_values_of_a_new_bucket_are_not_sent(spec: dict[str, Any]) -> None:
    assert writes_of(bucket(spec)) == [("POST", MINIMAL)]


def test_the_older_name_of_uniform_access_means_the_same() -> None:
    [(_, body)] = writes_of(bucket({"bucketPolicyOnly": True}))

    assert body["iamConfiguration"] == {"uniformBucketLevelAccess": {"enabled": True}}


def test_every_field_has_its_member() -> None:
    manifest = bucket(EVERYTHING, labels={"team": "red", "app.kubernetes.io/name": "x"})

    assert writes_of(manifest) == [("POST", EVERYTHING_SENT)]


def test_removed_fields_are_reset_and_protections_are_kept() -> None:
    sent = writes_of(bucket(EVERYTHING, labels={"team": "red"}), bucket({}))

    assert sent[1:] == [
        (
            "PATCH",
            {
                "storageClass": "STANDARD",
                "versioning": {"enabled": False},
                "lifecycle": {"rule": []},
                "defaultEventBasedHold": False,
                "billing": {"requesterPays": False},
                "encryption": {"defaultKmsKeyName": None},
                "cors": None,
                "website": None,
                "logging": None,
                "ipFilter": {
                    "mode": "Disabled",
                    "publicNetworkSource": None,
                    "vpcNetworkSources": [],
                    "allowCrossOrgVpcs": False,
                    "allowAllServiceAgentAccess": False,
                },
                "labels": {**NEW, "team": None},
            },
        )
    ]


def test_protections_are_removed_by_an_explicit_value() -> None:
    given_up = {
        "retentionPolicy": None,
        "softDeletePolicy": None,
        "publicAccessPrevention": "inherited",
        "uniformBucketLevelAccess": False,
    }
    sent = writes_of(
        bucket({name: EVERYTHING[name] for name in given_up}),
        bucket(given_up),
    )

    assert sent[1:] == [
        (
            "PATCH",
            {
                "retentionPolicy": None,
                "softDeletePolicy": {"retentionDurationSeconds": "604800"},
                "iamConfiguration": {
                    "publicAccessPrevention": "inherited",
                    "uniformBucketLevelAccess": {"enabled": False},
                },
            },
        )
    ]


def test_removed_parts_are_sent_as_null() -> None:
    sent = writes_of(
        bucket({"website": {"mainPageSuffix": "a", "notFoundPage": "b"}, "logging": EVERYTHING["logging"]}),
        bucket({"website": {"mainPageSuffix": "c"}, "logging": {"logBucket": "logs", "logObjectPrefix": ""}}),
    )

    assert sent[1:] == [
        (
            "PATCH",
            {
                "website": {"mainPageSuffix": "c", "notFoundPage": None},
                "logging": {"logBucket": "logs", "logObjectPrefix": None},
            },
        )
    ]
