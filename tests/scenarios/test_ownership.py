"""Who owns a field, over the life of a resource: from the command to the calls that reach the cloud."""

from typing import Any, Final

from tests.kinds.instances import IGNORE, INSTANCES, instance
from tests.kinds.instances import PATH as INSTANCE
from tests.kinds.kind_harness import bucket
from tests.scenarios.stage import Stage

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


def test_an_instance_with_a_minimal_spec_keeps_the_defaults_of_the_service_and_what_others_change(stage: Stage) -> None:
    created = stage.apply(_instance(annotations=IGNORE))
    defaults = _settings(stage)
    seen_again = stage.reconcile()
    stage.others("PATCH", INSTANCE, {"settings": BY_HAND})
    changed = _settings(stage)
    after_changes = stage.reconcile()

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
    assert _settings(stage) == changed
    assert (changed["availabilityType"], changed["databaseFlags"]) == ("REGIONAL", [FLAG])


def test_a_field_of_an_instance_is_managed_once_the_spec_names_it(stage: Stage) -> None:
    stage.apply(_instance(annotations=IGNORE))
    stage.others("PATCH", INSTANCE, {"settings": BY_HAND})

    (named,) = stage.apply(_instance({"availabilityType": "ZONAL"}, annotations=IGNORE))
    stage.others("PATCH", INSTANCE, {"settings": {"availabilityType": "REGIONAL"}})
    (put_back,) = stage.reconcile()

    for call in (named, put_back):
        assert (call.method, call.path, call.status) == ("PUT", INSTANCE, 200)
        assert call.body["settings"]["availabilityType"] == "ZONAL"
    live = _settings(stage)
    assert (live["availabilityType"], live["databaseFlags"], live["storageAutoResize"]) == ("ZONAL", [FLAG], False)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (3, 4)
    assert (live["backupConfiguration"]["enabled"], live["deletionProtectionEnabled"]) == (True, True)


def test_without_the_annotation_an_instance_is_pruned_apart_from_what_is_protected(stage: Stage) -> None:
    stage.apply(_instance(annotations=IGNORE))
    stage.others("PATCH", INSTANCE, {"settings": BY_HAND})

    shown = stage.plan(_instance())
    (pruned,) = stage.apply(_instance())
    settled = stage.reconcile()

    assert (pruned.method, pruned.path, pruned.status) == ("PUT", INSTANCE, 200)
    assert settled == []
    live = _settings(stage)
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


def test_a_bucket_with_a_minimal_spec_keeps_the_defaults_of_the_service_and_what_others_change(stage: Stage) -> None:
    (created,) = stage.apply(_bucket(annotations=IGNORE))
    defaults = stage.live(BUCKET)
    seen_again = stage.reconcile()
    stage.others("PATCH", BUCKET, BUCKET_BY_HAND)
    changed = stage.live(BUCKET)
    after_changes = stage.reconcile()

    assert (created.method, created.path) == ("POST", "/storage/v1/b")
    assert sorted(created.body) == ["iamConfiguration", "labels", "lifecycle", "location", "name", "storageClass"]
    assert defaults["softDeletePolicy"]["retentionDurationSeconds"] == "604800"
    assert defaults["iamConfiguration"]["publicAccessPrevention"] == "inherited"
    assert (seen_again, after_changes) == ([], [])
    assert stage.live(BUCKET) == changed
    assert (changed["versioning"], changed["labels"]["team"]) == ({"enabled": True}, "data")


def test_a_field_of_a_bucket_is_managed_once_the_spec_names_it(stage: Stage) -> None:
    stage.apply(_bucket(annotations=IGNORE))
    stage.others("PATCH", BUCKET, BUCKET_BY_HAND)

    named = stage.apply(_bucket({"versioning": {"enabled": False}}, annotations=IGNORE))
    stage.others("PATCH", BUCKET, {"versioning": {"enabled": True}})
    put_back = stage.reconcile()

    for calls in (named, put_back):
        assert [(call.method, call.path, call.body) for call in calls] == [
            ("PATCH", "/storage/v1/b/some-bucket", {"versioning": {"enabled": False}})
        ]
    live = stage.live(BUCKET)
    assert live["versioning"] == {"enabled": False}
    assert (live["labels"]["team"], live["lifecycle"]) == ("data", {"rule": [AFTER_A_MONTH]})


