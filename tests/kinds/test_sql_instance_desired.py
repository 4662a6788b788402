"""The effective desired state of a SQLInstance, typed: spec over live, neither of them changed."""

from typing import Any

import msgspec
import pytest

from setpoint.core.schema.policy import IGNORE, PRUNE, FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.kinds.gcp.sql_instance import (
    SqlInstance,
    SqlInstanceSpec,
    SqlInstanceTree,
)
from setpoint.kinds.gcp.sql_instance.effective import effective_instance
from tests.kinds.effective_states import instance_as_spec


def spec(settings: dict[str, Any] | None = None, **fields: Any) -> SqlInstanceSpec:
    return msgspec.convert({**fields, "settings": {"tier": "small", **(settings or {})}}, SqlInstanceSpec)


def policy(**annotations: str) -> FieldPolicy:
    found = {f"cnrm.cloud.google.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return FieldPolicy.parse(found, shape_of(SqlInstanceTree))


def desired_instance(declared: SqlInstanceSpec, live: SqlInstanceSpec | Missing, rules: FieldPolicy) -> SqlInstanceSpec:
    before = live if isinstance(live, Missing) else SqlInstanceTree(spec=live)
    return effective_instance(SqlInstanceTree(spec=declared), before, rules).state.spec


def desired(declared: SqlInstanceSpec, live: SqlInstanceSpec, rules: FieldPolicy) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(desired_instance(declared, live, rules))
    return result


LISTED = policy(default_to_gcp_fields="spec.settings.pricingPlan,spec.settings.insightsConfig.queryStringLength")
UNMANAGED = policy(
    unmanaged="spec.settings.edition,spec.settings.databaseFlags,spec.settings.backupConfiguration.enabled"
)

ON = {"enabled": True, "pointInTimeRecoveryEnabled": True, "startTime": "03:00"}
FLAGS = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
NETWORK = {"name": "n", "value": "10.0.0.0/8", "expirationTime": "2099-01-01T00:00:00Z"}
BARE = {"name": "n", "value": "10.0.0.0/8"}
TRUSTED = "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"


def acl(*entries: dict[str, str]) -> dict[str, Any]:
    return {"ipConfiguration": {"authorizedNetworks": list(entries)}}


CASES: list[tuple[dict[str, Any], dict[str, Any], FieldPolicy, str, Any]] = [
    # A value, and the default of an unspecified field.
    ({}, {"pricingPlan": "PACKAGE"}, PRUNE, "pricingPlan", "PER_USE"),
    ({}, {"pricingPlan": "PACKAGE"}, IGNORE, "pricingPlan", "PACKAGE"),
    ({}, {"pricingPlan": "PACKAGE"}, LISTED, "pricingPlan", "PACKAGE"),
    ({"pricingPlan": "PER_USE"}, {"pricingPlan": "PACKAGE"}, LISTED, "pricingPlan", "PER_USE"),
    ({"tier": "big"}, {}, IGNORE, "tier", "big"),
    # Nested fields.
    (
        {"insightsConfig": {"queryInsightsEnabled": True}},
        {"insightsConfig": {"queryStringLength": 2048}},
        PRUNE,
        "insightsConfig.queryStringLength",
        1024,
    ),
    (
        {"insightsConfig": {"queryInsightsEnabled": True}},
        {"insightsConfig": {"queryStringLength": 2048}},
        IGNORE,
        "insightsConfig.queryStringLength",
        2048,
    ),
    (
        {"insightsConfig": {"queryInsightsEnabled": True}},
        {"insightsConfig": {"queryStringLength": 2048}},
        LISTED,
        "insightsConfig.queryStringLength",
        2048,
    ),
    (
        {"maintenanceWindow": None},
        {"maintenanceWindow": {"updateTrack": "stable"}},
        IGNORE,
        "maintenanceWindow.updateTrack",
        MISSING,
    ),
    # Keyed lists: the spec decides which elements exist; unspecified fields of an element follow the policy.
    (
        {"databaseFlags": [{"name": "a", "value": "9"}]},
        {"databaseFlags": FLAGS},
        PRUNE,
        "databaseFlags",
        [{"name": "a", "value": "9"}],
    ),
    (
        {"databaseFlags": [{"name": "a", "value": "9"}]},
        {"databaseFlags": FLAGS},
        IGNORE,
        "databaseFlags",
        [{"name": "a", "value": "9"}],
    ),
    ({}, {"databaseFlags": FLAGS}, PRUNE, "databaseFlags", MISSING),
    ({}, {"databaseFlags": FLAGS}, IGNORE, "databaseFlags", FLAGS),
    ({"databaseFlags": []}, {"databaseFlags": FLAGS}, IGNORE, "databaseFlags", []),
    ({"databaseFlags": []}, {"databaseFlags": FLAGS}, UNMANAGED, "databaseFlags", FLAGS),
    (acl(BARE), acl(NETWORK), IGNORE, "ipConfiguration.authorizedNetworks", [NETWORK]),
    (acl(BARE), acl(NETWORK), PRUNE, "ipConfiguration.authorizedNetworks", [BARE]),
    (
        acl({**BARE, "value": "192.0.2.0/24"}),
        acl(NETWORK),
        IGNORE,
        "ipConfiguration.authorizedNetworks",
        [{**BARE, "value": "192.0.2.0/24"}],
    ),
    (acl(), acl(NETWORK), IGNORE, "ipConfiguration.authorizedNetworks", []),
    # Zero and empty are values.
    ({"diskAutoresizeLimit": 0}, {"diskAutoresizeLimit": 50}, IGNORE, "diskAutoresizeLimit", 0),
    (
        {"backupConfiguration": {"enabled": False}},
        {"backupConfiguration": ON},
        IGNORE,
        "backupConfiguration.enabled",
        False,
    ),
    (
        {"backupConfiguration": {"enabled": False}},
        {"backupConfiguration": ON},
        UNMANAGED,
        "backupConfiguration.enabled",
        True,
    ),
    # Unspecified protections are kept.
    ({}, {"backupConfiguration": ON}, PRUNE, "backupConfiguration", ON),
    (
        {"backupConfiguration": {"location": "eu"}},
        {"backupConfiguration": ON},
        PRUNE,
        "backupConfiguration.enabled",
        True,
    ),
    (
        {"backupConfiguration": {"enabled": True}},
        {"backupConfiguration": ON},
        PRUNE,
        "backupConfiguration.pointInTimeRecoveryEnabled",
        True,
    ),
    ({"backupConfiguration": None}, {"backupConfiguration": ON}, PRUNE, "backupConfiguration.enabled", False),
    ({}, {"deletionProtectionEnabled": True}, PRUNE, "deletionProtectionEnabled", True),
    (
        {"deletionProtectionEnabled": None},
        {"deletionProtectionEnabled": True},
        PRUNE,
        "deletionProtectionEnabled",
        False,
    ),
    ({}, {"edition": "ENTERPRISE_PLUS"}, PRUNE, "edition", "ENTERPRISE_PLUS"),
    ({"edition": "ENTERPRISE"}, {"edition": "ENTERPRISE_PLUS"}, PRUNE, "edition", "ENTERPRISE"),
    ({"edition": "ENTERPRISE"}, {"edition": "ENTERPRISE_PLUS"}, UNMANAGED, "edition", "ENTERPRISE_PLUS"),
    # Settings that depend on the edition.
    (
        {"backupConfiguration": {"enabled": True}},
        {"edition": "ENTERPRISE_PLUS"},
        PRUNE,
        "backupConfiguration.backupRetentionSettings.retainedBackups",
        15,
    ),
    (
        {"backupConfiguration": {"enabled": True}},
        {},
        PRUNE,
        "backupConfiguration.backupRetentionSettings.retainedBackups",
        7,
    ),
    (
        {},
        {"edition": "ENTERPRISE_PLUS", "dataCacheConfig": {"dataCacheEnabled": True}},
        PRUNE,
        "dataCacheConfig.dataCacheEnabled",
        True,
    ),
    ({}, {"dataCacheConfig": {"dataCacheEnabled": True}}, PRUNE, "dataCacheConfig.dataCacheEnabled", False),
    # Values that the service chose.
    ({}, {"diskSize": 25}, PRUNE, "diskSize", 25),
    ({"diskSize": 10}, {"diskSize": 25}, PRUNE, "diskSize", 25),
    ({"diskSize": 30}, {"diskSize": 25}, PRUNE, "diskSize", 30),
    ({"diskSize": 10, "diskAutoresize": False}, {"diskSize": 25}, PRUNE, "diskSize", 10),
    ({}, {"locationPreference": {"zone": "z"}}, PRUNE, "locationPreference", {"zone": "z"}),
    (
        {"locationPreference": {"secondaryZone": "y"}},
        {"locationPreference": {"zone": "z"}},
        PRUNE,
        "locationPreference",
        {"zone": "z", "secondaryZone": "y"},
    ),
    # The SSL mode and the older switch.
    ({"ipConfiguration": {"requireSsl": True}}, {}, PRUNE, "ipConfiguration.sslMode", TRUSTED),
    (
        {"ipConfiguration": {"requireSsl": True}},
        {"ipConfiguration": {"sslMode": "ENCRYPTED_ONLY"}},
        IGNORE,
        "ipConfiguration.sslMode",
        TRUSTED,
    ),
    (
        {"ipConfiguration": {"requireSsl": False}},
        {"ipConfiguration": {"sslMode": TRUSTED, "requireSsl": True}},
        IGNORE,
        "ipConfiguration.sslMode",
        "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    ),
    (
        {"ipConfiguration": {"requireSsl": False}},
        {"ipConfiguration": {"sslMode": "ENCRYPTED_ONLY"}},
        IGNORE,
        "ipConfiguration.sslMode",
        "ENCRYPTED_ONLY",
    ),
    (
        {},
        {"ipConfiguration": {"sslMode": TRUSTED}},
        PRUNE,
        "ipConfiguration.sslMode",
        "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    ),
]


@pytest.mark.parametrize(("declared", "live", "rules", "path", "wanted"), CASES)
def test_the_effective_settings(
    declared: dict[str, Any], live: dict[str, Any], rules: FieldPolicy, path: str, wanted: Any
) -> None:
    ours, theirs = spec(declared), spec(live, databaseVersion="POSTGRES_15")
    before = canonical(ours), canonical(theirs)

    result = desired(ours, theirs, rules)

    assert get_at(result, Path.parse(f"settings.{path}")) == wanted
    assert (canonical(ours), canonical(theirs)) == before


def test_unspecified_immutable_and_service_chosen_fields_are_kept() -> None:
    live = spec(
        databaseVersion="MYSQL_8_0",
        region="us-central1",
        maintenanceVersion="M.1",
        instanceType="READ_REPLICA_INSTANCE",
        masterInstanceRef={"external": "p:primary"},
        encryptionKMSCryptoKeyRef={"external": "projects/p/k"},
    )

    result = desired(spec(), live, PRUNE)

    kept = ("databaseVersion", "region", "maintenanceVersion", "instanceType", "masterInstanceRef")
    assert {name: result[name] for name in (*kept, "encryptionKMSCryptoKeyRef")} == {
        name: value for name, value in msgspec.to_builtins(live).items() if name != "settings"
    }


def test_a_new_instance_is_the_spec_with_the_defaults_that_are_always_sent() -> None:
    result: dict[str, Any] = msgspec.to_builtins(desired_instance(spec(), MISSING, PRUNE))

    assert result["instanceType"] == "CLOUD_SQL_INSTANCE"
    assert result["settings"]["edition"] == "ENTERPRISE"
    assert result["settings"]["ipConfiguration"] == {
        "ipv4Enabled": True,
        "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    }


def test_the_live_instance_in_the_terms_of_the_spec() -> None:
    settings = {
        "tier": "small",
        "dataDiskSizeGb": "10",
        "denyMaintenancePeriods": [{"startDate": "a", "endDate": "b", "time": "c"}],
        "ipConfiguration": {"privateNetwork": "projects/p/global/networks/n", "requireSsl": True},
        "sqlServerAuditConfig": {"bucket": "gs://b"},
    }
    live = msgspec.convert(
        {"name": "i", "databaseVersion": "POSTGRES_15", "settings": settings}, SqlInstance, strict=False
    )

    assert msgspec.to_builtins(instance_as_spec(live)) == {
        "databaseVersion": "POSTGRES_15",
        "settings": {
            "tier": "small",
            "diskSize": 10,
            "denyMaintenancePeriod": {"startDate": "a", "endDate": "b", "time": "c"},
            "ipConfiguration": {
                "privateNetworkRef": {"external": "projects/p/global/networks/n"},
                "requireSsl": True,
                "sslMode": TRUSTED,
            },
            "sqlServerAuditConfig": {"bucketRef": {"external": "gs://b"}},
        },
    }
