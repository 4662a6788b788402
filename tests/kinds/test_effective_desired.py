"""The effective desired state of Google's kinds, typed: spec over live, neither of them changed."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from setpoint.core.schema.policy import IGNORE, PRUNE, FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Missing
from setpoint.kinds.gcp.shared.cloud_sql import InstanceReference
from setpoint.kinds.gcp.sql_database import SqlDatabaseSpec, SqlDatabaseTree, effective_database
from setpoint.kinds.gcp.storage_bucket import (
    StorageBucket,
    StorageBucketSpec,
    StorageBucketTree,
)
from setpoint.kinds.gcp.storage_bucket.effective import effective_bucket
from tests.kinds.effective_states import bucket_as_spec

RULE = {"action": {"type": "Delete"}, "condition": {"age": 7}}
OTHER_RULE = {"action": {"type": "Delete"}, "condition": {"age": 30}}


def spec(**fields: Any) -> StorageBucketSpec:
    return msgspec.convert(fields, StorageBucketSpec)


def policy(**annotations: str) -> FieldPolicy:
    found = {f"cnrm.cloud.google.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return FieldPolicy.parse(found, shape_of(StorageBucketTree))


def desired_bucket(
    declared: StorageBucketSpec, live: StorageBucketSpec | Missing, policy: FieldPolicy
) -> StorageBucketSpec:
    before = live if isinstance(live, Missing) else StorageBucketTree(spec=live)
    return effective_bucket(StorageBucketTree(spec=declared), before, policy).state.spec


def desired(declared: StorageBucketSpec, live: StorageBucketSpec, policy: FieldPolicy) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(desired_bucket(declared, live, policy))
    return result


LISTED = policy(default_to_gcp_fields="spec.storageClass,spec.website.notFoundPage")
UNMANAGED = policy(unmanaged="spec.versioning,spec.lifecycleRule")


@pytest.mark.parametrize(
    ("declared", "live", "rules", "field", "wanted"),
    [
        # A value, and the default of an unspecified field.
        (spec(), spec(storageClass="NEARLINE"), PRUNE, "storageClass", "STANDARD"),
        (spec(), spec(storageClass="NEARLINE"), IGNORE, "storageClass", "NEARLINE"),
        (spec(), spec(storageClass="NEARLINE"), LISTED, "storageClass", "NEARLINE"),
        (spec(storageClass="ARCHIVE"), spec(storageClass="NEARLINE"), LISTED, "storageClass", "ARCHIVE"),
        # Nested fields.
        (
            spec(website={"mainPageSuffix": "a"}),
            spec(website={"mainPageSuffix": "x", "notFoundPage": "y"}),
            PRUNE,
            "website",
            {"mainPageSuffix": "a"},
        ),
        (
            spec(website={"mainPageSuffix": "a"}),
            spec(website={"mainPageSuffix": "x", "notFoundPage": "y"}),
            IGNORE,
            "website",
            {"mainPageSuffix": "a", "notFoundPage": "y"},
        ),
        (
            spec(website={"mainPageSuffix": "a"}),
            spec(website={"mainPageSuffix": "x", "notFoundPage": "y"}),
            LISTED,
            "website",
            {"mainPageSuffix": "a", "notFoundPage": "y"},
        ),
        (spec(website=None), spec(website={"mainPageSuffix": "x"}), IGNORE, "website", None),
        # A list is replaced as a whole.
        (spec(lifecycleRule=[RULE]), spec(lifecycleRule=[OTHER_RULE, RULE]), IGNORE, "lifecycleRule", [RULE]),
        (spec(), spec(lifecycleRule=[RULE]), PRUNE, "lifecycleRule", None),
        (spec(), spec(lifecycleRule=[RULE]), IGNORE, "lifecycleRule", [RULE]),
        (spec(lifecycleRule=[OTHER_RULE]), spec(lifecycleRule=[RULE]), UNMANAGED, "lifecycleRule", [RULE]),
        # Zero and empty are values.
        (spec(lifecycleRule=[]), spec(lifecycleRule=[RULE]), IGNORE, "lifecycleRule", []),
        (
            spec(versioning={"enabled": False}),
            spec(versioning={"enabled": True}),
            IGNORE,
            "versioning",
            {"enabled": False},
        ),
        (
            spec(versioning={"enabled": False}),
            spec(versioning={"enabled": True}),
            UNMANAGED,
            "versioning",
            {"enabled": True},
        ),
        (
            spec(softDeletePolicy={"retentionDurationSeconds": 0}),
            spec(softDeletePolicy={"retentionDurationSeconds": 604800}),
            PRUNE,
            "softDeletePolicy",
            {"retentionDurationSeconds": 0},
        ),
        # Unspecified protections and immutable fields are kept.
        (
            spec(),
            spec(retentionPolicy={"retentionPeriod": 60, "isLocked": True}),
            PRUNE,
            "retentionPolicy",
            {"retentionPeriod": 60, "isLocked": True},
        ),
        (
            spec(softDeletePolicy={}),
            spec(softDeletePolicy={"retentionDurationSeconds": 9}),
            PRUNE,
            "softDeletePolicy",
            {"retentionDurationSeconds": 9},
        ),
        (spec(), spec(publicAccessPrevention="enforced"), PRUNE, "publicAccessPrevention", "enforced"),
        (
            spec(publicAccessPrevention=None),
            spec(publicAccessPrevention="enforced"),
            PRUNE,
            "publicAccessPrevention",
            "inherited",
        ),
        (spec(), spec(location="EU"), PRUNE, "location", "EU"),
        # While Autoclass is on, the service chooses the class.
        (
            spec(storageClass="ARCHIVE", autoclass={"enabled": True}),
            spec(storageClass="STANDARD"),
            PRUNE,
            "storageClass",
            "STANDARD",
        ),
        (
            spec(storageClass="ARCHIVE"),
            spec(storageClass="STANDARD", autoclass={"enabled": True}),
            IGNORE,
            "storageClass",
            "STANDARD",
        ),
    ],
)
def test_a_bucket_field(
    declared: StorageBucketSpec, live: StorageBucketSpec, rules: FieldPolicy, field: str, wanted: object
) -> None:
    before = canonical(declared), canonical(live)

    assert desired(declared, live, rules).get(field) == wanted
    assert (canonical(declared), canonical(live)) == before


def test_a_new_bucket_gets_the_defaults_that_are_always_sent() -> None:
    wanted = desired_bucket(spec(softDeletePolicy={}), MISSING, PRUNE)

    assert msgspec.to_builtins(wanted) == {
        "location": "US",
        "storageClass": "STANDARD",
        "uniformBucketLevelAccess": False,
        "lifecycleRule": [],
        "softDeletePolicy": {"retentionDurationSeconds": 604800},
    }


def test_a_live_bucket_in_the_spec_s_terms_is_its_own_desired_state() -> None:
    live = bucket_as_spec(
        msgspec.convert(
            {
                "name": "b",
                "location": "US",
                "storageClass": "STANDARD",
                "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
                "autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"},
                "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 0, "isLive": False}}]},
                "encryption": {"defaultKmsKeyName": "projects/p/keys/k"},
            },
            StorageBucket,
        )
    )

    assert desired_bucket(live, live, IGNORE) == live


def desired_database(declared: SqlDatabaseSpec, live: SqlDatabaseSpec | Missing, rules: FieldPolicy) -> SqlDatabaseSpec:
    before = live if isinstance(live, Missing) else SqlDatabaseTree(live)
    return effective_database(SqlDatabaseTree(declared), before, rules).state.spec


def database(charset: Any = UNSET, collation: Any = UNSET) -> SqlDatabaseSpec:
    return SqlDatabaseSpec(instanceRef=InstanceReference(external="main"), charset=charset, collation=collation)


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        (database(), database("utf8", "utf8_bin")),
        (database("latin1"), database("latin1", "utf8_bin")),
        (database(collation="utf8_general_ci"), database("utf8", "utf8_general_ci")),
        (database("", ""), database("", "")),
    ],
)
@pytest.mark.parametrize("rules", [PRUNE, IGNORE])
def test_a_database_field(declared: SqlDatabaseSpec, wanted: SqlDatabaseSpec, rules: FieldPolicy) -> None:
    live = database("utf8", "utf8_bin")
    before = canonical(declared), canonical(live)

    assert desired_database(declared, live, rules) == wanted
    assert (canonical(declared), canonical(live)) == before


def test_an_unmanaged_setting_of_a_database_is_kept_even_if_the_spec_sets_it() -> None:
    found = {"cnrm.cloud.google.com/unmanaged": "spec.charset"}
    rules = FieldPolicy.parse(found, shape_of(SqlDatabaseTree))

    assert desired_database(database("latin1"), database("utf8"), rules) == database("utf8")


def test_a_new_database_is_as_the_spec_declares() -> None:
    assert desired_database(database("utf8"), MISSING, PRUNE) == database("utf8")
