"""The manifests of each of Config Connector's recordings of an instance, by its name, with our own data."""

from typing import Any, Final

from tests.conformance.two_controllers import Shape
from tests.conformance.wire import PROJECT

PLUS: Final = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}
IN_SECRET: Final = {"valueFrom": {"secretKeyRef": {"name": "root-login", "key": "password"}}}
ROOT: Final = {"root-login": "Pa55-word"}
NETWORK: Final = "https://www.googleapis.com/compute/v1/projects/example-project/global/networks/"
KEY: Final = "projects/example-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
MYSQL, POSTGRES, SERVER = "MYSQL_8_0", "POSTGRES_15", "SQLSERVER_2019_EXPRESS"


def instance(version: str, settings: dict[str, Any], name: str = "some-instance", **spec: Any) -> dict[str, Any]:
    """A SQLInstance manifest, as the recordings have them."""
    place = {"tier": "db-custom-1-3840", "locationPreference": {"zone": "us-central1-a"}}
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **spec.pop("annotations", {})}
    metadata = {"name": name, "namespace": PROJECT, "labels": {"cnrm-test": "true"}, "annotations": annotations}
    return {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": metadata,
        "spec": {"databaseVersion": version, "region": "us-central1", **spec, "settings": {**place, **settings}},
    }


def _changed(version: str, before: dict[str, Any], after: dict[str, Any], **spec: Any) -> Shape:
    return Shape(instance(version, before, **spec), instance(version, after, **spec))


def _deny(start: str, end: str, time: str) -> dict[str, Any]:
    return {"denyMaintenancePeriod": {"startDate": start, "endDate": end, "time": time}}


def _policy(length: int, **more: Any) -> dict[str, Any]:
    return {"passwordValidationPolicy": {"enablePasswordPolicy": True, "minLength": length, **more}}


def _logged(**backups: Any) -> dict[str, Any]:
    return {"backupConfiguration": {"enabled": True, "binaryLogEnabled": True, **backups}}


def _server(settings: dict[str, Any], version: str = SERVER) -> dict[str, Any]:
    return instance(version, settings, rootPassword=IN_SECRET)


def _clone(**settings: Any) -> dict[str, Any]:
    return instance(POSTGRES, settings, cloneSource={"sqlInstanceRef": {"name": "source"}})


def _replica(settings: dict[str, Any], **spec: Any) -> dict[str, Any]:
    spec |= {"masterInstanceRef": {"name": "primary"}, "instanceType": "READ_REPLICA_INSTANCE"}
    return instance(MYSQL, settings, **spec)


_FULL: Final = {
    "activationPolicy": "ALWAYS",
    "availabilityType": "ZONAL",
    "diskAutoresize": True,
    "diskAutoresizeLimit": 100,
    "diskSize": 20,
    "diskType": "PD_SSD",
    "pricingPlan": "PER_USE",
    "replicationType": "SYNCHRONOUS",
    "ipConfiguration": {"ipv4Enabled": True, "requireSsl": False},
    "maintenanceWindow": {"day": 6, "hour": 0, "updateTrack": "stable"},
    "databaseFlags": [{"name": "general_log", "value": "on"}],
    "insightsConfig": {"queryInsightsEnabled": True, "recordClientAddress": False, "queryStringLength": 2048},
}
_FULL_AFTER: Final = {
    **_FULL,
    "tier": "db-custom-2-7680",
    "diskSize": 30,
    "databaseFlags": [{"name": "general_log", "value": "off"}, {"name": "a", "value": "1"}],
    "maintenanceWindow": {"day": 7, "hour": 3, "updateTrack": "canary"},
}
_REPLICATED: Final = {"username": "initial", "password": {"value": "one"}}
_LISTED: Final = "spec.replicaConfiguration.username,spec.replicaConfiguration.password"
_UNMANAGED: Final = {"cnrm.cloud.google.com/unmanaged": _LISTED}
_NETWORKS: Final = [{"name": "b", "value": "10.0.0.0/8"}, {"value": "192.0.2.1/32"}]

