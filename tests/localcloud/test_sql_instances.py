"""Instances: defaults, outputs, replacement, patch and validation."""

import pytest

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.schema import JsonBody, member, merge_patch
from tests.localcloud.requests import (
    DB,
    INSTANCES,
    LOGGED,
    MYSQL,
    POSTGRES,
    create,
    done,
    error_message,
    get,
    held_cloud,
    ok,
    refused,
)


def test_a_missing_instance_has_google_s_error(cloud: Cloud) -> None:
    answer = cloud.call("GET", f"{DB}?alt=json&prettyPrint=false")

    assert answer.status == 404
    assert answer.body == {
        "error": {
            "code": 404,
            "errors": [
                {
                    "domain": "global",
                    "message": "The Cloud SQL instance does not exist.",
                    "reason": "instanceDoesNotExist",
                }
            ],
            "message": "The Cloud SQL instance does not exist.",
        }
    }


def test_a_new_instance_has_its_outputs(cloud: Cloud) -> None:
    live = create(cloud, POSTGRES)

    assert live["connectionName"] == "acme:us-central1:db"
    assert live["selfLink"] == "https://sqladmin.googleapis.com/sql/v1beta4/projects/acme/instances/db"
    assert live["gceZone"] == "us-central1-a"
    assert [address["type"] for address in live["ipAddresses"]] == ["PRIMARY", "OUTGOING"]
    assert live["serverCaCert"]["instance"] == "db"
    assert live["serviceAccountEmailAddress"].endswith("@gcp-sa-cloud-sql.iam.gserviceaccount.com")
    assert live["createTime"] == "2026-01-01T00:00:00.000Z"
    assert [one["name"] for one in live["upgradableDatabaseVersions"]] == ["POSTGRES_16", "POSTGRES_17", "POSTGRES_18"]


def test_a_private_network_gives_a_private_address_alone_when_the_public_one_is_off(cloud: Cloud) -> None:
    network = {"ipv4Enabled": False, "privateNetwork": "projects/acme/global/networks/net"}
    live = create(cloud, MYSQL, {"settings": {"ipConfiguration": network}})

    assert [address["type"] for address in live["ipAddresses"]] == ["PRIVATE"]


def test_private_service_connect_has_an_attachment_and_a_name(cloud: Cloud) -> None:
    network = {"ipv4Enabled": False, "pscConfig": {"pscEnabled": True, "allowedConsumerProjects": ["acme"]}}
    live = create(cloud, MYSQL, {"settings": {"ipConfiguration": network}})

    assert live["pscServiceAttachmentLink"].startswith("projects/")
    assert live["dnsName"].endswith(".us-central1.sql.goog.")
    assert live["ipAddresses"] == []


def test_enterprise_plus_has_defaults_of_its_own(cloud: Cloud) -> None:
    live = create(cloud, MYSQL, {"settings": {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}})

    assert live["settings"]["dataDiskSizeGb"] == "20"
    assert live["settings"]["storageAutoResize"] is True
    assert live["settings"]["dataCacheConfig"] == {"dataCacheEnabled": True}
    assert live["settings"]["backupConfiguration"] == {
        "backupRetentionSettings": {"retainedBackups": 15, "retentionUnit": "COUNT"},
        "backupTier": "STANDARD",
        "binaryLogEnabled": True,
        "enabled": True,
        "kind": "sql#backupConfiguration",
        "startTime": "12:00",
        "transactionLogRetentionDays": 14,
        "transactionalLogStorageState": "CLOUD_STORAGE",
    }


@pytest.mark.parametrize(
    ("version", "edition"),
    [("MYSQL_8_0", "ENTERPRISE"), ("MYSQL_8_4", "ENTERPRISE_PLUS"), ("POSTGRES_16", "ENTERPRISE_PLUS")],
)
def test_new_versions_default_to_the_higher_edition(cloud: Cloud, version: str, edition: str) -> None:
    tier = "db-custom-1-3840" if edition == "ENTERPRISE" else "db-perf-optimized-N-2"
    live = create(cloud, {"name": "db", "databaseVersion": version, "settings": {"tier": tier}})

    assert live["settings"]["edition"] == edition


def test_required_ssl_decides_the_mode_by_engine(cloud: Cloud) -> None:
    live = create(cloud, MYSQL, {"settings": {"ipConfiguration": {"requireSsl": True}}})

    assert live["settings"]["ipConfiguration"]["sslMode"] == "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"