def test_without_the_annotation_a_bucket_is_pruned_apart_from_what_is_protected(stage: Stage) -> None:
    stage.apply(_bucket(annotations=IGNORE))
    stage.others("PATCH", BUCKET, BUCKET_BY_HAND)

    shown = stage.plan(_bucket())
    pruned = stage.apply(_bucket())
    settled = stage.reconcile()

    gone = {"lifecycle": {"rule": []}, "labels": {"managed-by-cnrm": "true", "team": None}}
    assert [(call.method, call.path, call.body) for call in pruned] == [
        ("PATCH", "/storage/v1/b/some-bucket", {"versioning": {"enabled": False}, **gone})
    ]
    assert settled == []
    live = stage.live(BUCKET)
    assert (live["labels"], live["versioning"]) == ({"managed-by-cnrm": "true"}, {"enabled": False})
    assert "lifecycle" not in live
    assert live["softDeletePolicy"]["retentionDurationSeconds"] == "2592000"
    assert live["retentionPolicy"]["retentionPeriod"] == "3600"
    assert _protected(shown) == [
        "spec.softDeletePolicy.retentionDurationSeconds",
        "spec.retentionPolicy.retentionPeriod",
    ]


# --- default-to-gcp-fields: SQLInstance -------------------------------------------------------------------------------