SHAPES: Final[dict[str, Shape]] = {
    "activationpolicy-direct": _changed(POSTGRES, {"activationPolicy": "ALWAYS"}, {"activationPolicy": "NEVER"}),
    "backupconfiguration-pitr-direct": _changed(
        POSTGRES,
        {"backupConfiguration": {"enabled": False, "pointInTimeRecoveryEnabled": False, "startTime": "00:00"}},
        {"backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True, "startTime": "01:00"}},
    ),
    "connectorenforcement-direct": _changed(
        POSTGRES, {"connectorEnforcement": "NOT_REQUIRED"}, {"connectorEnforcement": "REQUIRED"}
    ),
    "databaseflags-direct": _changed(
        POSTGRES, {"databaseFlags": [{"name": "b", "value": "1"}]}, {"databaseFlags": [{"name": "a", "value": "on"}]}
    ),
    "databaseflags-direct, all removed": _changed(
        POSTGRES, {"databaseFlags": [{"name": "b", "value": "1"}]}, {"databaseFlags": []}
    ),
    "deletionprotection-direct": _changed(
        POSTGRES, {"deletionProtectionEnabled": True}, {"deletionProtectionEnabled": False}
    ),
    "denymaintenanceperiod-direct": _changed(
        POSTGRES, _deny("2030-10-01", "2030-11-01", "00:00:00"), _deny("2030-12-01", "2031-01-01", "01:00:00")
    ),
    "insightsconfig-direct": _changed(
        POSTGRES,
        {"insightsConfig": {"queryInsightsEnabled": False, "queryPlansPerMinute": 1, "queryStringLength": 256}},
        {"insightsConfig": {"queryInsightsEnabled": True, "queryPlansPerMinute": 20, "recordClientAddress": True}},
    ),
    "insightsconfig-qpm-default": _changed(
        POSTGRES,
        {"insightsConfig": {"queryInsightsEnabled": True}},
        {"insightsConfig": {"queryInsightsEnabled": True, "recordApplicationTags": True}},
    ),
    "locationpreference-direct": _changed(
        POSTGRES,
        {"locationPreference": {"zone": "us-central1-a"}},
        {"locationPreference": {"zone": "us-central1-b", "secondaryZone": "us-central1-c"}},
    ),
    "maintenancewindow-direct": _changed(
        POSTGRES,
        {"maintenanceWindow": {"day": 1, "hour": 0, "updateTrack": "canary"}},
        {"maintenanceWindow": {"day": 2, "hour": 5, "updateTrack": "stable"}},
    ),
    "passwordvalidationpolicy-direct": _changed(
        POSTGRES,
        _policy(8, complexity="COMPLEXITY_DEFAULT", disallowUsernameSubstring=True, reuseInterval=0),
        _policy(0, disallowUsernameSubstring=False, passwordChangeInterval="3600s", reuseInterval=5),
    ),
    "ssl-direct": _changed(
        POSTGRES,
        {"ipConfiguration": {"requireSsl": True}},
        {"ipConfiguration": {"requireSsl": False, "sslMode": "ENCRYPTED_ONLY"}},
    ),
    "storage-direct": _changed(
        POSTGRES,
        {"diskAutoresize": False, "diskSize": 10, "diskType": "PD_SSD"},
        {"diskAutoresize": True, "diskAutoresizeLimit": 100, "diskSize": 15, "diskType": "PD_SSD"},
    ),
    "backupconfiguration-binarylog-direct": _changed(
        MYSQL,
        {"backupConfiguration": {"enabled": False, "binaryLogEnabled": False, "transactionLogRetentionDays": 2}},
        _logged(transactionLogRetentionDays=3, location="us-west1"),
    ),
    "mysql-direct": _changed(MYSQL, _FULL, _FULL_AFTER),
    "mysql-direct, with a root password": _changed(MYSQL, _FULL, _FULL_AFTER, rootPassword={"value": "Pa55-word"}),
    "retainedbackups-default": _changed(MYSQL, _logged(), _logged(startTime="04:00")),
    "retainedbackups-default-enterprise-plus": _changed(
        MYSQL, {**PLUS, **_logged()}, {**PLUS, **_logged(startTime="04:00")}
    ),
    "backupconfiguration-diff": _changed(
        POSTGRES,
        {"backupConfiguration": {"enabled": True}},
        {"backupConfiguration": {"enabled": True, "backupRetentionSettings": {"retainedBackups": 7}}},
    ),
    "unmanage-fields": Shape(
        instance(MYSQL, {}, replicaConfiguration=_REPLICATED),
        instance(
            MYSQL,
            {},
            replicaConfiguration={"username": "changed", "password": {"value": "two"}},
            annotations=_UNMANAGED,
        ),
    ),
    "datacacheconfig-direct": _changed(
        POSTGRES,
        {"dataCacheConfig": {"dataCacheEnabled": False}},
        {**PLUS, "dataCacheConfig": {"dataCacheEnabled": True}},
    ),
    "mysql-minimal-direct": Shape(instance("MYSQL_5_7", {}), instance(MYSQL, {"tier": "db-custom-2-7680"})),
    "postgres-minimal-direct": Shape(instance(POSTGRES, {}), instance("POSTGRES_16", {"tier": "db-custom-2-7680"})),
    "clone-minimal-direct": Shape(_clone(), None, (instance(POSTGRES, {}, "source"),)),
    "replica-direct": Shape(_replica({}), None, (instance(MYSQL, _logged(), "primary"),)),
    "replicationcluster-direct": Shape(
        _replica({**PLUS, **_logged()}),
        _replica({**PLUS, **_logged()}, replicationCluster={"failoverDrReplicaRef": {"name": "primary"}}),
        (instance(MYSQL, {**PLUS, **_logged()}, "primary"),),
    ),
    "authorizednetworks-direct": _changed(
        POSTGRES,
        {"ipConfiguration": {"authorizedNetworks": [{"name": "a", "value": "10.0.0.0/8"}]}},
        {"ipConfiguration": {"authorizedNetworks": _NETWORKS}},
    ),
    "authorizednetworks-direct, none yet": _changed(
        POSTGRES,
        {"ipConfiguration": {"authorizedNetworks": []}},
        {"ipConfiguration": {"authorizedNetworks": _NETWORKS}},
    ),
    "auditconfig-direct": Shape(
        _server({"sqlServerAuditConfig": {"bucketRef": {"external": "logs"}, "retentionInterval": "86400s"}}),
        _server({"sqlServerAuditConfig": {"bucketRef": {"external": "logs"}, "uploadInterval": "600s"}}),
        secrets=ROOT,
    ),
    "encryptionkey-direct": Shape(
        instance(POSTGRES, {}, encryptionKMSCryptoKeyRef={"external": KEY}),
        instance(POSTGRES, {"pricingPlan": "PACKAGE"}, encryptionKMSCryptoKeyRef={"external": KEY}),
    ),
    "multithreading-direct": Shape(
        _server({"advancedMachineFeatures": {"threadsPerCore": 1}}),
        _server({"advancedMachineFeatures": {"threadsPerCore": 2}}),
        secrets=ROOT,
    ),
    "postgres-replication": _changed(
        POSTGRES,
        {"ipConfiguration": {"ipv4Enabled": False, "privateNetworkRef": {"external": f"{NETWORK}a"}}},
        {"ipConfiguration": {"ipv4Enabled": True, "privateNetworkRef": {"external": f"{NETWORK}a"}}},
        annotations={"cnrm.cloud.google.com/deletion-policy": "abandon"},
    ),
    "sqlserver-direct": Shape(_server({"collation": "Latin1_General_CI_AS", "timeZone": "UTC"}), secrets=ROOT),
    "sqlserver-minimal-direct": Shape(
        _server({}), _server({"tier": "db-custom-2-7680"}, "SQLSERVER_2022_EXPRESS"), secrets=ROOT
    ),
    "privatenetwork-direct": _changed(
        POSTGRES,
        {"ipConfiguration": {"privateNetworkRef": {"external": f"{NETWORK}a"}}},
        {"ipConfiguration": {"privateNetworkRef": {"external": f"{NETWORK}b"}, "allocatedIpRange": "range"}},
    ),
    "postgres-direct": Shape(
        instance(POSTGRES, {}),
        instance(POSTGRES, {"tier": "db-custom-2-7680"}, maintenanceVersion="POSTGRES_15_9.R20300101.00_01"),
    ),
}