def test_a_taken_name_is_refused(cloud: Cloud) -> None:
    create(cloud)

    assert refused(cloud.call("POST", INSTANCES, MYSQL)) == (409, "instanceAlreadyExists")


def test_the_name_of_a_deleted_instance_is_free_at_once_unless_it_is_reserved() -> None:
    free, reserved = held_cloud(), held_cloud(name_reserved_seconds=600.0)
    for cloud in (free, reserved):
        create(cloud)
        done(cloud, "DELETE", DB)

    assert free.call("POST", INSTANCES, MYSQL).status == 200
    assert refused(reserved.call("POST", INSTANCES, MYSQL)) == (409, "instanceAlreadyExists")
    reserved.advance(600)
    assert reserved.call("POST", INSTANCES, MYSQL).status == 200


INVALID_INSTANCES: list[tuple[JsonBody, str]] = [
    ({"name": "DB"}, "Invalid instance name"),
    ({"name": None}, "Invalid instance name"),
    ({"name": "x" * 98}, "Invalid instance name"),
    ({"databaseVersion": "MYSQL_9_9"}, "Invalid database version"),
    ({"maintenanceVersion": "MYSQL_8_0_41.R20251004.01_07"}, "cannot be chosen when an instance is created"),
    ({"settings": {"tier": None}}, "Missing parameter: settings.tier"),
    ({"settings": {"tier": "db-perf-optimized-N-2"}}, "Invalid Tier (db-perf-optimized-N-2) for (ENTERPRISE) Edition"),
    ({"settings": {"tier": "db-c4a-highmem-4"}}, "Invalid Tier (db-c4a-highmem-4) for (ENTERPRISE) Edition"),
    ({"settings": {"edition": "ENTERPRISE_PLUS"}}, "Invalid Tier (db-custom-1-3840) for (ENTERPRISE_PLUS) Edition"),
    ({"databaseVersion": "MYSQL_5_7", "settings": {"edition": "ENTERPRISE_PLUS"}}, "not available for MYSQL_5_7"),
    ({"settings": {"dataCacheConfig": {"dataCacheEnabled": True}}}, "Data cache is only supported"),
    ({"settings": {"dataDiskSizeGb": "9"}}, "must be at least 10 GB"),
    ({"settings": {"storageAutoResizeLimit": "5"}}, "is below the data disk size"),
    ({"settings": {"backupConfiguration": {"binaryLogEnabled": True}}}, "Binary log can only be enabled"),
    ({"settings": {"availabilityType": "REGIONAL"}}, "must have backups and the binary log enabled"),
    ({"settings": {"backupConfiguration": {"transactionLogRetentionDays": 8}}}, "between 1 and 7"),
    ({"settings": {"backupConfiguration": {"backupRetentionSettings": {"retainedBackups": 0}}}}, "between 1 and 365"),
    ({"settings": {"backupConfiguration": {"startTime": "25:00"}}}, "Invalid backup start time"),
    ({"settings": {"ipConfiguration": {"ipv4Enabled": False}}}, "At least one of public IP, private IP"),
    ({"settings": {"ipConfiguration": {"authorizedNetworks": [{"name": "all"}]}}}, "must have a value"),
    ({"settings": {"locationPreference": {"zone": "us-east1-b"}}}, "is not in the region us-central1"),
    ({"settings": {"databaseFlags": [{"name": "a"}, {"name": "a"}]}}, "a name of its own"),
    ({"settings": {"userLabels": {"Team": "a"}}}, "Invalid label key (Team)"),
    ({"settings": {"userLabels": {"team": "A"}}}, "Invalid value (A) of the label team"),
    ({"instanceType": "READ_REPLICA_INSTANCE"}, "must have a masterInstanceName"),
    ({"databaseVersion": "SQLSERVER_2019_STANDARD"}, "must be created with a root password"),
]


@pytest.mark.parametrize(("change", "problem"), INVALID_INSTANCES)
def test_an_invalid_instance_is_refused(cloud: Cloud, change: JsonBody, problem: str) -> None:
    answer = cloud.call("POST", INSTANCES, merge_patch(MYSQL, change))

    assert refused(answer) == (400, "invalid")
    assert problem in error_message(answer)
    assert cloud.call("GET", DB).status == 404


