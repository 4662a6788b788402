"""What Cloud SQL fills in where a request is silent.

The same function completes an insert, a replacement and a patch, and completing twice changes nothing: so a PUT of what
a GET returned is a PUT of what is there.
"""

from typing import Final

from setpoint.localcloud.sql_versions import PLUS, Engine, Version, find_version
from setpoint.localcloud.trees import Tree, member, with_member, without_member

DEFAULT_VERSION: Final = "MYSQL_8_0"
DEFAULT_REGION: Final = "us-central1"

# Where silence in a replacement keeps what is there: identity, what cannot change, and what the service itself chose.
SILENCE_KEEPS: Final = (
    *("name", "region", "databaseVersion", "instanceType", "masterInstanceName", "maintenanceVersion"),
    *("diskEncryptionConfiguration", "settings.dataDiskSizeGb", "settings.dataDiskType", "settings.collation"),
    *("settings.timeZone", "settings.locationPreference", "settings.backupConfiguration.startTime"),
)

# A patch that changes the first makes the service choose the others anew, unless the patch names them too.
_CHOSEN_ANEW: Final = {
    "databaseVersion": ("maintenanceVersion",),
    "settings.edition": (
        "settings.backupConfiguration.backupRetentionSettings",
        "settings.backupConfiguration.transactionLogRetentionDays",
        "settings.dataCacheConfig",
    ),
    "settings.ipConfiguration.requireSsl": ("settings.ipConfiguration.sslMode",),
    "settings.ipConfiguration.sslMode": ("settings.ipConfiguration.requireSsl",),
}


def keep_silent_fields(wanted: Tree, live: Tree) -> Tree:
    """A replacement together with the fields of `live` that it does not have to repeat."""
    for path in SILENCE_KEEPS:
        if member(wanted, path) is None and (value := member(live, path)) is not None:
            wanted = with_member(wanted, path, value)
    return wanted


def ready_for_patch(live: Tree, patch: Tree) -> Tree:
    """`live` without the fields that `patch` makes the service choose anew."""
    for cause, chosen in _CHOSEN_ANEW.items():
        if (value := member(patch, cause)) is None or value == member(live, cause):
            continue
        for path in chosen:
            live = without_member(live, path) if member(patch, path) is None else live
    return live


def completed(wanted: Tree) -> Tree:
    """`wanted` with every default. A version that does not exist is left for the rules to refuse."""
    name = wanted.get("databaseVersion", DEFAULT_VERSION)
    version = find_version(name) or find_version(DEFAULT_VERSION)
    assert version is not None
    is_replica = "masterInstanceName" in wanted
    defaults: Tree = {
        "databaseVersion": name,
        "instanceType": "READ_REPLICA_INSTANCE" if is_replica else "CLOUD_SQL_INSTANCE",
        "kind": "sql#instance",
        "maintenanceVersion": version.maintenance,
        "region": DEFAULT_REGION,
    }
    if version.engine is Engine.POSTGRES:
        defaults["includeReplicasForMajorVersionUpgrade"] = False
    whole = {**defaults, **wanted}
    return {**whole, "settings": _settings(wanted.get("settings", {}), version, whole)}


def _settings(wanted: Tree, version: Version, instance: Tree) -> Tree:
    edition = wanted.get("edition", version.edition)
    is_plus = edition == PLUS
    settings: Tree = {
        "activationPolicy": "ALWAYS",
        "authorizedGaeApplications": [],
        "availabilityType": "ZONAL",
        "connectorEnforcement": "NOT_REQUIRED",
        "dataDiskSizeGb": "20" if is_plus else "10",
        "dataDiskType": "PD_SSD",
        "deletionProtectionEnabled": False,
        "edition": edition,
        "kind": "sql#settings",
        "pricingPlan": "PER_USE",
        "replicationType": "SYNCHRONOUS",
        "storageAutoResize": is_plus,
        "storageAutoResizeLimit": "0",
    }
    if version.engine is Engine.POSTGRES:
        settings["replicationLagMaxSeconds"] = 31536000
    settings |= wanted
    settings["backupConfiguration"] = _backups(wanted.get("backupConfiguration", {}), version, instance)
    settings["ipConfiguration"] = _addresses(wanted.get("ipConfiguration", {}), version.engine)
    settings["locationPreference"] = _location(wanted.get("locationPreference", {}), instance)
    return _without_empty(_insights(_data_cache(settings, version.engine)))


