"""Which fields of an object are managed, over the lifecycle of a resource: from the command to the requests."""

from typing import Any, Final

from tests.kinds.instances import IGNORE, INSTANCES, instance
from tests.kinds.instances import PATH as INSTANCE
from tests.kinds.kind_harness import bucket
from tests.scenarios.command_harness import CommandHarness

BUCKET: Final = "/storage/v1/b/some-bucket"
LISTED: Final = "cnrm.cloud.google.com/default-to-gcp-fields"
MAINTENANCE: Final = {LISTED: "spec.settings.maintenanceWindow"}
LIFECYCLE: Final = {LISTED: "spec.lifecycleRule"}
AFTER_A_MONTH: Final = {"action": {"type": "Delete"}, "condition": {"age": 30}}
AFTER_A_YEAR: Final = {"action": {"type": "Delete"}, "condition": {"age": 365}}
FLAG: Final = {"name": "log_connections", "value": "on"}
# What another writer turns on in the console, some of it protected.
BY_HAND: Final = {
    "availabilityType": "REGIONAL",
    "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True, "startTime": "03:00"},
    "databaseFlags": [FLAG],
    "deletionProtectionEnabled": True,
    "maintenanceWindow": {"day": 3, "hour": 4},
}
BUCKET_BY_HAND: Final = {
    "labels": {"team": "data"},
    "lifecycle": {"rule": [AFTER_A_MONTH]},
    "retentionPolicy": {"retentionPeriod": "3600"},
    "softDeletePolicy": {"retentionDurationSeconds": "2592000"},
    "versioning": {"enabled": True},
}
PLUS: Final = {
    "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True, "startTime": "03:00"},
    "edition": "ENTERPRISE_PLUS",
    "tier": "db-perf-optimized-N-2",
}


# --- ignore-unspecified-fields: SQLInstance ---------------------------------------------------------------------------


def test_an_instance_with_a_minimal_spec_keeps_defaults_of_the_service_and_changes_by_another_writer(
    harness: CommandHarness,
) -> None:
    created = harness.apply(_instance(annotations=IGNORE))
    defaults = _settings(harness)
    seen_again = harness.reconcile()
    harness.write_as_another("PATCH", INSTANCE, {"settings": BY_HAND})
    changed = _settings(harness)
    after_changes = harness.reconcile()

    assert [(call.method, call.path, call.body["settings"]) for call in created] == [
        (
            "POST",
            "/sql/v1beta4/projects/some-project/instances",
            {"kind": "sql#settings", "tier": "db-custom-1-3840", "userLabels": {"managed-by-cnrm": "true"}},
        )
    ]
    # Without the annotation, silence would ask for true.
    assert (defaults["storageAutoResize"], defaults["availabilityType"]) == (False, "ZONAL")
    assert (seen_again, after_changes) == ([], [])
    assert _settings(harness) == changed
    assert (changed["availabilityType"], changed["databaseFlags"]) == ("REGIONAL", [FLAG])