def test_recovery_to_a_point_in_time_needs_backups_on_postgres(cloud: Cloud) -> None:
    change = {"settings": {"backupConfiguration": {"pointInTimeRecoveryEnabled": True}}}

    assert "when backups are enabled" in error_message(cloud.call("POST", INSTANCES, merge_patch(POSTGRES, change)))


def test_a_regional_mysql_with_its_binary_log_is_valid(cloud: Cloud) -> None:
    place = {"zone": "us-central1-a", "secondaryZone": "us-central1-b"}
    regional = {"settings": {"availabilityType": "REGIONAL", "locationPreference": place}}

    assert create(cloud, merge_patch(MYSQL, LOGGED), regional)["secondaryGceZone"] == "us-central1-b"


IMPOSSIBLE_CHANGES: list[tuple[JsonBody, str]] = [
    (
        {"region": "us-east1"},
        "region cannot change from us-central1 to us-east1",
    ),
    ({"name": "other"}, "name cannot change from db to other"),
    ({"instanceType": "ON_PREMISES_INSTANCE"}, "instanceType cannot change"),
    ({"masterInstanceName": "other", "instanceType": "READ_REPLICA_INSTANCE"}, "instanceType cannot change"),
    ({"settings": {"dataDiskType": "PD_HDD"}}, "settings.dataDiskType cannot change from PD_SSD to PD_HDD"),
    ({"settings": {"collation": "x"}}, "settings.collation cannot change from None to x"),
    ({"settings": {"timeZone": "UTC"}}, "settings.timeZone cannot change"),
    ({"settings": {"dataDiskSizeGb": "19"}}, "settings.dataDiskSizeGb cannot change from 20 to 19"),
    ({"databaseVersion": "MYSQL_5_7"}, "The database version cannot change from MYSQL_8_0 to MYSQL_5_7"),
    ({"databaseVersion": "POSTGRES_15"}, "The database version cannot change from MYSQL_8_0 to POSTGRES_15"),
    ({"maintenanceVersion": "MYSQL_8_0_40.R20200101.01_00"}, "cannot change from MYSQL_8_0_41.R20251004.01_07 back to"),
    ({"maintenanceVersion": "POSTGRES_15_7.R20300101.01_00"}, "is not one of MYSQL_8_0"),
    (
        {"maintenanceVersion": "MYSQL_8_0_43.R20300101.01_00", "settings": {"tier": "db-f1-micro"}},
        "cannot change together with anything else",
    ),
]


@pytest.mark.parametrize(("change", "problem"), IMPOSSIBLE_CHANGES)
@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_an_unsupported_change_is_refused_with_its_field(
    cloud: Cloud, method: str, change: JsonBody, problem: str
) -> None:
    before = create(cloud, MYSQL, {"settings": {"dataDiskSizeGb": "20"}})
    body = change if method == "PATCH" else merge_patch(before, change)
    answer = cloud.call(method, DB, body)

    assert refused(answer) == (400, "invalid")
    assert problem in error_message(answer)
    assert get(cloud, DB) == before


def test_a_replacement_resets_unspecified_fields_to_their_defaults(cloud: Cloud) -> None:
    rich = {"userLabels": {"a": "b"}, "deletionProtectionEnabled": True, "databaseFlags": [{"name": "f", "value": "1"}]}
    create(cloud, merge_patch(MYSQL, LOGGED), {"settings": rich})
    done(cloud, "PUT", DB, MYSQL)
    settings = get(cloud, DB)["settings"]

    assert settings["deletionProtectionEnabled"] is False
    assert settings["backupConfiguration"]["enabled"] is False
    assert "userLabels" not in settings
    assert "databaseFlags" not in settings


def test_a_replacement_keeps_unspecified_immutable_fields(cloud: Cloud) -> None:
    create(cloud, MYSQL, {"settings": {"dataDiskSizeGb": "30", "locationPreference": {"zone": "us-central1-f"}}})
    done(cloud, "PUT", DB, {"settings": {"tier": "db-f1-micro"}})
    live = get(cloud, DB)

    assert (live["region"], live["databaseVersion"], live["gceZone"]) == ("us-central1", "MYSQL_8_0", "us-central1-f")
    assert (live["settings"]["dataDiskSizeGb"], live["settings"]["tier"]) == ("30", "db-f1-micro")


