"""Requests for a SQLInstance: URLs from its location, and the bodies of insert, clone, update and patch."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.core.overlay import Declared
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Intent, Location, Present, match_location
from setpoint.kinds.gcp.sql_instance.live import SqlInstance
from setpoint.kinds.gcp.sql_instance.normalization import RENAMED, InstanceSubtree, instance_path, instance_view
from setpoint.kinds.gcp.sql_instance.request_fields import (
    all_fields,
    insert_fields,
    non_default_fields,
    patch_fields,
    update_fields,
)

_LOCATION: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)")


def project_and_instance(location: Location) -> tuple[str, str]:
    """The project and the instance of a location."""
    found = match_location(_LOCATION, location)
    return found[1], found[2]


def project_in(location: Location) -> str | None:
    """The project; None when this is not the location of an instance."""
    found = _LOCATION.fullmatch(location)
    return None if found is None else found[1]


def instance_call(location: Location) -> GoogleCall:
    """The URL of the instance."""
    return GoogleCall(GoogleService.SQL, ("projects", *_segments("instances", location)))


def instances_call(project: str) -> GoogleCall:
    """The URL of a project's instances."""
    return GoogleCall(GoogleService.SQL, ("projects", project, "instances"))


def clone_call(project: str, source: str) -> GoogleCall:
    """The URL that clones `source`."""
    return GoogleCall(GoogleService.SQL, ("projects", project, "instances", source, "clone"))


def users_call(location: Location, query: Mapping[str, str] | None = None) -> GoogleCall:
    """The URL of an instance's users, or of the user that the query selects."""
    return GoogleCall(GoogleService.SQL, ("projects", *_segments("instances", location), "users"), query or {})


def _segments(what: str, location: Location) -> tuple[str, str, str]:
    project, instance = project_and_instance(location)
    return project, what, instance


_KINDS: Final = {
    "activeDirectoryConfig": "sql#activeDirectoryConfig",
    "backupConfiguration": "sql#backupConfiguration",
    "locationPreference": "sql#locationPreference",
    "maintenanceWindow": "sql#maintenanceWindow",
}
_AS_TEXT: Final = ("diskSize", "diskAutoresizeLimit")
_TOP: Final = ("databaseVersion", "instanceType", "maintenanceVersion", "region")
_BACKUPS: Final = Path(("spec", "settings", "backupConfiguration"))
_REQUIRES_SSL: Final = Path(("spec", "settings", "ipConfiguration", "requireSsl"))


def insert_body(intent: Intent, wanted: JsonObject) -> dict[str, Json]:
    """The body of an insert."""
    _, name = project_and_instance(intent.location)
    return _as_written(instance_body(insert_fields(wanted), name), intent)


def clone_body(intent: Intent, wanted: JsonObject) -> dict[str, Json]:
    """The body of a clone request. The rest of the spec is sent to the clone once it exists."""
    spec: InstanceSubtree = _mapping(wanted["spec"])
    source: InstanceSubtree = _mapping(intent.resource.spec["cloneSource"])
    settings: InstanceSubtree = spec["settings"]
    place, network = settings.get("locationPreference") or {}, settings.get("ipConfiguration") or {}
    _, name = project_and_instance(intent.location)
    context: dict[str, Json] = {"destinationInstanceName": name, "kind": "sql#cloneContext"}
    context |= {member: source[member] for member in ("databaseNames", "pointInTime") if source.get(member)}
    if source.get("binLogCoordinates"):
        context["binLogCoordinates"] = _log_position(source["binLogCoordinates"])
    for member, value in (
        ("allocatedIpRange", network.get("allocatedIpRange")),
        ("preferredZone", place.get("zone")),
        ("preferredSecondaryZone", place.get("secondaryZone")),
    ):
        if value:
            context[member] = value
    return {"cloneContext": context}


def put_body(intent: Intent, declared: Declared, wanted: JsonObject, before: Present[SqlInstance]) -> dict[str, Json]:
    """The body of a full update, based on the observed settings. `declared` is fitted to the live instance."""
    _, name = project_and_instance(intent.location)
    body = _as_written(instance_body(update_fields(declared, wanted), name), intent)
    settings = dict(_mapping(body["settings"]))
    if isinstance(get_at(declared.tree, _BACKUPS), Missing) and "backupConfiguration" in settings:
        settings["backupConfiguration"] = {**_mapping(settings["backupConfiguration"]), **_own_backups(before.live)}
    return {**body, "settings": {**settings, **_guard(before)}}


