"""Fields that Cloud SQL fills in: defaults of unspecified fields, and outputs (addresses, links, certificates).

The same function completes an insert, a replacement and a patch, and it is idempotent: a PUT of what a GET returned
changes nothing.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.routing import project_number
from setpoint.localcloud.schema import JsonBody, member, with_member, without_member
from setpoint.localcloud.sql.rules import PLUS, DatabaseEngine, DatabaseVersion, find_version, upgradable

DEFAULT_VERSION: Final = "MYSQL_8_0"
DEFAULT_REGION: Final = "us-central1"

# Fields that a replacement keeps when it does not name them: identity, immutable fields, values chosen by the service.
KEPT_WHEN_UNSPECIFIED: Final = (
    *("name", "region", "databaseVersion", "instanceType", "masterInstanceName", "maintenanceVersion"),
    *("diskEncryptionConfiguration", "settings.dataDiskSizeGb", "settings.dataDiskType", "settings.collation"),
    *("settings.timeZone", "settings.locationPreference", "settings.backupConfiguration.startTime"),
)

# A patch of the first field makes the service choose the other fields again, unless the patch names them too.
_RECHOSEN: Final = {
    "databaseVersion": ("maintenanceVersion",),
    "settings.edition": (
        "settings.backupConfiguration.backupRetentionSettings",
        "settings.backupConfiguration.transactionLogRetentionDays",
        "settings.dataCacheConfig",
    ),
    "settings.ipConfiguration.requireSsl": ("settings.ipConfiguration.sslMode",),
    "settings.ipConfiguration.sslMode": ("settings.ipConfiguration.requireSsl",),
}


def keep_unspecified_fields(wanted: JsonBody, live: JsonBody) -> JsonBody:
    """A replacement, with the unspecified fields that keep their live values."""
    for path in KEPT_WHEN_UNSPECIFIED:
        if member(wanted, path) is None and (value := member(live, path)) is not None:
            wanted = with_member(wanted, path, value)
    return wanted


def without_rechosen_fields(live: JsonBody, patch: JsonBody) -> JsonBody:
    """`live` without the fields that the service chooses again because of `patch`."""
    for cause, chosen in _RECHOSEN.items():
        if (value := member(patch, cause)) is None or value == member(live, cause):
            continue
        for path in chosen:
            live = without_member(live, path) if member(patch, path) is None else live
    return live


def with_defaults(wanted: JsonBody) -> JsonBody:
    """`wanted` with every default. An unknown version is refused later, by the rules."""
    name = wanted.get("databaseVersion", DEFAULT_VERSION)
    version = find_version(name) or find_version(DEFAULT_VERSION)
    assert version is not None
    is_replica = "masterInstanceName" in wanted
    defaults: JsonBody = {
        "databaseVersion": name,
        "instanceType": "READ_REPLICA_INSTANCE" if is_replica else "CLOUD_SQL_INSTANCE",
        "kind": "sql#instance",
        "maintenanceVersion": version.maintenance,
        "region": DEFAULT_REGION,
    }
    if version.engine is DatabaseEngine.POSTGRES:
        defaults["includeReplicasForMajorVersionUpgrade"] = False
    whole = {**defaults, **wanted}
    return {**whole, "settings": _settings_with_defaults(wanted.get("settings", {}), version, whole)}


def _settings_with_defaults(wanted: JsonBody, version: DatabaseVersion, instance: JsonBody) -> JsonBody:
    edition = wanted.get("edition", version.edition)
    is_plus = edition == PLUS
    settings: JsonBody = {
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
    if version.engine is DatabaseEngine.POSTGRES:
        settings["replicationLagMaxSeconds"] = 31536000
    settings |= wanted
    settings["backupConfiguration"] = _backup_configuration(wanted.get("backupConfiguration", {}), version, instance)
    settings["ipConfiguration"] = _ip_configuration(wanted.get("ipConfiguration", {}), version.engine)
    settings["locationPreference"] = _location(wanted.get("locationPreference", {}), instance)
    return _without_empty(_insights(_data_cache(settings, version.engine)))


def _backup_configuration(wanted: JsonBody, version: DatabaseVersion, instance: JsonBody) -> JsonBody:
    is_plus = instance.get("settings", {}).get("edition", version.edition) == PLUS
    is_primary = "masterInstanceName" not in instance
    is_on = wanted.get("enabled", is_plus and is_primary)
    backups: JsonBody = {
        "enabled": is_on,
        "kind": "sql#backupConfiguration",
        "startTime": "12:00",
        "transactionLogRetentionDays": 14 if is_plus else 7,
    }
    if version.engine is DatabaseEngine.MYSQL and is_plus and is_on and is_primary:
        backups["binaryLogEnabled"] = True
    if version.engine is DatabaseEngine.POSTGRES:
        backups["replicationLogArchivingEnabled"] = False
    if is_plus or version.engine is not DatabaseEngine.MYSQL:
        backups["backupTier"] = "STANDARD"
    backups |= wanted
    # Point-in-time recovery is another field in each engine; the other one is dropped.
    backups.pop("pointInTimeRecoveryEnabled" if version.engine is DatabaseEngine.MYSQL else "binaryLogEnabled", None)
    in_bucket = bool(backups.get("binaryLogEnabled"))
    backups["transactionalLogStorageState"] = (
        "CLOUD_STORAGE" if in_bucket else "TRANSACTIONAL_LOG_STORAGE_STATE_UNSPECIFIED"
    )
    retention = {"retainedBackups": 15 if is_plus else 7, "retentionUnit": "COUNT"}
    return {**backups, "backupRetentionSettings": {**retention, **wanted.get("backupRetentionSettings", {})}}


def _ip_configuration(wanted: JsonBody, engine: DatabaseEngine) -> JsonBody:
    by_certificate = "ENCRYPTED_ONLY" if engine is DatabaseEngine.SQLSERVER else "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
    requires_ssl = wanted.get("requireSsl", wanted.get("sslMode") == "TRUSTED_CLIENT_CERTIFICATE_REQUIRED")
    defaults: JsonBody = {
        "authorizedNetworks": [],
        "ipv4Enabled": True,
        "requireSsl": requires_ssl,
        "sslMode": by_certificate if requires_ssl else "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    }
    if engine is DatabaseEngine.POSTGRES:
        defaults["serverCertificateRotationMode"] = "NO_AUTOMATIC_ROTATION"
    return {**defaults, **wanted}


def _location(wanted: JsonBody, instance: JsonBody) -> JsonBody:
    return {"kind": "sql#locationPreference", "zone": f"{instance['region']}-a", **wanted}


def _data_cache(settings: JsonBody, engine: DatabaseEngine) -> JsonBody:
    if settings["edition"] == PLUS and engine is not DatabaseEngine.SQLSERVER:
        wanted = settings.get("dataCacheConfig", {})
        return {**settings, "dataCacheConfig": {"dataCacheEnabled": True, **wanted}}
    if member(settings, "dataCacheConfig.dataCacheEnabled"):
        return settings
    return without_member(settings, "dataCacheConfig")


def _insights(settings: JsonBody) -> JsonBody:
    if "insightsConfig" not in settings:
        return settings
    # The service leaves out members that are false.
    wanted = {name: value for name, value in settings["insightsConfig"].items() if value is not False}
    return {**settings, "insightsConfig": {"queryPlansPerMinute": 5, "queryStringLength": 1024, **wanted}}


def _without_empty(settings: JsonBody) -> JsonBody:
    always = {"authorizedGaeApplications"}
    return {name: value for name, value in settings.items() if name in always or value not in ([], {})}


API: Final = "https://sqladmin.googleapis.com/sql/v1beta4"
_GEMINI: Final = {
    DatabaseEngine.MYSQL: {"flagRecommenderEnabled": True},
    DatabaseEngine.POSTGRES: {"googleVacuumMgmtEnabled": False, "oomSessionCancelEnabled": False},
    DatabaseEngine.SQLSERVER: {},
}


def instance_link(project: str, name: str) -> str:
    """The link of an instance, as the real service returns it."""
    return f"{API}/projects/{project}/instances/{name}"


def instance_outputs(project: str, instance: JsonBody, created: datetime) -> JsonBody:
    """The outputs that the service adds to an instance. They are derived from its name, and so always the same."""
    name, settings = instance["name"], instance["settings"]
    version = find_version(instance["databaseVersion"])
    assert version is not None
    gemini = {"activeQueryEnabled": False, "entitled": False, "indexAdvisorEnabled": False, **_GEMINI[version.engine]}
    result: JsonBody = {
        "backendType": "SECOND_GEN",
        "connectionName": f"{project}:{instance['region']}:{name}",
        "createTime": timestamp(created),
        "databaseInstalledVersion": version.installed,
        "gceZone": settings["locationPreference"]["zone"],
        "geminiConfig": gemini,
        "ipAddresses": _ip_addresses(f"{project}/{name}", settings["ipConfiguration"], version.engine),
        "project": project,
        "satisfiesPzi": True,
        "selfLink": instance_link(project, name),
        "serverCaCert": _certificate(project, name, created),
        "serviceAccountEmailAddress": _service_account(project, name),
        "sqlNetworkArchitecture": "NEW_NETWORK_ARCHITECTURE",
        "state": "RUNNABLE",
    }
    if version.upgrades:
        result["upgradableDatabaseVersions"] = upgradable(version)
    if settings["availabilityType"] == "REGIONAL" and "secondaryZone" in settings["locationPreference"]:
        result["secondaryGceZone"] = settings["locationPreference"]["secondaryZone"]
    if member(settings, "ipConfiguration.pscConfig.pscEnabled"):
        mark = _digest(f"{project}/{name}")[:12]
        result["dnsName"] = f"{mark}.{mark}.{instance['region']}.sql.goog."
        result["pscServiceAttachmentLink"] = (
            f"projects/{mark}-tp/regions/{instance['region']}/serviceAttachments/a-{mark}-psc-service-attachment"
        )
    return result


def _ip_addresses(place: str, network: JsonBody, engine: DatabaseEngine) -> list[JsonBody]:
    # From the address ranges reserved for documentation: none belongs to a real server.
    last = int(_digest(place)[:2], 16) % 254 + 1
    addresses: list[JsonBody] = []
    if network["ipv4Enabled"]:
        addresses.append({"ipAddress": f"203.0.113.{last}", "type": "PRIMARY"})
        if engine is DatabaseEngine.POSTGRES:
            addresses.append({"ipAddress": f"198.51.100.{last}", "type": "OUTGOING"})
    if network.get("privateNetwork"):
        addresses.append({"ipAddress": f"10.0.0.{last}", "type": "PRIVATE"})
    return addresses


def _certificate(project: str, name: str, created: datetime) -> JsonBody:
    mark = _digest(f"{project}/{name}/ca")
    return {
        "cert": f"-----BEGIN CERTIFICATE-----\n{mark}\n-----END CERTIFICATE-----\n",
        "certSerialNumber": "0",
        "commonName": f"C=US,O=Google\\, Inc,CN=Google Cloud SQL Server CA,dnQualifier={mark[:36]}",
        "createTime": timestamp(created),
        "expirationTime": timestamp(created + timedelta(days=3650)),
        "instance": name,
        "kind": "sql#sslCert",
        "sha1Fingerprint": mark[:40],
    }


def _service_account(project: str, name: str) -> str:
    return f"p{project_number(project)}-{_digest(name)[:6]}@gcp-sa-cloud-sql.iam.gserviceaccount.com"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
