"""The plan of a creation lists what the request sends: with the defaults that are always sent, or without any."""

from typing import Any

import pytest

from setpoint.core.plan import Plan
from setpoint.core.values.json_types import Json, Missing
from tests.laws.google.cloud_harness import CloudHarness, manifest, run

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
TIER = "db-custom-1-3840"


def created(document: dict[str, Any]) -> tuple[Plan, list[Any]]:
    """The plan of a resource that does not exist yet, and the bodies of all writes that make it."""
    harness = CloudHarness()
    settings = {"tier": TIER, "edition": "ENTERPRISE"}
    main = {"name": "main", "databaseVersion": "MYSQL_8_0", "region": "us-central1", "settings": settings}
    assert harness.ask("POST", "/sql/v1beta4/projects/some-project/instances", main)
    harness.writes()
    ref = run(harness.store.apply(document)).ref
    plan = run(harness.plan(ref))
    run(harness.step_until_done(ref))
    return plan, [body for method, _, body in harness.writes() if method in ("POST", "PATCH")]


def lines(plan: Plan) -> list[tuple[str, Json, str]]:
    """Path, value and rule of each change of the creation."""
    changes = plan.writes[0].changes
    return [(str(one.path), None if isinstance(one.after, Missing) else one.after, one.rule.value) for one in changes]