def patch_body(intent: Intent, declared: Declared, wanted: JsonObject, before: Present[SqlInstance]) -> dict[str, Json]:
    """The body of a patch: what differs, with null for what is removed. Everything else keeps its value."""
    _, name = project_and_instance(intent.location)
    view = instance_view(before.live)
    had, to_be = instance_body(all_fields(view), name), instance_body(patch_fields(declared, wanted), name)
    to_be.pop("rootPassword", None)
    body = _Patch(before.live.others).made(had, to_be, instance_body(non_default_fields(view), name))
    settings = {**_mapping(body.get("settings", {})), **_guard(before)}
    if network := settings.get("ipConfiguration"):
        settings["ipConfiguration"] = {**_both_about_ssl(intent, network, to_be), **network}
    return {**body, "settings": settings}


def _both_about_ssl(intent: Intent, network: InstanceSubtree, to_be: Mapping[str, Json]) -> dict[str, Json]:
    """`sslMode` and `requireSsl` together when one of them changes: sent alone, it would change the other."""
    if not {"requireSsl", "sslMode"} & network.keys():
        return {}
    whole = _mapping(_mapping(to_be["settings"])["ipConfiguration"])
    is_declared = isinstance(get_at(intent.declared.tree, _REQUIRES_SSL), bool)
    names = ("sslMode", "requireSsl") if is_declared else ("sslMode",)
    return {name: whole[name] for name in names if name in whole}


def instance_body(tree: JsonObject, name: str) -> dict[str, Json]:
    """A tree in the terms of the API."""
    spec, metadata = _mapping(tree.get("spec", {})), _mapping(tree.get("metadata", {}))
    body: dict[str, Json] = {"kind": "sql#instance", "name": name}
    body |= {field: spec[field] for field in _TOP if field in spec}
    if "masterInstanceRef" in spec:
        body["masterInstanceName"] = spec["masterInstanceRef"]["external"]
    if "encryptionKMSCryptoKeyRef" in spec:
        key = spec["encryptionKMSCryptoKeyRef"]["external"]
        body["diskEncryptionConfiguration"] = {"kind": "sql#diskEncryptionConfiguration", "kmsKeyName": key}
    if "rootPassword" in spec:
        body["rootPassword"] = spec["rootPassword"]["value"]
    if "replicaConfiguration" in spec:
        body["replicaConfiguration"] = _replica(spec["replicaConfiguration"])
    if "replicationCluster" in spec:
        other = spec["replicationCluster"]["failoverDrReplicaRef"]["external"]
        body["replicationCluster"] = {"failoverDrReplicaName": other}
    settings = _settings(spec.get("settings") or {})
    return {**body, "settings": {**settings, "userLabels": metadata.get("labels") or {}}}


# --- Parts of an instance --------------------------------------------------------------------------------------------


def _replica(replica: InstanceSubtree) -> Json:
    mysql = {name: value for name, value in replica.items() if name != "failoverTarget"}
    if "password" in mysql:
        mysql["password"] = mysql["password"]["value"]
    if "masterHeartbeatPeriod" in mysql:
        mysql["masterHeartbeatPeriod"] = str(mysql["masterHeartbeatPeriod"])
    body: dict[str, Json] = {"kind": "sql#replicaConfiguration"}
    if "failoverTarget" in replica:
        body["failoverTarget"] = replica["failoverTarget"]
    if mysql:
        body["mysqlReplicaConfiguration"] = {"kind": "sql#mysqlReplicaConfiguration", **mysql}
    return body


def _settings(spec: InstanceSubtree) -> dict[str, Json]:
    body: dict[str, Json] = {"kind": "sql#settings"}
    for name, value in spec.items():
        match name:
            case "ipConfiguration":
                body[name] = _network(value)
            case "denyMaintenancePeriod":
                body["denyMaintenancePeriods"] = [value]
            case "sqlServerAuditConfig":
                body[name] = _audit(value)
            case "crashSafeReplication":
                body["crashSafeReplicationEnabled"] = value
            case _ if name in _KINDS:
                body[name] = {"kind": _KINDS[name], **value}
            case _:
                body[RENAMED.get(name, name)] = str(value) if name in _AS_TEXT else value
    return body


