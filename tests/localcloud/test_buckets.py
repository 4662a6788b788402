"""Buckets: defaults, merge patch, locks and validation."""

import pytest

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody, member
from tests.localcloud.requests import BUCKET, BUCKETS, error_message, get, make_bucket, ok, refused

INSERT = f"{BUCKETS}?project=acme"


def test_a_missing_bucket_has_google_s_error(cloud: Cloud) -> None:
    answer = cloud.call("GET", BUCKET)

    assert answer.status == 404
    assert answer.body == {
        "error": {
            "code": 404,
            "errors": [{"domain": "global", "message": "The specified bucket does not exist.", "reason": "notFound"}],
            "message": "The specified bucket does not exist.",
        }
    }


def test_a_new_bucket_has_its_defaults(cloud: Cloud) -> None:
    bucket = make_bucket(cloud)

    assert {**bucket, "etag": "", "generation": "", "projectNumber": ""} == {
        "etag": "",
        "generation": "",
        "iamConfiguration": {
            "bucketPolicyOnly": {"enabled": False},
            "publicAccessPrevention": "inherited",
            "uniformBucketLevelAccess": {"enabled": False},
        },
        "id": "stuff",
        "kind": "storage#bucket",
        "location": "US",
        "locationType": "multi-region",
        "metageneration": "1",
        "name": "stuff",
        "projectNumber": "",
        "rpo": "DEFAULT",
        "selfLink": "https://www.googleapis.com/storage/v1/b/stuff",
        "softDeletePolicy": {"effectiveTime": "2026-01-01T00:00:00.000Z", "retentionDurationSeconds": "604800"},
        "storageClass": "STANDARD",
        "timeCreated": "2026-01-01T00:00:00.000Z",
        "updated": "2026-01-01T00:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("body", "location", "kind", "rpo"),
    [
        ({"location": "eu"}, "EU", "multi-region", "DEFAULT"),
        ({"location": "nam4"}, "NAM4", "dual-region", "DEFAULT"),
        ({"location": "europe-west1"}, "EUROPE-WEST1", "region", None),
        (
            {"location": "us", "customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}},
            "US",
            "dual-region",
            "DEFAULT",
        ),
    ],
)
def test_the_location_is_upper_case_and_decides_its_type(
    cloud: Cloud, body: JsonBody, location: str, kind: str, rpo: str | None
) -> None:
    bucket = make_bucket(cloud, body)

    assert (bucket["location"], bucket["locationType"], bucket.get("rpo")) == (location, kind, rpo)


def test_the_storage_class_is_the_requested_one(cloud: Cloud) -> None:
    assert make_bucket(cloud, {"storageClass": "COLDLINE"})["storageClass"] == "COLDLINE"
    assert ok(cloud.call("PATCH", BUCKET, {"storageClass": "NEARLINE"}))["storageClass"] == "NEARLINE"


def test_the_error_of_a_second_insert_depends_on_the_owner(cloud: Cloud) -> None:
    make_bucket(cloud)
    mine = cloud.call("POST", INSERT, {"name": "stuff"})
    theirs = cloud.call("POST", f"{BUCKETS}?project=rival", {"name": "stuff"})

    assert refused(mine) == refused(theirs) == (409, "conflict")
    assert "you already own it" in error_message(mine)
    assert "is not available" in error_message(theirs)


REFUSED: list[tuple[JsonBody, str]] = [
    ({"name": "ab"}, "Invalid bucket name: 'ab'"),
    ({"name": "Stuff"}, "Invalid bucket name: 'Stuff'"),
    ({"name": "-stuff"}, "Invalid bucket name"),
    ({"name": "1.2.3.4"}, "Invalid bucket name"),
    ({"name": "goog-stuff"}, "Google keeps its own name"),
    ({"name": "a..b"}, "Invalid bucket name"),
    ({"name": "x" * 64}, "Invalid bucket name"),
    ({"location": "?"}, "location constraint is not valid"),
    ({"storageClass": "HOT"}, "Invalid value at 'storageClass' (TYPE_ENUM)"),
    ({"storageClas": "STANDARD"}, 'Unknown name "storageClas"'),
    ({"softDeletePolicy": {"retentionDurationSeconds": "60"}}, "must be 0, or from 604800 to 7776000"),
    ({"retentionPolicy": {"retentionPeriod": "0"}}, "must be from 1 to 3155760000"),
    ({"retentionPolicy": {"retentionPeriod": "5", "isLocked": True}}, "is locked with lockRetentionPolicy"),
    ({"lifecycle": {"rule": [{"action": {}, "condition": {"age": 1}}]}}, "an action with a type"),
    ({"lifecycle": {"rule": [{"action": {"type": "Delete"}}]}}, "at least one condition"),
    ({"lifecycle": {"rule": [{"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}]}}, "if and only if"),
    ({"customPlacementConfig": {"dataLocations": ["US-EAST1"]}}, "exactly two regions"),
    ({"rpo": "ASYNC_TURBO"}, "needs a dual-region bucket"),
    ({"labels": {"Team": "a"}}, "Invalid label key"),
    ({"labels": {f"l{n}": "" for n in range(65)}}, "64 is the limit"),
    ({"logging": {"logObjectPrefix": "x"}}, "needs a logBucket"),
    ({"acl": []}, "keeps no access control lists"),
    ({"versioning": {"enabled": "yes"}}, "Invalid value at 'versioning.enabled' (TYPE_BOOL)"),
]


@pytest.mark.parametrize(("body", "problem"), REFUSED)
def test_an_invalid_bucket_is_refused(cloud: Cloud, body: JsonBody, problem: str) -> None:
    answer = cloud.call("POST", INSERT, {"name": "stuff", **body})

    assert refused(answer) == (400, "invalid")
    assert problem in error_message(answer)
    assert cloud.storage.state.buckets == {}


def test_the_project_is_a_required_parameter(cloud: Cloud) -> None:
    assert refused(cloud.call("POST", BUCKETS, {"name": "stuff"})) == (400, "required")
    assert refused(cloud.call("GET", BUCKETS)) == (400, "required")


def test_a_patch_merges_labels_and_null_removes_one(cloud: Cloud) -> None:
    make_bucket(cloud, {"labels": {"a": "1", "b": "2"}})
    bucket = ok(cloud.call("PATCH", BUCKET, {"labels": {"a": None, "c": "3"}}))

    assert bucket["labels"] == {"b": "2", "c": "3"}
    assert "labels" not in ok(cloud.call("PATCH", BUCKET, {"labels": None}))


def test_null_and_empty_remove_whole_settings(cloud: Cloud) -> None:
    make_bucket(
        cloud,
        {
            "cors": [{"origin": ["*"]}],
            "website": {"mainPageSuffix": "index.html"},
            "logging": {"logBucket": "logs"},
            "encryption": {"defaultKmsKeyName": "key"},
            "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 0}}]},
            "retentionPolicy": {"retentionPeriod": "60"},
        },
    )
    gone: JsonBody = {"cors": [], "website": None, "logging": None, "encryption": None, "retentionPolicy": None}
    bucket = ok(cloud.call("PATCH", BUCKET, {**gone, "lifecycle": {"rule": []}}))

    assert {"cors", "website", "logging", "encryption", "retentionPolicy", "lifecycle"} & set(bucket) == set()


def test_the_metageneration_moves_only_when_something_changes(cloud: Cloud) -> None:
    make_bucket(cloud)
    cloud.advance(5)
    same = ok(cloud.call("PATCH", BUCKET, {"storageClass": "STANDARD"}))
    empty = ok(cloud.call("PATCH", BUCKET, {}))
    other = ok(cloud.call("PATCH", BUCKET, {"versioning": {"enabled": True}}))

    assert (same["metageneration"], empty["metageneration"], other["metageneration"]) == ("1", "1", "2")
    assert (empty["updated"], other["updated"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:05.000Z")


def test_preconditions_on_the_metageneration_hold_for_reading_writing_and_deleting(cloud: Cloud) -> None:
    make_bucket(cloud)
    right, wrong = f"{BUCKET}?ifMetagenerationMatch=1", f"{BUCKET}?ifMetagenerationMatch=7"
    same = f"{BUCKET}?ifMetagenerationNotMatch=1"

    assert refused(cloud.call("GET", wrong)) == (412, "conditionNotMet")
    assert refused(cloud.call("GET", same)) == (412, "conditionNotMet")
    assert refused(cloud.call("PATCH", wrong, {"storageClass": "NEARLINE"})) == (412, "conditionNotMet")
    assert refused(cloud.call("DELETE", wrong)) == (412, "conditionNotMet")
    assert get(cloud, BUCKET)["storageClass"] == "STANDARD"
    assert ok(cloud.call("PATCH", right, {"storageClass": "NEARLINE"}))["metageneration"] == "2"


@pytest.mark.parametrize(
    "change",
    [
        {"location": "EU"},
        {"location": "NAM4"},
        {"name": "other"},
        {"customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}},
        {"hierarchicalNamespace": {"enabled": True}},
    ],
)
def test_immutable_fields_cannot_be_patched(cloud: Cloud, change: JsonBody) -> None:
    before = make_bucket(cloud)
    answer = cloud.call("PATCH", BUCKET, change)

    assert refused(answer) == (400, "invalid")
    assert "cannot change" in error_message(answer)
    assert get(cloud, BUCKET) == before


def test_a_location_in_lower_case_is_no_change(cloud: Cloud) -> None:
    make_bucket(cloud)

    assert ok(cloud.call("PATCH", BUCKET, {"location": "us"}))["metageneration"] == "1"


def test_soft_delete_has_its_effective_time_and_zero_disables_it(cloud: Cloud) -> None:
    make_bucket(cloud)
    cloud.advance(60)
    longer = ok(cloud.call("PATCH", BUCKET, {"softDeletePolicy": {"retentionDurationSeconds": "864000"}}))
    off = ok(cloud.call("PATCH", BUCKET, {"softDeletePolicy": {"retentionDurationSeconds": 0}}))

    assert longer["softDeletePolicy"]["effectiveTime"] == "2026-01-01T00:01:00.000Z"
    assert off["softDeletePolicy"] == {"retentionDurationSeconds": "0"}


def test_uniform_access_has_two_names_and_hides_the_access_lists(cloud: Cloud) -> None:
    make_bucket(cloud)
    fine = ok(cloud.call("PATCH", BUCKET, {"labels": {"a": "b"}}))
    uniform = ok(cloud.call("PATCH", BUCKET, {"iamConfiguration": {"bucketPolicyOnly": {"enabled": True}}}))

    assert [entry["role"] for entry in fine["acl"]] == ["OWNER", "OWNER", "READER"]
    assert "acl" not in uniform
    assert "acl" not in get(cloud, f"{BUCKET}?projection=full")
    assert refused(cloud.call("GET", f"{BUCKET}?projection=half")) == (400, "invalid")
    switch = uniform["iamConfiguration"]["uniformBucketLevelAccess"]
    assert switch == {"enabled": True, "lockedTime": "2026-04-01T00:00:00.000Z"}
    assert uniform["iamConfiguration"]["bucketPolicyOnly"] == switch


def test_uniform_access_cannot_be_turned_off_after_ninety_days(cloud: Cloud) -> None:
    make_bucket(cloud, {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}})
    off = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}}}
    cloud.advance(91 * 86400)

    assert "can no longer be turned off" in error_message(cloud.call("PATCH", BUCKET, off))


def test_autoclass_chooses_the_storage_class_itself(cloud: Cloud) -> None:
    bucket = make_bucket(cloud, {"autoclass": {"enabled": True}, "storageClass": "NEARLINE"})
    answer = cloud.call("PATCH", BUCKET, {"storageClass": "COLDLINE"})

    assert bucket["storageClass"] == "STANDARD"
    assert bucket["autoclass"] == {
        "enabled": True,
        "terminalStorageClass": "NEARLINE",
        "terminalStorageClassUpdateTime": "2026-01-01T00:00:00.000Z",
        "toggleTime": "2026-01-01T00:00:00.000Z",
    }
    assert "must be STANDARD" in error_message(answer)


def test_autoclass_keeps_the_time_of_each_change(cloud: Cloud) -> None:
    make_bucket(cloud, {"autoclass": {"enabled": True}})
    cloud.advance(60)
    colder = ok(cloud.call("PATCH", BUCKET, {"autoclass": {"terminalStorageClass": "ARCHIVE"}}))["autoclass"]
    cloud.advance(60)
    off = ok(cloud.call("PATCH", BUCKET, {"autoclass": {"enabled": False}}))["autoclass"]

    assert colder["toggleTime"] == "2026-01-01T00:00:00.000Z"
    assert colder["terminalStorageClassUpdateTime"] == "2026-01-01T00:01:00.000Z"
    assert off == {"enabled": False, "toggleTime": "2026-01-01T00:02:00.000Z"}


def test_a_locked_retention_policy_can_grow_and_nothing_else(cloud: Cloud) -> None:
    make_bucket(cloud, {"retentionPolicy": {"retentionPeriod": "100"}})
    bare = cloud.call("POST", f"{BUCKET}/lockRetentionPolicy")
    old = cloud.call("POST", f"{BUCKET}/lockRetentionPolicy?ifMetagenerationMatch=9")
    locked = ok(cloud.call("POST", f"{BUCKET}/lockRetentionPolicy?ifMetagenerationMatch=1"))
    weaker: list[JsonBody] = [
        {"retentionPolicy": {"retentionPeriod": "99"}},
        {"retentionPolicy": None},
        {"retentionPolicy": {"isLocked": False}},
    ]

    assert (refused(bare), refused(old)) == ((400, "required"), (412, "conditionNotMet"))
    assert (member(locked, "retentionPolicy.isLocked"), locked["metageneration"]) == (True, "2")
    assert {refused(cloud.call("PATCH", BUCKET, change)) for change in weaker} == {(403, "forbidden")}
    longer = ok(cloud.call("PATCH", BUCKET, {"retentionPolicy": {"retentionPeriod": "101"}}))
    assert longer["retentionPolicy"]["isLocked"] is True
    again = cloud.call("POST", f"{BUCKET}/lockRetentionPolicy?ifMetagenerationMatch=3")
    assert "does not have an unlocked retention policy" in error_message(again)


def test_an_unlocked_retention_policy_can_be_shortened_and_removed(cloud: Cloud) -> None:
    make_bucket(cloud, {"retentionPolicy": {"retentionPeriod": "100"}})

    assert ok(cloud.call("PATCH", BUCKET, {"retentionPolicy": {"retentionPeriod": "1"}}))["metageneration"] == "2"
    assert "retentionPolicy" not in ok(cloud.call("PATCH", BUCKET, {"retentionPolicy": None}))


def test_an_empty_bucket_is_deleted_with_an_empty_response(cloud: Cloud) -> None:
    make_bucket(cloud)
    answer = cloud.call("DELETE", BUCKET)

    assert (answer.status, answer.body) == (204, None)
    assert cloud.call("GET", BUCKET).status == 404
    assert make_bucket(cloud)["metageneration"] == "1"


def test_the_prefix_of_the_api_may_be_left_out(cloud: Cloud) -> None:
    make_bucket(cloud)

    assert get(cloud, "/b/stuff")["name"] == "stuff"
    assert [one["name"] for one in get(cloud, "/b?project=acme")["items"]] == ["stuff"]
    assert get(cloud, "/b?project=rival") == {"kind": "storage#buckets"}


def test_a_list_shows_only_the_mode_of_an_ip_filter(cloud: Cloud) -> None:
    source = {"allowedIpCidrRanges": ["203.0.113.0/24"]}
    make_bucket(cloud, {"ipFilter": {"mode": "Enabled", "publicNetworkSource": source}})
    (listed,) = get(cloud, "/b?project=acme")["items"]

    assert get(cloud, "/b/stuff")["ipFilter"] == {"mode": "Enabled", "publicNetworkSource": source}
    assert listed["ipFilter"] == {"mode": "Enabled"}