def test_a_listed_field_of_an_instance_is_kept_while_the_spec_is_silent_and_others_are_pruned(stage: Stage) -> None:
    stage.apply(_instance(annotations=MAINTENANCE))
    stage.others("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 3, "hour": 4}}})
    listed_alone = stage.reconcile()
    stage.others("PATCH", INSTANCE, {"settings": {"databaseFlags": [FLAG]}})
    (pruned,) = stage.reconcile()

    assert listed_alone == []
    assert (pruned.method, "databaseFlags" in pruned.body["settings"]) == ("PUT", False)
    live = _settings(stage)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (3, 4)
    assert not live.get("databaseFlags")


def test_a_listed_field_of_an_instance_is_managed_once_the_spec_names_it(stage: Stage) -> None:
    stage.apply(_instance(annotations=MAINTENANCE))
    stage.others("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 3, "hour": 4}}})

    (named,) = stage.apply(_instance({"maintenanceWindow": {"day": 7, "hour": 1}}, annotations=MAINTENANCE))
    stage.others("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 5, "hour": 5}}})
    (put_back,) = stage.reconcile()

    for call in (named, put_back):
        window = call.body["settings"]["maintenanceWindow"]
        assert (call.method, window["day"], window["hour"]) == ("PUT", 7, 1)
    live = _settings(stage)["maintenanceWindow"]
    assert (live["day"], live["hour"]) == (7, 1)


def test_a_listed_field_of_an_instance_is_let_go_when_it_leaves_the_spec_and_others_are_unset(stage: Stage) -> None:
    both = {"databaseFlags": [FLAG], "maintenanceWindow": {"day": 7, "hour": 1}}
    stage.apply(_instance(both, annotations=MAINTENANCE))

    let_go = stage.apply(_instance({"databaseFlags": [FLAG]}, annotations=MAINTENANCE))
    stage.others("PATCH", INSTANCE, {"settings": {"maintenanceWindow": {"day": 5, "hour": 5}}})
    not_put_back = stage.reconcile()
    (unset,) = stage.apply(_instance(annotations=MAINTENANCE))

    assert (let_go, not_put_back) == ([], [])
    assert (unset.method, "databaseFlags" in unset.body["settings"]) == ("PUT", False)
    live = _settings(stage)
    assert (live["maintenanceWindow"]["day"], live["maintenanceWindow"]["hour"]) == (5, 5)
    assert not live.get("databaseFlags")


# --- default-to-gcp-fields: StorageBucket -----------------------------------------------------------------------------


def test_a_listed_field_of_a_bucket_is_kept_while_the_spec_is_silent_and_others_are_pruned(stage: Stage) -> None:
    stage.apply(_bucket(annotations=LIFECYCLE))
    stage.others("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})
    listed_alone = stage.reconcile()
    stage.others("PATCH", BUCKET, {"versioning": {"enabled": True}})
    pruned = stage.reconcile()

    assert listed_alone == []
    assert [(call.method, call.body) for call in pruned] == [("PATCH", {"versioning": {"enabled": False}})]
    live = stage.live(BUCKET)
    assert (live["lifecycle"], live["versioning"]) == ({"rule": [AFTER_A_MONTH]}, {"enabled": False})


def test_a_listed_field_of_a_bucket_is_managed_once_the_spec_names_it(stage: Stage) -> None:
    stage.apply(_bucket(annotations=LIFECYCLE))
    stage.others("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})

    named = stage.apply(_bucket({"lifecycleRule": [AFTER_A_YEAR]}, annotations=LIFECYCLE))
    stage.others("PATCH", BUCKET, {"lifecycle": None})
    put_back = stage.reconcile()

    for calls in (named, put_back):
        assert [(call.method, call.body) for call in calls] == [("PATCH", {"lifecycle": {"rule": [AFTER_A_YEAR]}})]
    assert stage.live(BUCKET)["lifecycle"] == {"rule": [AFTER_A_YEAR]}


def test_a_listed_field_of_a_bucket_is_let_go_when_it_leaves_the_spec_and_others_are_unset(stage: Stage) -> None:
    both = {"lifecycleRule": [AFTER_A_YEAR], "website": {"mainPageSuffix": "index.html"}}
    stage.apply(_bucket(both, annotations=LIFECYCLE))

    let_go = stage.apply(_bucket({"website": {"mainPageSuffix": "index.html"}}, annotations=LIFECYCLE))
    stage.others("PATCH", BUCKET, {"lifecycle": {"rule": [AFTER_A_MONTH]}})
    not_put_back = stage.reconcile()
    unset = stage.apply(_bucket(annotations=LIFECYCLE))

    assert (let_go, not_put_back) == ([], [])
    assert [(call.method, call.body) for call in unset] == [("PATCH", {"website": None})]
    live = stage.live(BUCKET)
    assert (live["lifecycle"], "website" in live) == ({"rule": [AFTER_A_MONTH]}, False)


# --- Adoption ---------------------------------------------------------------------------------------------------------


def test_an_enterprise_plus_instance_with_backups_is_taken_over_without_a_write(stage: Stage) -> None:
    _make_plus(stage)
    before = stage.live(INSTANCE)

    adopted = stage.apply(_instance({"tier": "db-perf-optimized-N-2"}, annotations=IGNORE))

    assert adopted == []
    assert stage.live(INSTANCE) == before


def test_a_silent_spec_takes_neither_edition_nor_backups_from_an_instance_that_it_takes_over(stage: Stage) -> None:
    _make_plus(stage, databaseFlags=[FLAG])
    before = _settings(stage)

    (adopted,) = stage.apply(_instance({"tier": "db-perf-optimized-N-2"}))
    settled = stage.reconcile()

    # A PUT says everything: edition and backups as they were.
    sent = adopted.body["settings"]
    backups = sent["backupConfiguration"]
    assert (adopted.method, sent["edition"], "databaseFlags" in sent) == ("PUT", "ENTERPRISE_PLUS", False)
    assert (backups["enabled"], backups["pointInTimeRecoveryEnabled"], backups["startTime"]) == (True, True, "03:00")
    assert backups["backupRetentionSettings"] == {"retainedBackups": 15, "retentionUnit": "COUNT"}
    assert settled == []
    live = _settings(stage)
    assert (live["edition"], live["tier"]) == ("ENTERPRISE_PLUS", "db-perf-optimized-N-2")
    assert live["backupConfiguration"] == before["backupConfiguration"]
    assert not live.get("databaseFlags")


def _instance(settings: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    said = {"tier": "db-custom-1-3840", **(settings or {})}
    return instance({"databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": said}, **metadata)


def _bucket(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return bucket({"location": "EU", **(spec or {})}, **metadata)


def _settings(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = stage.live(INSTANCE)["settings"]
    return found


def _make_plus(stage: Stage, **settings: Any) -> None:
    body = {"name": "some-instance", "region": "us-central1", "databaseVersion": "POSTGRES_15"}
    stage.others("POST", INSTANCES, {**body, "settings": {**PLUS, **settings}})


def _protected(shown: str) -> list[str]:
    """The paths that a plan calls protected."""
    return [line.split()[1] for line in shown.splitlines() if line.endswith("kept (protected)")]