def test_a_patch_merges_and_null_resets_to_the_default(cloud: Cloud) -> None:
    create(cloud, MYSQL, {"settings": {"userLabels": {"a": "1", "b": "2"}, "activationPolicy": "ON_DEMAND"}})
    done(cloud, "PATCH", DB, {"settings": {"userLabels": {"a": None, "c": "3"}, "activationPolicy": None}})
    settings = get(cloud, DB)["settings"]

    assert settings["userLabels"] == {"b": "2", "c": "3"}
    assert settings["activationPolicy"] == "ALWAYS"


def test_a_new_edition_sets_its_retention_unless_the_patch_names_it(cloud: Cloud) -> None:
    create(cloud, POSTGRES)
    plus = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}
    done(cloud, "PATCH", DB, {"settings": {**plus, "backupConfiguration": {"transactionLogRetentionDays": 3}}})
    settings = get(cloud, DB)["settings"]

    assert settings["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"] == 15
    assert settings["backupConfiguration"]["transactionLogRetentionDays"] == 3
    assert settings["backupConfiguration"]["enabled"] is False
    assert settings["dataDiskSizeGb"] == "10"


def test_a_major_upgrade_sets_the_maintenance_version(cloud: Cloud) -> None:
    create(cloud, POSTGRES)
    done(cloud, "PATCH", DB, {"databaseVersion": "POSTGRES_16"})
    live = get(cloud, DB)

    assert live["databaseInstalledVersion"] == "POSTGRES_16_3"
    assert live["maintenanceVersion"] == "POSTGRES_16_3.R20240527.01_10"


def test_a_newer_maintenance_version_alone_is_accepted(cloud: Cloud) -> None:
    create(cloud)
    done(cloud, "PATCH", DB, {"maintenanceVersion": "MYSQL_8_0_43.R20300101.01_00"})

    assert get(cloud, DB)["maintenanceVersion"] == "MYSQL_8_0_43.R20300101.01_00"


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_an_old_settings_version_is_refused_as_stale(cloud: Cloud, method: str) -> None:
    before = create(cloud)
    done(cloud, "PATCH", DB, {"settings": {"tier": "db-f1-micro"}})
    answer = cloud.call(method, DB, before)

    assert refused(answer) == (412, "staleData")
    assert member(get(cloud, DB), "settings.settingsVersion") == "2"


def test_an_empty_patch_is_refused(cloud: Cloud) -> None:
    create(cloud)

    assert refused(cloud.call("PATCH", DB, {})) == (400, "invalid")


def test_a_protected_instance_can_be_deleted_once_unprotected(cloud: Cloud) -> None:
    create(cloud, MYSQL, {"settings": {"deletionProtectionEnabled": True}})
    protected = refused(cloud.call("DELETE", DB))
    done(cloud, "PATCH", DB, {"settings": {"deletionProtectionEnabled": False}})
    done(cloud, "DELETE", DB)

    assert protected == (400, "instanceIsDeletionProtected")
    assert refused(cloud.call("GET", DB)) == (404, "instanceDoesNotExist")


def test_secrets_are_never_returned(cloud: Cloud) -> None:
    replica = {"mysqlReplicaConfiguration": {"username": "me", "password": "hunter2"}}
    live = create(cloud, MYSQL, {"rootPassword": "hunter2", "replicaConfiguration": replica})

    assert "hunter2" not in str(live)
    assert live["replicaConfiguration"]["mysqlReplicaConfiguration"]["username"] == "me"


def test_projects_do_not_see_each_other(cloud: Cloud) -> None:
    create(cloud)

    assert get(cloud, "/sql/v1beta4/projects/rival/instances") == {"kind": "sql#instancesList"}
    assert cloud.call("GET", "/sql/v1beta4/projects/rival/instances/db").status == 404


def test_a_query_parameter_that_the_method_does_not_have_is_refused(cloud: Cloud) -> None:
    assert refused(cloud.call("GET", f"{INSTANCES}?max_results=5")) == (400, "invalid")
    assert refused(cloud.call("GET", f"{INSTANCES}?maxResults=0")) == (400, "invalid")
    assert ok(cloud.call("GET", f"{INSTANCES}?maxResults=5&filter=ignored"))
