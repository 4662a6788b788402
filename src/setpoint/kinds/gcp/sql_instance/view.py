"""The live instance in the terms of the spec."""

from typing import Any, Final

import msgspec

from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.errors import OperationRunning, RemoteRefused
from setpoint.kinds.config_connector import relative
from setpoint.kinds.gcp.sql_instance import live
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceSpec
from setpoint.kinds.gcp.sql_instance.spelling import (
    authorized_network,
    insights_config,
    instance_path,
    psc_config,
    said,
    ssl_mode,
)

# What the spec calls otherwise.
RENAMED: Final = {
    "diskAutoresize": "storageAutoResize",
    "diskAutoresizeLimit": "storageAutoResizeLimit",
    "diskSize": "dataDiskSizeGb",
    "diskType": "dataDiskType",
}
_AS_IT_IS: Final = (
    *("activationPolicy", "activeDirectoryConfig", "advancedMachineFeatures", "authorizedGaeApplications"),
    *("collation", "connectorEnforcement", "dataCacheConfig", "databaseFlags", "deletionProtectionEnabled", "edition"),
    *("insightsConfig", "locationPreference", "maintenanceWindow", "passwordValidationPolicy", "pricingPlan"),
    *("replicationType", "tier", "timeZone"),
)


def instance_view(instance: live.Instance) -> Tree:
    """The instance as a tree that can be compared with the author's."""
    if instance.state == live.PENDING:
        raise OperationRunning(f"instance {instance.name} is still being made")
    if instance.state == live.FAILED:
        raise RemoteRefused(
            f"instance {instance.name} is in the state FAILED: the service could not make it. "
            "Delete the resource, and apply it again"
        )
    whole: dict[str, Any] = msgspec.to_builtins(instance)
    spec: dict[str, Any] = {name: whole[name] for name in _TOP if whole.get(name)}
    spec |= _references(whole)
    replica = whole.get("replicaConfiguration") or {}
    if replica:
        mysql = replica.get("mysqlReplicaConfiguration") or {}
        spec["replicaConfiguration"] = said({**mysql, "failoverTarget": replica.get("failoverTarget")})
    settings = whole["settings"]
    spec["settings"] = _settings(settings, whole.get("databaseVersion") or "")
    return {"spec": spec, "metadata": {"labels": instance.settings.userLabels or {}}}


def in_spec_terms(instance: live.Instance) -> SqlInstanceSpec:
    """The instance as a spec that would ask for exactly this."""
    spec: Any = instance_view(instance)["spec"]
    settings = dict(spec["settings"])
    if "bucketRef" not in settings.get("sqlServerAuditConfig", {}):
        # No spec can ask for an audit that goes nowhere.
        settings.pop("sqlServerAuditConfig", None)
    return msgspec.convert({**spec, "settings": settings}, SqlInstanceSpec)


_TOP: Final = ("databaseVersion", "region", "instanceType", "maintenanceVersion")


def _references(whole: dict[str, Any]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if whole.get("masterInstanceName"):
        found["masterInstanceRef"] = {"external": whole["masterInstanceName"]}
    key = (whole.get("diskEncryptionConfiguration") or {}).get("kmsKeyName")
    if key:
        found["encryptionKMSCryptoKeyRef"] = {"external": relative(key)}
    other = (whole.get("replicationCluster") or {}).get("failoverDrReplicaName")
    if other:
        name = instance_path(other, "").rpartition(":")[2]
        found["replicationCluster"] = {"failoverDrReplicaRef": {"external": name}}
    return found


def _settings(settings: dict[str, Any], database_version: str) -> dict[str, Any]:
    found = {name: settings[name] for name in _AS_IT_IS if settings.get(name) is not None}
    found |= {name: settings[theirs] for name, theirs in RENAMED.items() if settings.get(theirs) is not None}
    if not (settings.get("activeDirectoryConfig") or {}).get("domain"):
        found.pop("activeDirectoryConfig", None)
    if found.get("insightsConfig"):
        found["insightsConfig"] = insights_config(found["insightsConfig"])
    if settings.get("availabilityType"):
        found["availabilityType"] = settings["availabilityType"].upper()
    if settings.get("backupConfiguration"):
        found["backupConfiguration"] = _backups(settings["backupConfiguration"])
    if settings.get("denyMaintenancePeriods"):
        found["denyMaintenancePeriod"] = settings["denyMaintenancePeriods"][0]
    if settings.get("ipConfiguration"):
        found["ipConfiguration"] = _network(settings["ipConfiguration"], database_version)
    audit = settings.get("sqlServerAuditConfig") or {}
    if said(audit):
        rest = {name: value for name, value in said(audit).items() if name != "bucket"}
        bucket = {"bucketRef": {"external": audit["bucket"]}} if audit.get("bucket") else {}
        found["sqlServerAuditConfig"] = {**bucket, **rest}
    return found


def _backups(backups: dict[str, Any]) -> dict[str, Any]:
    outputs = ("backupTier", "transactionalLogStorageState")
    return {name: value for name, value in backups.items() if name not in outputs and value is not None}


def _network(network: dict[str, Any], database_version: str) -> dict[str, Any]:
    refs = ("authorizedNetworks", "privateNetwork", "pscConfig")
    found = {name: value for name, value in said(network).items() if name not in refs}
    if network.get("authorizedNetworks"):
        found["authorizedNetworks"] = [authorized_network(one) for one in network["authorizedNetworks"]]
    if network.get("privateNetwork"):
        found["privateNetworkRef"] = {"external": relative(network["privateNetwork"])}
    if psc := psc_config(network.get("pscConfig") or {}):
        found["pscConfig"] = psc
    if not found.get("sslMode") and found.get("requireSsl"):
        found["sslMode"] = ssl_mode(requires_ssl=True, database_version=database_version)
    return found
