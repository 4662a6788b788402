"""Request bodies of a SQLInstance, field by field."""

from typing import Any

import pytest

from setpoint.kinds.gcp.sql_instance.requests import clone_body
from tests.kinds.effective_states import effective_over
from tests.kinds.instance_bodies import (
    ALWAYS,
    BACKUPS,
    KIND,
    LIVE,
    TIER,
    inserted,
    intent_for,
    manifest,
    observed,
    replaced,
)

# --- Insert ----------------------------------------------------------------------------------------------------------


def test_a_minimal_instance_is_inserted_with_exactly_the_fields_that_are_always_sent() -> None:
    assert inserted({}, region="us-central1") == {
        "databaseVersion": "MYSQL_8_0",
        "instanceType": "CLOUD_SQL_INSTANCE",
        "kind": "sql#instance",
        "name": "i",
        "region": "us-central1",
        "settings": ALWAYS,
    }


INSERTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # A declared zero is sent.
    ({"deletionProtectionEnabled": False}, {"deletionProtectionEnabled": False}),
    ({"diskAutoresizeLimit": 0}, {"storageAutoResizeLimit": "0"}),
    ({"diskAutoresize": False}, {"storageAutoResize": False}),
    ({"dataCacheConfig": {"dataCacheEnabled": False}}, {"dataCacheConfig": {"dataCacheEnabled": False}}),
    ({"crashSafeReplication": False}, {"crashSafeReplicationEnabled": False}),
    (
        {"maintenanceWindow": {"day": 1, "hour": 0}},
        {"maintenanceWindow": {"day": 1, "hour": 0, "kind": "sql#maintenanceWindow"}},
    ),
    # Numbers that are text in JSON, other names, lists of one.
    ({"diskSize": 20}, {"dataDiskSizeGb": "20"}),
    ({"diskType": "PD_HDD"}, {"dataDiskType": "PD_HDD"}),
    (
        {"denyMaintenancePeriod": {"startDate": "a", "endDate": "b", "time": "c"}},
        {"denyMaintenancePeriods": [{"startDate": "a", "endDate": "b", "time": "c"}]},
    ),
    (
        {"activeDirectoryConfig": {"domain": "d"}},
        {"activeDirectoryConfig": {"domain": "d", "kind": "sql#activeDirectoryConfig"}},
    ),
    ({"advancedMachineFeatures": {"threadsPerCore": 1}}, {"advancedMachineFeatures": {"threadsPerCore": 1}}),
    ({"databaseFlags": [{"name": "a", "value": ""}]}, {"databaseFlags": [{"name": "a", "value": ""}]}),
    (
        {"sqlServerAuditConfig": {"bucketRef": {"external": "b"}, "retentionInterval": "86400s"}},
        {
            "sqlServerAuditConfig": {
                "bucket": "gs://b",
                "kind": "sql#sqlServerAuditConfig",
                "retentionInterval": "86400s",
            }
        },
    ),
    (
        {"passwordValidationPolicy": {"enablePasswordPolicy": False, "minLength": 0}},
        {"passwordValidationPolicy": {"enablePasswordPolicy": False, "minLength": 0}},
    ),
    # Declared backups have a retention, which depends on the edition.
    (
        {"backupConfiguration": {"enabled": True}},
        {
            "backupConfiguration": {
                "backupRetentionSettings": {"retainedBackups": 7, "retentionUnit": "COUNT"},
                "enabled": True,
                "kind": "sql#backupConfiguration",
            }
        },
    ),
    (
        {"backupConfiguration": {"enabled": False}, "edition": "ENTERPRISE_PLUS"},
        {
            "backupConfiguration": {
                "backupRetentionSettings": {"retainedBackups": 15, "retentionUnit": "COUNT"},
                "enabled": False,
                "kind": "sql#backupConfiguration",
            },
            "edition": "ENTERPRISE_PLUS",
        },
    ),
    # A declared zero is sent here, too.
    (
        {"backupConfiguration": {"backupRetentionSettings": {"retainedBackups": 0}}},
        {
            "backupConfiguration": {
                "backupRetentionSettings": {"retainedBackups": 0, "retentionUnit": "COUNT"},
                "kind": "sql#backupConfiguration",
            }
        },
    ),
    # Declared insights have plans per minute.
    (
        {"insightsConfig": {"queryInsightsEnabled": True}},
        {"insightsConfig": {"queryInsightsEnabled": True, "queryPlansPerMinute": 5}},
    ),
    ({"insightsConfig": {"queryPlansPerMinute": 0}}, {"insightsConfig": {"queryPlansPerMinute": 0}}),
    # A declared network has a private path, and the SSL mode that is equivalent to the older field.
    (
        {"ipConfiguration": {"ipv4Enabled": False}},
        {
            "ipConfiguration": {
                "enablePrivatePathForGoogleCloudServices": False,
                "ipv4Enabled": False,
                "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
            }
        },
    ),
    (
        {"ipConfiguration": {"requireSsl": True}},
        {
            "ipConfiguration": {
                "enablePrivatePathForGoogleCloudServices": False,
                "ipv4Enabled": True,
                "requireSsl": True,
                "sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED",
            }
        },
    ),
    (
        {
            "ipConfiguration": {
                "authorizedNetworks": [{"name": "n", "value": "v"}],
                "pscConfig": [{"pscEnabled": True}],
                "privateNetworkRef": {"external": "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"},
            }
        },
        {
            "ipConfiguration": {
                "authorizedNetworks": [{"kind": "sql#aclEntry", "name": "n", "value": "v"}],
                "enablePrivatePathForGoogleCloudServices": False,
                "ipv4Enabled": True,
                "privateNetwork": "projects/p/global/networks/n",
                "pscConfig": {"pscEnabled": True},
                "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
            }
        },
    ),
]


