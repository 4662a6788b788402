"""SQLInstance under fuzz."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from hypothesis import strategies as st

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.sql_instance import SqlInstance
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec, SqlInstanceTree
from setpoint.localcloud.sql.schema import INSTANCE
from tests.laws.google.cloud_harness import KEY, NETWORK, PASSWORD, PROJECT, CloudHarness
from tests.laws.google.from_schema import Vocabulary
from tests.laws.google.from_types import Words
from tests.laws.google.fuzzed_kind import FuzzedKind, Spec

_SETTINGS: Final = Path(("spec", "settings"))
_REQUIRES_SSL: Final = _SETTINGS / "ipConfiguration" / "requireSsl"
_SSL_MODE: Final = _SETTINGS / "ipConfiguration" / "sslMode"
_BACKUPS: Final = _SETTINGS / "backupConfiguration"
_MAINTENANCE: Final = Path(("spec", "maintenanceVersion"))
_OF_AN_EDITION: Final = (
    *(_BACKUPS / "backupRetentionSettings", _BACKUPS / "transactionLogRetentionDays"),
    _SETTINGS / "dataCacheConfig",
)
_NAME: Final = "some-instance"
INSTANCES: Final = f"/sql/v1beta4/projects/{PROJECT}/instances"
PLUS: Final = "ENTERPRISE_PLUS"
VERSIONS: Final = ("MYSQL_8_0", "POSTGRES_15", "SQLSERVER_2019_STANDARD")
_TIERS: Final = ("db-custom-1-3840", "db-custom-2-7680")
_PLUS_TIERS: Final = ("db-perf-optimized-N-2", "db-perf-optimized-N-4")
_MODES: Final = ("ALLOW_UNENCRYPTED_AND_ENCRYPTED", "ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED")
_TIMES: Final = ("2099-01-01T00:00:00Z", "2099-01-01T01:00:00.50+01:00")
_DENIED: Final[Mapping[str, Json]] = {"startDate": "2026-01-01", "endDate": "2026-02-01", "time": "00:00:00"}
_SECRETS: Final[tuple[Json, ...]] = (
    {"value": PASSWORD},
    {"valueFrom": {"secretKeyRef": {"name": "secret", "key": "password"}}},
)
_OTHERS: Final[tuple[Json, ...]] = (
    *({"external": "other"}, {"external": f"{PROJECT}:other"}),
    *({"name": "other"}, {"name": "other", "namespace": "team"}),
)
_LOGGED: Final[Spec] = {"enabled": True, "binaryLogEnabled": True}
_NOT_BACKED_UP: Final[Spec] = {"enabled": False, "binaryLogEnabled": False, "pointInTimeRecoveryEnabled": False}
_TOGETHER: Final[tuple[Spec, ...]] = tuple(
    {"settings": settings}
    for settings in (
        *({"edition": PLUS, "tier": tier} for tier in _PLUS_TIERS),
        {"edition": "ENTERPRISE", "tier": _TIERS[0]},
        {"availabilityType": "REGIONAL", "backupConfiguration": _LOGGED},
        {"backupConfiguration": _LOGGED},
        {"backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True}},
        {"backupConfiguration": _NOT_BACKED_UP},
        {"ipConfiguration": {"ipv4Enabled": False, "privateNetwork": NETWORK}},
        {"ipConfiguration": {"ipv4Enabled": False, "pscConfig": {"pscEnabled": True}}},
        {"ipConfiguration": {"requireSsl": True, "sslMode": _MODES[1]}},
        {"ipConfiguration": {"requireSsl": False, "sslMode": _MODES[2]}},
    )
)


class FuzzedInstance(FuzzedKind):
    """An instance; another one that it may follow, or be made from, is there."""

    kind = "SQLInstance"
    group = "sql.cnrm.cloud.google.com"
    name = _NAME
    spec_type = SqlInstanceSpec
    tree_type = SqlInstanceTree
    live_type = SqlInstance
    schema = INSTANCE
    location = Location(f"projects/{PROJECT}/instances/{_NAME}")
    path = f"{INSTANCES}/{_NAME}"
    # The version of the settings moves with every write, and the last is what the spec calls crashSafeReplication.
    aliases = ("settings.settingsVersion", "settings.crashSafeReplicationEnabled")
    # What the service puts there by itself.
    own = MappingProxyType(
        {
            "settings.dataApiAccess": "DISALLOW_DATA_API",
            "settings.databaseReplicationEnabled": True,
            "settings.replicationLagMaxSeconds": 31536000,
            "settings.ipConfiguration.serverCertificateRotationMode": "NO_AUTOMATIC_ROTATION",
            "settings.ipConfiguration.serverCaMode": "GOOGLE_MANAGED_INTERNAL_CA",
            "settings.activeDirectoryConfig.mode": "MANAGED_ACTIVE_DIRECTORY",
        }
    )
    listable = (
        *("metadata.labels.team", "spec.settings.databaseFlags[name=x]", "spec.settings.databaseFlags[name=x].value"),
        'spec.settings.ipConfiguration.authorizedNetworks[name=a,value="10.0.0.0/8"]',
    )
    words: ClassVar[Words] = {
        "resourceID": (_NAME,),
        "databaseVersion": (*VERSIONS, "MYSQL_8_4", "POSTGRES_16"),
        "region": ("us-central1", "europe-west1"),
        "instanceType": ("CLOUD_SQL_INSTANCE", "READ_REPLICA_INSTANCE"),
        "maintenanceVersion": ("MYSQL_8_0_41.R20251004.01_07", "POSTGRES_15_7.R20250101.00_00"),
        "masterInstanceRef": _OTHERS,
        "encryptionKMSCryptoKeyRef": ({"external": KEY}, {"name": "key"}, {"name": "key", "namespace": "team"}),
        "rootPassword": _SECRETS,
        "replicaConfiguration.password": _SECRETS,
        "replicationCluster.failoverDrReplicaRef": _OTHERS,
        "cloneSource.sqlInstanceRef": _OTHERS,
        "cloneSource.pointInTime": _TIMES,
        "settings.tier": _TIERS,
        "settings.activationPolicy": ("ALWAYS", "NEVER", "ON_DEMAND"),
        "settings.activeDirectoryConfig.domain": ("example.com",),
        "settings.availabilityType": ("ZONAL", "REGIONAL", "zonal"),
        "settings.backupConfiguration.backupRetentionSettings.retainedBackups": (7, 8, 15),
        "settings.backupConfiguration.backupRetentionSettings.retentionUnit": ("COUNT",),
        "settings.backupConfiguration.location": ("us", "eu", ""),
        "settings.backupConfiguration.startTime": ("03:00", "12:00"),
        "settings.backupConfiguration.transactionLogRetentionDays": (1, 3, 7),
        "settings.collation": ("utf8mb4_bin", "en_US.UTF8"),
        "settings.connectorEnforcement": ("NOT_REQUIRED", "REQUIRED"),
        "settings.databaseFlags[].name": ("x", "y"),
        "settings.denyMaintenancePeriod": (dict(_DENIED),),
        "settings.diskAutoresizeLimit": (0, 200),
        "settings.diskSize": (10, 20, 30),
        "settings.diskType": ("PD_SSD", "PD_HDD"),
        "settings.edition": ("ENTERPRISE", PLUS),
        "settings.insightsConfig.queryPlansPerMinute": (0, 5, 9),
        "settings.insightsConfig.queryStringLength": (0, 1024, 2048),
        "settings.ipConfiguration.authorizedNetworks[].expirationTime": _TIMES,
        "settings.ipConfiguration.authorizedNetworks[].name": ("a", "b"),
        "settings.ipConfiguration.authorizedNetworks[].value": ("10.0.0.0/8", "192.0.2.0/24"),
        "settings.ipConfiguration.privateNetworkRef": (
            *({"external": NETWORK}, {"external": f"https://compute.test/v1/{NETWORK}"}),
            *({"name": "net"}, {"name": "net", "namespace": "team"}),
        ),
        "settings.ipConfiguration.sslMode": _MODES,
        "settings.locationPreference.zone": ("us-central1-a", "us-central1-b", ""),
        "settings.locationPreference.secondaryZone": ("us-central1-c", ""),
        "settings.maintenanceWindow.day": (1, 7),
        "settings.maintenanceWindow.updateTrack": ("stable", "canary"),
        "settings.passwordValidationPolicy.complexity": ("COMPLEXITY_DEFAULT",),
        "settings.passwordValidationPolicy.passwordChangeInterval": ("3600s",),
        "settings.pricingPlan": ("PER_USE", "PACKAGE"),
        "settings.replicationType": ("SYNCHRONOUS", "ASYNCHRONOUS"),
        "settings.sqlServerAuditConfig.bucketRef": (
            *({"external": "gs://logs"}, {"external": "logs"}),
            *({"name": "logs"}, {"name": "logs", "namespace": "team"}),
        ),
        "settings.sqlServerAuditConfig.retentionInterval": ("86400s",),
        "settings.sqlServerAuditConfig.uploadInterval": ("600s",),
        "settings.timeZone": ("UTC", "Pacific Standard Time"),
    }
    live_words = Vocabulary(
        {
            "databaseVersion": ("MYSQL_8_4", "MYSQL_8_0_43", "POSTGRES_16"),
            "maintenanceVersion": ("MYSQL_8_0_41.R20260101.01_00", "POSTGRES_15_7.R20260101.00_00"),
            "settings.tier": (*_TIERS, *_PLUS_TIERS),
            "settings.activeDirectoryConfig.domain": ("example.com",),
            "settings.backupConfiguration.backupRetentionSettings.retainedBackups": (7, 8, 15),
            "settings.backupConfiguration.startTime": ("03:00", "12:00"),
            "settings.backupConfiguration.transactionLogRetentionDays": (1, 3, 7, 14),
            "settings.dataDiskSizeGb": ("10", "20", "30"),
            "settings.storageAutoResizeLimit": ("0", "200"),
            "settings.dataApiAccess": ("DISALLOW_DATA_API", "ALLOW_DATA_API"),
            "settings.databaseFlags[].name": ("x", "y"),
            "settings.denyMaintenancePeriods": ([dict(_DENIED)], []),
            "settings.insightsConfig.queryStringLength": (1024, 2048),
            "settings.ipConfiguration.authorizedNetworks[].value": ("10.0.0.0/8", "192.0.2.0/24"),
            "settings.ipConfiguration.authorizedNetworks[].name": ("a", "b"),
            "settings.ipConfiguration.privateNetwork": (NETWORK, f"{NETWORK}2"),
            "settings.ipConfiguration.pscConfig.pscAutoConnections": ([],),
            "settings.locationPreference.zone": ("us-central1-a", "us-central1-b"),
            "settings.locationPreference.secondaryZone": ("us-central1-c",),
            "settings.passwordValidationPolicy.passwordChangeInterval": ("3600s",),
            "settings.sqlServerAuditConfig.bucket": ("gs://logs", "gs://others"),
            "settings.sqlServerAuditConfig.retentionInterval": ("86400s",),
            "settings.sqlServerAuditConfig.uploadInterval": ("600s",),
        },
        frozenset(
            {
                *("settings.databaseFlags[].name", "settings.databaseFlags[].value"),
                "settings.ipConfiguration.authorizedNetworks[].value",
            }
        ),
        _TOGETHER,
    )

    def surroundings(self, draw: st.DrawFn, harness: CloudHarness) -> str:
        version = draw(st.sampled_from(VERSIONS))
        backups = {"enabled": True, **({"binaryLogEnabled": True} if version.startswith("MYSQL") else {})}
        new_instance(
            harness, "other", version, {"tier": _TIERS[0], "edition": "ENTERPRISE", "backupConfiguration": backups}
        )
        return version

    def make(self, draw: st.DrawFn, harness: CloudHarness, database_version: str) -> None:
        more: Spec = {}
        settings: Spec = draw(
            st.sampled_from(
                (
                    *({}, {"dataDiskType": "PD_HDD"}, {"collation": "utf8mb4_bin"}, {"timeZone": "UTC"}),
                    {"backupConfiguration": {"enabled": True}},
                    {
                        "backupConfiguration": {
                            "enabled": True,
                            "binaryLogEnabled": True,
                            "pointInTimeRecoveryEnabled": True,
                        }
                    },
                )
            )
        )
        is_plus = not database_version.startswith("SQLSERVER") and draw(st.booleans())
        machine = {"tier": _PLUS_TIERS[0], "edition": PLUS} if is_plus else {"tier": _TIERS[0], "edition": "ENTERPRISE"}
        if draw(st.sampled_from((False, False, False, True))):
            more["diskEncryptionConfiguration"] = {"kmsKeyName": KEY}
        if draw(st.sampled_from((False, False, False, False, False, True))):
            more |= {"masterInstanceName": "other", "instanceType": "READ_REPLICA_INSTANCE"}
            settings, machine = {}, {"tier": _TIERS[0], "edition": "ENTERPRISE"}
        labels = {"userLabels": {"managed-by-cnrm": "true"}}
        new_instance(harness, self.name, database_version, {**settings, **machine, **labels}, **more)
        self.edit_live(draw, harness)

    def possible(self, spec: Spec, database_version: str) -> Spec:
        """Each engine has its own way to a point in time, and the local cloud forgets the other one."""
        settings = spec["settings"]
        if not settings.get("backupConfiguration"):
            return spec
        # Without a word of the author's a new one is MySQL.
        engines = [one.startswith("MYSQL") for one in (database_version, spec.get("databaseVersion") or VERSIONS[0])]
        others = {"pointInTimeRecoveryEnabled": any(engines), "binaryLogEnabled": not all(engines)}
        backups = {name: value for name, value in settings["backupConfiguration"].items() if not others.get(name)}
        return {**spec, "settings": {**settings, "backupConfiguration": backups}}

    def follows(self, spec: Spec, path: Path) -> bool:
        """The older switch for SSL follows the mode, or the mode follows it; editions and versions bring their own."""
        settings = spec["settings"]
        if path == _SSL_MODE and isinstance((settings.get("ipConfiguration") or {}).get("requireSsl"), bool):
            return True
        if path == _MAINTENANCE and spec.get("databaseVersion"):
            return True
        if "edition" in settings and any(one.covers(path) for one in _OF_AN_EDITION):
            return True
        return path == _REQUIRES_SSL

    def sensible(self, spec: Spec, view: Mapping[str, Json] | Missing, database_version: str) -> Spec:
        live: Any = {} if isinstance(view, Missing) else view
        edition = spec["settings"].get("edition", live.get("settings", {}).get("edition"))
        found = {**spec, "settings": _sensible_settings(spec["settings"], is_plus=edition == PLUS)}
        engine = database_version.partition("_")[0]
        if spec.get("databaseVersion") and not spec["databaseVersion"].startswith(engine):
            found["databaseVersion"] = database_version
        if isinstance(view, Missing):
            found["databaseVersion"] = found.get("databaseVersion") or database_version
            found |= {"rootPassword": _SECRETS[0]} if engine == "SQLSERVER" else {}
        return found


def _sensible_settings(settings: Spec, *, is_plus: bool) -> Spec:
    found = dict(settings)
    if settings["tier"].startswith("db-perf") != is_plus:
        found["tier"] = _PLUS_TIERS[0] if is_plus else _TIERS[0]
    if settings.get("backupConfiguration"):
        found["backupConfiguration"] = _sensible_backups(settings["backupConfiguration"])
    if settings.get("ipConfiguration"):
        found["ipConfiguration"] = _sensible_network(settings["ipConfiguration"])
    if not is_plus:
        found.pop("dataCacheConfig", None)
    if settings.get("databaseFlags"):
        found["databaseFlags"] = list({one["name"]: one for one in settings["databaseFlags"]}.values())
    return found


def new_instance(harness: CloudHarness, name: str, version: str, settings: Spec, **more: Any) -> None:
    """Another writer creates an instance."""
    body = {"name": name, "databaseVersion": version, "region": "us-central1", "settings": settings, **more}
    assert harness.ask("POST", INSTANCES, {**body, "rootPassword": "s3cret"}), body


def _sensible_backups(backups: Spec) -> Spec:
    """No log without backups."""
    has_log = backups.get("binaryLogEnabled") or backups.get("pointInTimeRecoveryEnabled")
    return {**backups, "enabled": True} if has_log else backups


def _sensible_network(network: Spec) -> Spec:
    """The instance has to be reachable; its networks are distinct."""
    found = {**network, "ipv4Enabled": True} if network.get("ipv4Enabled") is False else dict(network)
    if found.get("authorizedNetworks"):
        by_key = {(one.get("name"), one["value"]): one for one in found["authorizedNetworks"]}
        found["authorizedNetworks"] = list(by_key.values())
    return found