def test_a_field_of_an_instance_is_managed_once_the_spec_names_it(harness: CommandHarness) -> None:
    harness.apply(_instance(annotations=IGNORE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": BY_HAND})

    (named,) = harness.apply(_instance({"availabilityType": "ZONAL"}, annotations=IGNORE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"availabilityType": "REGIONAL"}})
    (corrected,) = harness.reconcile()

    for call in (named, corrected):
        assert (call.method, call.path, call.status) == ("PUT", INSTANCE, 200)
        assert call.body["settings"]["availabilityType"] == "ZONAL"
    live = _settings(harness)
    assert (live["availabilityType"], live["databaseFlags"], live["storageAutoResize"]) == ("ZONAL", [FLAG], False)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (3, 4)
    assert (live["backupConfiguration"]["enabled"], live["deletionProtectionEnabled"]) == (True, True)


def test_without_the_annotation_an_instance_is_pruned_except_for_protected_fields(harness: CommandHarness) -> None:
    harness.apply(_instance(annotations=IGNORE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": BY_HAND})

    shown = harness.plan(_instance())
    (pruned,) = harness.apply(_instance())
    settled = harness.reconcile()

    assert (pruned.method, pruned.path, pruned.status) == ("PUT", INSTANCE, 200)
    assert settled == []
    live = _settings(harness)
    assert (live["availabilityType"], live["storageAutoResize"]) == ("ZONAL", True)
    assert [name for name in ("databaseFlags", "maintenanceWindow") if live.get(name)] == []
    backups = live["backupConfiguration"]
    assert (backups["enabled"], backups["pointInTimeRecoveryEnabled"], backups["startTime"]) == (True, True, "03:00")
    assert live["deletionProtectionEnabled"] is True
    assert _protected(shown) == [
        "spec.settings.backupConfiguration.enabled",
        "spec.settings.backupConfiguration.pointInTimeRecoveryEnabled",
        "spec.settings.deletionProtectionEnabled",
    ]


# --- ignore-unspecified-fields: StorageBucket -------------------------------------------------------------------------


def test_a_bucket_with_a_minimal_spec_keeps_defaults_of_the_service_and_changes_by_another_writer(
    harness: CommandHarness,
) -> None:
    (created,) = harness.apply(_bucket(annotations=IGNORE))
    defaults = harness.live(BUCKET)
    seen_again = harness.reconcile()
    harness.write_as_another("PATCH", BUCKET, BUCKET_BY_HAND)
    changed = harness.live(BUCKET)
    after_changes = harness.reconcile()

    assert (created.method, created.path) == ("POST", "/storage/v1/b")
    assert sorted(created.body) == ["labels", "location", "name"]
    assert defaults["softDeletePolicy"]["retentionDurationSeconds"] == "604800"
    assert defaults["iamConfiguration"]["publicAccessPrevention"] == "inherited"
    assert (seen_again, after_changes) == ([], [])
    assert harness.live(BUCKET) == changed
    assert (changed["versioning"], changed["labels"]["team"]) == ({"enabled": True}, "data")


def test_a_field_of_a_bucket_is_managed_once_the_spec_names_it(harness: CommandHarness) -> None:
    harness.apply(_bucket(annotations=IGNORE))
    harness.write_as_another("PATCH", BUCKET, BUCKET_BY_HAND)

    named = harness.apply(_bucket({"versioning": {"enabled": False}}, annotations=IGNORE))
    harness.write_as_another("PATCH", BUCKET, {"versioning": {"enabled": True}})
    corrected = harness.reconcile()

    for calls in (named, corrected):
        assert [(call.method, call.path, call.body) for call in calls] == [
            ("PATCH", "/storage/v1/b/some-bucket", {"versioning": {"enabled": False}})
        ]
    live = harness.live(BUCKET)
    assert live["versioning"] == {"enabled": False}
    assert (live["labels"]["team"], live["lifecycle"]) == ("data", {"rule": [AFTER_A_MONTH]})


def test_without_the_annotation_a_bucket_is_pruned_except_for_protected_fields(harness: CommandHarness) -> None:
    harness.apply(_bucket(annotations=IGNORE))
    harness.write_as_another("PATCH", BUCKET, BUCKET_BY_HAND)

    shown = harness.plan(_bucket())
    pruned = harness.apply(_bucket())
    settled = harness.reconcile()

    gone = {"lifecycle": {"rule": []}, "labels": {"managed-by-cnrm": "true", "team": None}}
    assert [(call.method, call.path, call.body) for call in pruned] == [
        ("PATCH", "/storage/v1/b/some-bucket", {"versioning": {"enabled": False}, **gone})
    ]
    assert settled == []
    live = harness.live(BUCKET)
    assert (live["labels"], live["versioning"]) == ({"managed-by-cnrm": "true"}, {"enabled": False})
    assert "lifecycle" not in live
    assert live["softDeletePolicy"]["retentionDurationSeconds"] == "2592000"
    assert live["retentionPolicy"]["retentionPeriod"] == "3600"
    assert _protected(shown) == [
        "spec.softDeletePolicy.retentionDurationSeconds",
        "spec.retentionPolicy.retentionPeriod",
    ]


# --- default-to-gcp-fields: SQLInstance -------------------------------------------------------------------------------


def test_a_listed_field_of_an_instance_is_kept_while_the_spec_omits_it_and_other_fields_are_pruned(
    harness: CommandHarness,
) -> None:
    harness.apply(_instance(annotations=MAINTENANCE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 3, "hour": 4}}})
    listed_alone = harness.reconcile()
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"databaseFlags": [FLAG]}})
    (pruned,) = harness.reconcile()

    assert listed_alone == []
    assert (pruned.method, "databaseFlags" in pruned.body["settings"]) == ("PUT", False)
    live = _settings(harness)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (3, 4)
    assert not live.get("databaseFlags")


def test_a_listed_field_of_an_instance_is_managed_once_the_spec_names_it(harness: CommandHarness) -> None:
    harness.apply(_instance(annotations=MAINTENANCE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 3, "hour": 4}}})

    (named,) = harness.apply(_instance({"maintenanceWindow": {"day": 7, "hour": 1}}, annotations=MAINTENANCE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 5, "hour": 5}}})
    (corrected,) = harness.reconcile()

    for call in (named, corrected):
        window = call.body["settings"]["maintenanceWindow"]
        assert (call.method, window["day"], window["hour"]) == ("PUT", 7, 1)
    live = _settings(harness)["maintenanceWindow"]
    assert (live["day"], live["hour"]) == (7, 1)


