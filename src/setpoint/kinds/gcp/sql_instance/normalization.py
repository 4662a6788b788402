"""One form for equal values: times, SSL modes, instance names; and the live instance in the terms of the spec."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.errors import OperationRunning, RemoteRefused
from setpoint.kinds.gcp.shared.config_connector import relative_link, without_empty
from setpoint.kinds.gcp.sql_instance.live import FAILED, PENDING, SqlInstance
from setpoint.kinds.gcp.sql_instance.spec import UNENCRYPTED

# A tree of `SqlInstanceTree`, or a part of one.
InstanceSubtree: TypeAlias = Mapping[str, Any]
CERTIFICATE: Final = "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
_REQUIRES_SSL: Final = Path(("settings", "ipConfiguration", "requireSsl"))
_SSL_MODE: Final = Path(("settings", "ipConfiguration", "sslMode"))
_SERVICE_NUMBERS: Final = {"queryPlansPerMinute": 5, "queryStringLength": 1024}
_ENCRYPTED: Final = "ENCRYPTED_ONLY"


def ssl_mode(*, requires_ssl: bool, database_version: str) -> str:
    """The `sslMode` that is equivalent to the older `requireSsl`."""
    if not requires_ssl:
        return UNENCRYPTED
    return CERTIFICATE if database_version.startswith(("MYSQL", "POSTGRES")) else _ENCRYPTED


def with_ssl_mode(spec: Mapping[str, Json], database_version: str) -> Mapping[str, Json]:
    """The spec with the `sslMode` that follows from `requireSsl`, where only the latter is set."""
    if get_at(spec, _REQUIRES_SSL) is not True or isinstance(get_at(spec, _SSL_MODE), str):
        return spec
    found = set_at(spec, _SSL_MODE, ssl_mode(requires_ssl=True, database_version=database_version))
    assert isinstance(found, Mapping)
    return found


def normalized_time(text: str) -> str:
    """A time in UTC without insignificant digits; a text that is no time is returned unchanged."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    if found.tzinfo is None:
        return text
    utc = found.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{utc.rstrip('0') if '.' in utc else utc}Z"


def instance_path(text: str, project: str) -> str:
    """`project:instance`, from a bare name, from that form itself, or from a link."""
    if ":" in text and "/" not in text:
        return text
    _, found, rest = relative_link(text).partition("projects/")
    owner, _, name = rest.partition("/instances/")
    return f"{owner}:{name}" if found and name else f"{project}:{text}"


def authorized_network(entry: Mapping[str, Json]) -> dict[str, Json]:
    """A normalized authorized network."""
    kept = without_empty(entry)
    until = kept.get("expirationTime")
    return {**kept, "expirationTime": normalized_time(until)} if isinstance(until, str) else kept


def psc_config(config: Mapping[str, Json]) -> list[Json]:
    """Normalized Private Service Connect: a list of one, or an empty list when it is off."""
    kept = {name: value for name, value in without_empty(config).items() if value is not False}
    return [kept] if kept else []


def insights_config(config: Mapping[str, Json]) -> dict[str, Json]:
    """Normalized query insights: zero means the default number of the service."""
    return {
        name: _SERVICE_NUMBERS[name] if same(value, 0) and name in _SERVICE_NUMBERS else value
        for name, value in config.items()
    }


# --- The live instance in the terms of the spec ----------------------------------------------------------------------

# Settings whose name in the API differs from the one in the spec.
RENAMED: Final = {
    "diskAutoresize": "storageAutoResize",
    "diskAutoresizeLimit": "storageAutoResizeLimit",
    "diskSize": "dataDiskSizeGb",
    "diskType": "dataDiskType",
}
_SAME_NAME: Final = (
    *("activationPolicy", "activeDirectoryConfig", "advancedMachineFeatures", "authorizedGaeApplications"),
    *("collation", "connectorEnforcement", "dataCacheConfig", "databaseFlags", "deletionProtectionEnabled", "edition"),
    *("insightsConfig", "locationPreference", "maintenanceWindow", "passwordValidationPolicy", "pricingPlan"),
    *("replicationType", "tier", "timeZone"),
)


def instance_view(instance: SqlInstance) -> JsonObject:
    """The live instance in the terms of the spec, for the comparison with the declared tree."""
    if instance.state == PENDING:
        raise OperationRunning(f"instance {instance.name} is still being made")
    if instance.state == FAILED:
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
        spec["replicaConfiguration"] = without_empty({**mysql, "failoverTarget": replica.get("failoverTarget")})
    settings = whole["settings"]
    spec["settings"] = _settings(settings, whole.get("databaseVersion") or "")
    return {"spec": spec, "metadata": {"labels": instance.settings.userLabels or {}}}


_TOP: Final = ("databaseVersion", "region", "instanceType", "maintenanceVersion")


def _references(whole: dict[str, Any]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if whole.get("masterInstanceName"):
        found["masterInstanceRef"] = {"external": whole["masterInstanceName"]}
    key = (whole.get("diskEncryptionConfiguration") or {}).get("kmsKeyName")
    if key:
        found["encryptionKMSCryptoKeyRef"] = {"external": relative_link(key)}
    other = (whole.get("replicationCluster") or {}).get("failoverDrReplicaName")
    if other:
        name = instance_path(other, "").rpartition(":")[2]
        found["replicationCluster"] = {"failoverDrReplicaRef": {"external": name}}
    return found


def _settings(settings: dict[str, Any], database_version: str) -> dict[str, Any]:
    found = {name: settings[name] for name in _SAME_NAME if settings.get(name) is not None}
    found |= {name: settings[api_name] for name, api_name in RENAMED.items() if settings.get(api_name) is not None}
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
    if without_empty(audit):
        rest = {name: value for name, value in without_empty(audit).items() if name != "bucket"}
        bucket = {"bucketRef": {"external": audit["bucket"]}} if audit.get("bucket") else {}
        found["sqlServerAuditConfig"] = {**bucket, **rest}
    return found


def _backups(backups: dict[str, Any]) -> dict[str, Any]:
    outputs = ("backupTier", "transactionalLogStorageState")
    return {name: value for name, value in backups.items() if name not in outputs and value is not None}


def _network(network: dict[str, Any], database_version: str) -> dict[str, Any]:
    refs = ("authorizedNetworks", "privateNetwork", "pscConfig")
    found = {name: value for name, value in without_empty(network).items() if name not in refs}
    if network.get("authorizedNetworks"):
        found["authorizedNetworks"] = [authorized_network(one) for one in network["authorizedNetworks"]]
    if network.get("privateNetwork"):
        found["privateNetworkRef"] = {"external": relative_link(network["privateNetwork"])}
    if psc := psc_config(network.get("pscConfig") or {}):
        found["pscConfig"] = psc
    if not found.get("sslMode") and found.get("requireSsl"):
        found["sslMode"] = ssl_mode(requires_ssl=True, database_version=database_version)
    return found