@pytest.mark.parametrize(("declared", "sent"), INSERTED, ids=[str(declared) for declared, _ in INSERTED])
def test_settings_are_inserted_in_the_terms_of_the_api(declared: dict[str, Any], sent: dict[str, Any]) -> None:
    assert inserted(declared)["settings"] == {**ALWAYS, **sent}


def test_require_ssl_means_encrypted_only_on_sql_server() -> None:
    sent = inserted({"ipConfiguration": {"requireSsl": True}}, databaseVersion="SQLSERVER_2022_EXPRESS")

    assert sent["settings"]["ipConfiguration"]["sslMode"] == "ENCRYPTED_ONLY"


def test_fields_beside_the_settings_are_inserted_in_the_terms_of_the_api() -> None:
    sent = inserted(
        {},
        instanceType="READ_REPLICA_INSTANCE",
        masterInstanceRef={"external": "primary"},
        encryptionKMSCryptoKeyRef={"external": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        rootPassword={"value": "s3cret"},
        replicaConfiguration={"failoverTarget": False, "masterHeartbeatPeriod": 7, "password": {"value": "p"}},
        replicationCluster={"failoverDrReplicaRef": {"external": "other"}},
    )

    assert {name: value for name, value in sent.items() if name != "settings"} == {
        "databaseVersion": "MYSQL_8_0",
        "diskEncryptionConfiguration": {
            "kind": "sql#diskEncryptionConfiguration",
            "kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        },
        "instanceType": "READ_REPLICA_INSTANCE",
        "kind": "sql#instance",
        "masterInstanceName": "primary",
        "name": "i",
        "replicaConfiguration": {
            "failoverTarget": False,
            "kind": "sql#replicaConfiguration",
            "mysqlReplicaConfiguration": {
                "kind": "sql#mysqlReplicaConfiguration",
                "masterHeartbeatPeriod": "7",
                "password": "p",
            },
        },
        "replicationCluster": {"failoverDrReplicaName": "other"},
        "rootPassword": "s3cret",
    }


def test_only_declared_fields_are_inserted_under_the_ignore_policy() -> None:
    ignore = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}

    sent = inserted({}, annotations=ignore)

    assert sent["settings"] == {"kind": "sql#settings", "tier": TIER, "userLabels": {"managed-by-cnrm": "true"}}


def test_a_clone_request_has_the_location_and_the_point_in_time() -> None:
    source = {
        "sqlInstanceRef": {"external": "source"},
        "binLogCoordinates": {"binLogFileName": "f", "binLogPosition": 9},
        "databaseNames": ["d"],
    }
    declared = {
        "ipConfiguration": {"allocatedIpRange": "range"},
        "locationPreference": {"zone": "z", "secondaryZone": "y"},
    }
    intent = intent_for(manifest(declared, cloneSource=source))

    assert clone_body(intent, effective_over(KIND, intent).tree) == {
        "cloneContext": {
            "allocatedIpRange": "range",
            "binLogCoordinates": {"binLogFileName": "f", "binLogPosition": "9", "kind": "sql#binLogCoordinates"},
            "databaseNames": ["d"],
            "destinationInstanceName": "i",
            "kind": "sql#cloneContext",
            "preferredSecondaryZone": "y",
            "preferredZone": "z",
        }
    }


# --- Full update -----------------------------------------------------------------------------------------------------


def test_a_full_update_is_the_insert_with_the_values_that_the_service_chose() -> None:
    sent = replaced(manifest({"pricingPlan": "PACKAGE"}), observed({}))

    backups = {name: value for name, value in BACKUPS.items() if name != "enabled"}
    chosen = {"backupConfiguration": backups, "dataDiskSizeGb": "10", "locationPreference": LIVE["locationPreference"]}
    assert sent["settings"] == {**ALWAYS, **chosen, "pricingPlan": "PACKAGE", "settingsVersion": "5"}
    assert sent["maintenanceVersion"] == "M.1"


def test_enabled_backups_are_sent_as_a_whole() -> None:
    live = {**BACKUPS, "enabled": True, "binaryLogEnabled": True, "location": "eu", "backupTier": "STANDARD"}

    assert replaced(manifest({}), observed({"backupConfiguration": live}))["settings"]["backupConfiguration"] == live


def test_declared_backups_are_sent_as_declared_with_their_protections() -> None:
    live = {**BACKUPS, "enabled": True, "binaryLogEnabled": True, "transactionLogRetentionDays": 3}

    sent = replaced(manifest({"backupConfiguration": {"location": "eu"}}), observed({"backupConfiguration": live}))

    assert sent["settings"]["backupConfiguration"] == {
        "backupRetentionSettings": {"retainedBackups": 7, "retentionUnit": "COUNT"},
        "binaryLogEnabled": True,
        "enabled": True,
        "kind": "sql#backupConfiguration",
        "location": "eu",
        "transactionLogRetentionDays": 3,
    }


def test_enterprise_plus_is_sent_an_explicit_false() -> None:
    live = {"edition": "ENTERPRISE_PLUS", "dataCacheConfig": {"dataCacheEnabled": False}}

    sent = replaced(manifest({}), observed(live))["settings"]

    assert sent["edition"] == "ENTERPRISE_PLUS"
    assert sent["dataCacheConfig"] == {"dataCacheEnabled": False}
    assert sent["backupConfiguration"]["enabled"] is False


def test_the_size_of_a_disk_without_resize_is_not_sent() -> None:
    assert "dataDiskSizeGb" not in replaced(manifest({"diskAutoresize": False}), observed({}))["settings"]


def test_the_root_password_is_sent_with_every_full_update() -> None:
    assert replaced(manifest({}, rootPassword={"value": "s3cret"}), observed({}))["rootPassword"] == "s3cret"
