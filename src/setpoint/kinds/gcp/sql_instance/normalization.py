"""One form for equal values: times, SSL modes, instance names; and the live instance in the terms of the spec."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.errors import OperationRunning, RemoteRefused
from setpoint.kinds.gcp.shared.config_connector import relative_link
from setpoint.kinds.gcp.sql_instance import live
from setpoint.kinds.gcp.sql_instance.spec import UNENCRYPTED

# A tree of SqlInstanceTree, or a part of one.
InstanceSubtree: TypeAlias = Mapping[str, Any]
CERTIFICATE: Final = "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
_REQUIRES_SSL: Final = Path(("settings", "ipConfiguration", "requireSsl"))
_SSL_MODE: Final = Path(("settings", "ipConfiguration", "sslMode"))
_SERVICE_NUMBERS: Final = {"queryPlansPerMinute": 5, "queryStringLength": 1024}
_ENCRYPTED: Final = "ENCRYPTED_ONLY"


def ssl_mode(*, requires_ssl: bool, database_version: str) -> str:
    """The SSL mode that the older switch stands for."""
    if not requires_ssl:
        return UNENCRYPTED
    return CERTIFICATE if database_version.startswith(("MYSQL", "POSTGRES")) else _ENCRYPTED


def with_ssl_mode(spec: Mapping[str, Json], database_version: str) -> Mapping[str, Json]:
    """The author's spec with the SSL mode that the older switch asks for, when that switch is all that was said."""
    if get_at(spec, _REQUIRES_SSL) is not True or isinstance(get_at(spec, _SSL_MODE), str):
        return spec
    found = set_at(spec, _SSL_MODE, ssl_mode(requires_ssl=True, database_version=database_version))
    assert isinstance(found, Mapping)
    return found


def normalized_time(text: str) -> str:
    """A time in one spelling: UTC, no more digits than it needs; what is no time is left as it is."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    if found.tzinfo is None:
        return text
    plain = found.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{plain.rstrip('0') if '.' in plain else plain}Z"


def instance_path(text: str, project: str) -> str:
    """`project:instance`, for an instance by its bare name, by that very form, or by a link."""
    if ":" in text and "/" not in text:
        return text
    _, found, rest = relative_link(text).partition("projects/")
    owner, _, name = rest.partition("/instances/")
    return f"{owner}:{name}" if found and name else f"{project}:{text}"


def without_empty(part: Mapping[str, Json]) -> dict[str, Json]:
    """A part without what says nothing in it: nulls, empty lists, empty text."""
    return {name: value for name, value in part.items() if value not in (None, "", [])}


def authorized_network(entry: Mapping[str, Json]) -> dict[str, Json]:
    """An authorized network as it is compared."""
    plain = without_empty(entry)
    until = plain.get("expirationTime")
    return {**plain, "expirationTime": normalized_time(until)} if isinstance(until, str) else plain


def psc_config(config: Mapping[str, Json]) -> list[Json]:
    """Private Service Connect as it is compared: a list of one, or of none when it is off."""
    plain = {name: value for name, value in without_empty(config).items() if value is not False}
    return [plain] if plain else []


def insights_config(config: Mapping[str, Json]) -> dict[str, Json]:
    """Query insights as they are compared: a zero here is the service's own figure."""
    return {
        name: _SERVICE_NUMBERS[name] if same(value, 0) and name in _SERVICE_NUMBERS else value
        for name, value in config.items()
    }


# What the spec calls otherwise.
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


def instance_view(instance: live.SqlInstance) -> JsonObject:
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