def test_a_listed_field_of_an_instance_is_left_as_it_is_when_it_leaves_the_spec_and_other_fields_are_unset(
    harness: CommandHarness,
) -> None:
    both = {"databaseFlags": [FLAG], "maintenanceWindow": {"day": 7, "hour": 1}}
    harness.apply(_instance(both, annotations=MAINTENANCE))

    left_alone = harness.apply(_instance({"databaseFlags": [FLAG]}, annotations=MAINTENANCE))
    harness.write_as_another("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 5, "hour": 5}}})
    not_corrected = harness.reconcile()
    (unset,) = harness.apply(_instance(annotations=MAINTENANCE))

    assert (left_alone, not_corrected) == ([], [])
    assert (unset.method, "databaseFlags" in unset.body["settings"]) == ("PUT", False)
    live = _settings(harness)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (5, 5)
    assert not live.get("databaseFlags")


# --- default-to-gcp-fields: StorageBucket -----------------------------------------------------------------------------


def test_a_listed_field_of_a_bucket_is_kept_while_the_spec_omits_it_and_other_fields_are_pruned(
    harness: CommandHarness,
) -> None:
    harness.apply(_bucket(annotations=LIFECYCLE))
    harness.write_as_another("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})
    listed_alone = harness.reconcile()
    harness.write_as_another("PATCH", BUCKET, {"versioning": {"enabled": True}})
    pruned = harness.reconcile()

    assert listed_alone == []
    assert [(call.method, call.body) for call in pruned] == [("PATCH", {"versioning": {"enabled": False}})]
    live = harness.live(BUCKET)
    assert (live["lifecycle"], live["versioning"]) == ({"rule": [AFTER_A_MONTH]}, {"enabled": False})


def test_a_listed_field_of_a_bucket_is_managed_once_the_spec_names_it(harness: CommandHarness) -> None:
    harness.apply(_bucket(annotations=LIFECYCLE))
    harness.write_as_another("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})

    named = harness.apply(_bucket({"lifecycleRule": [AFTER_A_YEAR]}, annotations=LIFECYCLE))
    harness.write_as_another("PATCH", BUCKET, {"lifecycle": None})
    corrected = harness.reconcile()

    for calls in (named, corrected):
        assert [(call.method, call.body) for call in calls] == [("PATCH", {"lifecycle": {"rule": [AFTER_A_YEAR]}})]
    assert harness.live(BUCKET)["lifecycle"] == {"rule": [AFTER_A_YEAR]}


def test_a_listed_field_of_a_bucket_is_left_as_it_is_when_it_leaves_the_spec_and_other_fields_are_unset(
    harness: CommandHarness,
) -> None:
    both = {"lifecycleRule": [AFTER_A_YEAR], "website": {"mainPageSuffix": "index.html"}}
    harness.apply(_bucket(both, annotations=LIFECYCLE))

    left_alone = harness.apply(_bucket({"website": {"mainPageSuffix": "index.html"}}, annotations=LIFECYCLE))
    harness.write_as_another("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})
    not_corrected = harness.reconcile()
    unset = harness.apply(_bucket(annotations=LIFECYCLE))

    assert (left_alone, not_corrected) == ([], [])
    assert [(call.method, call.body) for call in unset] == [("PATCH", {"website": None})]
    live = harness.live(BUCKET)
    assert (live["lifecycle"], "website" in live) == ({"rule": [AFTER_A_MONTH]}, False)


# --- Adoption ---------------------------------------------------------------------------------------------------------


def test_an_enterprise_plus_instance_with_backups_is_adopted_without_a_write(harness: CommandHarness) -> None:
    _make_plus(harness)
    before = harness.live(INSTANCE)

    adopted = harness.apply(_instance({"tier": "db-perf-optimized-N-2"}, annotations=IGNORE))

    assert adopted == []
    assert harness.live(INSTANCE) == before


def test_an_adopted_instance_keeps_edition_and_backups_that_the_spec_omits(harness: CommandHarness) -> None:
    _make_plus(harness, databaseFlags=[FLAG])
    before = _settings(harness)

    (adopted,) = harness.apply(_instance({"tier": "db-perf-optimized-N-2"}))
    settled = harness.reconcile()

    # A PUT contains everything: edition and backups as they were.
    sent = adopted.body["settings"]
    backups = sent["backupConfiguration"]
    assert (adopted.method, sent["edition"], "databaseFlags" in sent) == ("PUT", "ENTERPRISE_PLUS", False)
    assert (backups["enabled"], backups["pointInTimeRecoveryEnabled"], backups["startTime"]) == (True, True, "03:00")
    assert backups["backupRetentionSettings"] == {"retainedBackups": 15, "retentionUnit": "COUNT"}
    assert settled == []
    live = _settings(harness)
    assert (live["edition"], live["tier"]) == ("ENTERPRISE_PLUS", "db-perf-optimized-N-2")
    assert live["backupConfiguration"] == before["backupConfiguration"]
    assert not live.get("databaseFlags")


def _instance(settings: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    all_settings = {"tier": "db-custom-1-3840", **(settings or {})}
    return instance({"databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": all_settings}, **metadata)


def _bucket(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return bucket({"location": "EU", **(spec or {})}, **metadata)


def _settings(harness: CommandHarness) -> dict[str, Any]:
    found: dict[str, Any] = harness.live(INSTANCE)["settings"]
    return found


def _make_plus(harness: CommandHarness, **settings: Any) -> None:
    body = {"name": "some-instance", "region": "us-central1", "databaseVersion": "POSTGRES_15"}
    harness.write_as_another("POST", INSTANCES, {**body, "settings": {**PLUS, **settings}})


def _protected(shown: str) -> list[str]:
    """The paths that a plan calls protected."""
    return [line.split()[1] for line in shown.splitlines() if line.endswith("kept (protected)")]