def bucket(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    return manifest(STORAGE, "StorageBucket", "some-bucket", spec, annotations=annotations)


def instance(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    declared = {"databaseVersion": "MYSQL_8_0", **spec}
    return manifest(SQL, "SQLInstance", "some-instance", declared, annotations=annotations)


LABEL = ("metadata.labels.managed-by-cnrm", "true", "spec")


def test_a_bucket_is_created_with_its_defaults_and_the_plan_lists_them() -> None:
    plan, [body] = created(bucket({}, versioning={"enabled": True}))

    assert sorted(lines(plan)) == [
        LABEL,
        ("spec.lifecycleRule", [], "default"),
        ("spec.location", "US", "default"),
        ("spec.storageClass", "STANDARD", "default"),
        ("spec.uniformBucketLevelAccess", False, "default"),
        ("spec.versioning.enabled", True, "spec"),
    ]
    assert body == {
        "name": "some-bucket",
        "labels": {"managed-by-cnrm": "true"},
        "lifecycle": {"rule": []},
        "location": "US",
        "storageClass": "STANDARD",
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
        "versioning": {"enabled": True},
    }


def test_a_bucket_that_ignores_unspecified_fields_is_created_with_the_fields_of_its_author() -> None:
    plan, [body] = created(bucket(IGNORE, versioning={"enabled": True}))

    assert sorted(lines(plan)) == [LABEL, ("spec.versioning.enabled", True, "spec")]
    assert body == {
        "name": "some-bucket",
        "labels": {"managed-by-cnrm": "true"},
        "versioning": {"enabled": True},
    }


def test_a_listed_field_of_a_bucket_is_left_to_the_service_from_the_beginning() -> None:
    plan, [body] = created(bucket({"cnrm.cloud.google.com/default-to-gcp-fields": "spec.location,spec.lifecycleRule"}))

    assert sorted(lines(plan)) == [
        LABEL,
        ("spec.storageClass", "STANDARD", "default"),
        ("spec.uniformBucketLevelAccess", False, "default"),
    ]
    assert sorted(body) == ["iamConfiguration", "labels", "name", "storageClass"]


def test_the_lock_of_a_retention_policy_is_a_write_of_its_own_in_the_plan() -> None:
    plan, [body, _] = created(bucket(IGNORE, retentionPolicy={"retentionPeriod": 100, "isLocked": True}))

    assert [(write.name, [str(one.path) for one in write.changes]) for write in plan.writes] == [
        ("create", ["spec.retentionPolicy.retentionPeriod", "metadata.labels.managed-by-cnrm"]),
        ("lock", ["spec.retentionPolicy.isLocked"]),
    ]
    assert body["retentionPolicy"] == {"retentionPeriod": "100"}


def test_an_instance_is_created_with_its_defaults_and_the_plan_lists_them() -> None:
    plan, [body, *_] = created(instance({}, settings={"tier": TIER}))

    assert sorted(lines(plan)) == [
        LABEL,
        ("spec.databaseVersion", "MYSQL_8_0", "spec"),
        ("spec.instanceType", "CLOUD_SQL_INSTANCE", "default"),
        ("spec.settings.activationPolicy", "ALWAYS", "default"),
        ("spec.settings.availabilityType", "ZONAL", "default"),
        ("spec.settings.connectorEnforcement", "NOT_REQUIRED", "default"),
        ("spec.settings.diskAutoresize", True, "default"),
        ("spec.settings.diskType", "PD_SSD", "default"),
        ("spec.settings.edition", "ENTERPRISE", "default"),
        ("spec.settings.ipConfiguration.ipv4Enabled", True, "default"),
        ("spec.settings.ipConfiguration.sslMode", "ALLOW_UNENCRYPTED_AND_ENCRYPTED", "default"),
        ("spec.settings.pricingPlan", "PER_USE", "default"),
        ("spec.settings.replicationType", "SYNCHRONOUS", "default"),
        ("spec.settings.tier", TIER, "spec"),
    ]
    assert body == {
        "kind": "sql#instance",
        "name": "some-instance",
        "databaseVersion": "MYSQL_8_0",
        "instanceType": "CLOUD_SQL_INSTANCE",
        "settings": {
            "kind": "sql#settings",
            "activationPolicy": "ALWAYS",
            "availabilityType": "ZONAL",
            "connectorEnforcement": "NOT_REQUIRED",
            "dataDiskType": "PD_SSD",
            "edition": "ENTERPRISE",
            "ipConfiguration": {"ipv4Enabled": True, "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED"},
            "pricingPlan": "PER_USE",
            "replicationType": "SYNCHRONOUS",
            "storageAutoResize": True,
            "tier": TIER,
            "userLabels": {"managed-by-cnrm": "true"},
        },
    }


def test_an_instance_that_ignores_unspecified_fields_is_created_with_the_fields_of_its_author() -> None:
    settings = {"tier": TIER, "backupConfiguration": {"enabled": True}, "ipConfiguration": {"ipv4Enabled": True}}
    plan, [body, *_] = created(instance(IGNORE, settings=settings, rootPassword={"value": "hunter2 Sesame"}))

    assert sorted(lines(plan)) == [
        LABEL,
        ("spec.databaseVersion", "MYSQL_8_0", "spec"),
        ("spec.rootPassword", "(redacted)", "spec"),
        ("spec.settings.backupConfiguration.enabled", True, "spec"),
        ("spec.settings.ipConfiguration.ipv4Enabled", True, "spec"),
        ("spec.settings.tier", TIER, "spec"),
    ]
    assert body == {
        "kind": "sql#instance",
        "name": "some-instance",
        "databaseVersion": "MYSQL_8_0",
        "rootPassword": "[redacted]",
        "settings": {
            "kind": "sql#settings",
            "backupConfiguration": {"enabled": True, "kind": "sql#backupConfiguration"},
            "ipConfiguration": {"ipv4Enabled": True},
            "tier": TIER,
            "userLabels": {"managed-by-cnrm": "true"},
        },
    }


def test_the_maintenance_version_of_a_new_instance_is_a_write_of_its_own_in_the_plan() -> None:
    version = "MYSQL_8_0_41.R20251004.01_07"
    plan, _ = created(instance(IGNORE, settings={"tier": TIER}, maintenanceVersion=version))

    assert [(write.name, [str(one.path) for one in write.changes]) for write in plan.writes] == [
        ("create", ["spec.settings.tier", "spec.databaseVersion", "metadata.labels.managed-by-cnrm"]),
        ("maintenance version", ["spec.maintenanceVersion"]),
    ]


@pytest.mark.parametrize("annotations", [{}, IGNORE])
def test_a_database_is_created_with_the_fields_of_its_author(annotations: dict[str, str]) -> None:
    spec: dict[str, Any] = {"instanceRef": {"external": "main"}, "charset": "utf8mb4"}
    plan, [body] = created(manifest(SQL, "SQLDatabase", "shop", spec, annotations=annotations))

    assert lines(plan) == [("spec.charset", "utf8mb4", "spec")]
    assert body == {"charset": "utf8mb4", "instance": "main", "name": "shop"}


@pytest.mark.parametrize("annotations", [{}, IGNORE])
def test_a_user_is_created_with_the_fields_of_its_author(annotations: dict[str, str]) -> None:
    policy = {"allowedFailedAttempts": 3, "enableFailedAttemptsCheck": True}
    spec: dict[str, Any] = {
        "instanceRef": {"external": "main"},
        "password": {"value": "hunter2 Sesame"},
        "passwordPolicy": policy,
    }
    plan, [body] = created(manifest(SQL, "SQLUser", "app", spec, annotations=annotations))

    assert sorted(lines(plan)) == [
        ("spec.password", "(redacted)", "spec"),
        ("spec.passwordPolicy.allowedFailedAttempts", 3, "spec"),
        ("spec.passwordPolicy.enableFailedAttemptsCheck", True, "spec"),
    ]
    assert body == {"instance": "main", "name": "app", "password": "[redacted]", "passwordPolicy": policy}