def _network(network: InstanceSubtree) -> Json:
    body = {name: value for name, value in network.items() if name not in ("privateNetworkRef", "pscConfig")}
    if "privateNetworkRef" in network:
        body["privateNetwork"] = network["privateNetworkRef"]["external"]
    if network.get("pscConfig"):
        body["pscConfig"] = network["pscConfig"][0]
    if "authorizedNetworks" in network:
        body["authorizedNetworks"] = [{"kind": "sql#aclEntry", **one} for one in network["authorizedNetworks"]]
    return body


def _audit(audit: InstanceSubtree) -> Json:
    rest = {name: value for name, value in audit.items() if name != "bucketRef"}
    # No bucket: it is unmanaged, and the live instance has none.
    bucket = {"bucket": audit["bucketRef"]["external"]} if "bucketRef" in audit else {}
    return {"kind": "sql#sqlServerAuditConfig", **bucket, **rest}


def _log_position(position: InstanceSubtree) -> Json:
    body: dict[str, Json] = {"kind": "sql#binLogCoordinates"}
    if position.get("binLogFileName"):
        body["binLogFileName"] = position["binLogFileName"]
    if position.get("binLogPosition") is not None:
        body["binLogPosition"] = str(position["binLogPosition"])
    return body


def _own_backups(live: SqlInstance) -> dict[str, Json]:
    """The output-only members of the backup configuration: sent back when the whole configuration is sent."""
    backups: InstanceSubtree = msgspec.to_builtins(live.settings.backupConfiguration)
    own = ("backupTier", "transactionalLogStorageState")
    return {name: backups[name] for name in own if backups.get(name)}


def _guard(before: Present[SqlInstance]) -> dict[str, Json]:
    return {} if before.version is None else {"settingsVersion": before.version}


# --- Spelling and patches --------------------------------------------------------------------------------------------


def _as_written(body: dict[str, Json], intent: Intent) -> dict[str, Json]:
    """The body with the author's spelling of values that are equal after normalization."""
    spec: Any = intent.resource.spec
    primary, (project, _) = (spec.get("masterInstanceRef") or {}).get("external"), project_and_instance(intent.location)
    if primary and same(instance_path(primary, project), body.get("masterInstanceName")):
        body = {**body, "masterInstanceName": primary}
    settings = dict(_mapping(body["settings"]))
    available = spec["settings"].get("availabilityType") or ""
    if same(available.upper(), settings.get("availabilityType")):
        settings["availabilityType"] = available
    insights = spec["settings"].get("insightsConfig")
    if isinstance(insights, Mapping) and isinstance(settings.get("insightsConfig"), Mapping):
        zeros = {name: value for name, value in insights.items() if same(value, 0)}
        settings["insightsConfig"] = {**_mapping(settings["insightsConfig"]), **zeros}
    return {**body, "settings": settings}


@dataclass(frozen=True, slots=True)
class _Patch:
    """Builds the JSON merge patch of an instance with `unmodelled` settings."""

    unmodelled: Sequence[str]

    def made(
        self, had: InstanceSubtree, to_be: InstanceSubtree, to_lose: InstanceSubtree, at: str = ""
    ) -> dict[str, Json]:
        """The patch from `had` to `to_be`, with null for members of `to_lose` that are no longer there."""
        lost = {name: value for name, value in to_lose.items() if name not in to_be}
        body: dict[str, Json] = {name: self._removed(value, f"{at}{name}.") for name, value in lost.items()}
        for name, value in to_be.items():
            before = had.get(name)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                inside = self.made(before, value, to_lose.get(name) or {}, f"{at}{name}.")
                body |= {name: inside} if inside else {}
            elif not same([value], [before]):
                body[name] = value
        return body

    def _removed(self, value: Json, at: str) -> Json:
        """Null; for an object with unmodelled settings in it, null for each of its modelled members."""
        if not isinstance(value, Mapping) or not any(one.startswith(at) for one in self.unmodelled):
            return None
        return {name: self._removed(one, f"{at}{name}.") for name, one in value.items() if name != "kind"}


def _mapping(value: object) -> Mapping[str, Any]:
    assert isinstance(value, Mapping)
    return value