def _backups(wanted: Tree, version: Version, instance: Tree) -> Tree:
    is_plus = instance.get("settings", {}).get("edition", version.edition) == PLUS
    is_primary = "masterInstanceName" not in instance
    is_on = wanted.get("enabled", is_plus and is_primary)
    backups: Tree = {
        "enabled": is_on,
        "kind": "sql#backupConfiguration",
        "startTime": "12:00",
        "transactionLogRetentionDays": 14 if is_plus else 7,
    }
    if version.engine is Engine.MYSQL and is_plus and is_on and is_primary:
        backups["binaryLogEnabled"] = True
    if version.engine is Engine.POSTGRES:
        backups["replicationLogArchivingEnabled"] = False
    if is_plus or version.engine is not Engine.MYSQL:
        backups["backupTier"] = "STANDARD"
    backups |= wanted
    # Each engine has its own way to a point in time, and forgets the other one.
    backups.pop("pointInTimeRecoveryEnabled" if version.engine is Engine.MYSQL else "binaryLogEnabled", None)
    in_bucket = bool(backups.get("binaryLogEnabled"))
    backups["transactionalLogStorageState"] = (
        "CLOUD_STORAGE" if in_bucket else "TRANSACTIONAL_LOG_STORAGE_STATE_UNSPECIFIED"
    )
    retention = {"retainedBackups": 15 if is_plus else 7, "retentionUnit": "COUNT"}
    return {**backups, "backupRetentionSettings": {**retention, **wanted.get("backupRetentionSettings", {})}}


def _addresses(wanted: Tree, engine: Engine) -> Tree:
    by_certificate = "ENCRYPTED_ONLY" if engine is Engine.SQLSERVER else "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
    requires_ssl = wanted.get("requireSsl", wanted.get("sslMode") == "TRUSTED_CLIENT_CERTIFICATE_REQUIRED")
    defaults: Tree = {
        "authorizedNetworks": [],
        "ipv4Enabled": True,
        "requireSsl": requires_ssl,
        "sslMode": by_certificate if requires_ssl else "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    }
    if engine is Engine.POSTGRES:
        defaults["serverCertificateRotationMode"] = "NO_AUTOMATIC_ROTATION"
    return {**defaults, **wanted}


def _location(wanted: Tree, instance: Tree) -> Tree:
    return {"kind": "sql#locationPreference", "zone": f"{instance['region']}-a", **wanted}


def _data_cache(settings: Tree, engine: Engine) -> Tree:
    if settings["edition"] == PLUS and engine is not Engine.SQLSERVER:
        wanted = settings.get("dataCacheConfig", {})
        return {**settings, "dataCacheConfig": {"dataCacheEnabled": True, **wanted}}
    if member(settings, "dataCacheConfig.dataCacheEnabled"):
        return settings
    return without_member(settings, "dataCacheConfig")


def _insights(settings: Tree) -> Tree:
    if "insightsConfig" not in settings:
        return settings
    # The service does not give back what is false here.
    wanted = {name: value for name, value in settings["insightsConfig"].items() if value is not False}
    return {**settings, "insightsConfig": {"queryPlansPerMinute": 5, "queryStringLength": 1024, **wanted}}


def _without_empty(settings: Tree) -> Tree:
    always = {"authorizedGaeApplications"}
    return {name: value for name, value in settings.items() if name in always or value not in ([], {})}
