"""SQLInstance as Config Connector handles it: what it sends, when, and in which order. Nothing here is setpoint's.

Written from the rules that its recordings follow, so that setpoint can be compared with it for any manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.wire import PROJECT, Wire, WireRequest

Body = dict[str, Any]
_PLAIN: Final = "ALLOW_UNENCRYPTED_AND_ENCRYPTED"
_REPLICA: Final = "mysqlReplicaConfiguration"


@dataclass
class UpstreamInstance:
    """The controller. `secrets` are texts by the name of their Secret."""

    wire: Wire
    secrets: Mapping[str, str]

    def apply(self, manifest: Body) -> None:
        """Reconciles a manifest."""
        status, live = self.wire.send(WireRequest("GET", ("instances", _name(manifest))))
        if status == 404:
            self._create(manifest)
        else:
            self._update(manifest, live)

    def delete(self, manifest: Body) -> None:
        """Deletes the resource, and the instance unless it is abandoned."""
        annotations = manifest["metadata"]["annotations"]
        if annotations.get("cnrm.cloud.google.com/deletion-policy") != "abandon":
            self._write("DELETE", ("instances", _name(manifest)))

    def _create(self, manifest: Body) -> None:
        spec, name = manifest["spec"], _name(manifest)
        if source := spec.get("cloneSource"):
            self._write("POST", ("instances", _other(source["sqlInstanceRef"]), "clone"), _clone(spec, name))
            return
        self._write("POST", ("instances",), self.desired(manifest, None))
        _, users = self.wire.send(WireRequest("GET", ("instances", name, "users")))
        for user in users["items"]:
            if spec.get("databaseVersion", "").startswith("MYSQL") and user["name"] == "root":
                self._write("DELETE", ("instances", name, "users"), None, {"host": user["host"], "name": "root"})
        if version := spec.get("maintenanceVersion"):
            self._write("PATCH", ("instances", name), {"maintenanceVersion": version})

    def _update(self, manifest: Body, live: Body) -> None:
        spec, name = manifest["spec"], _name(manifest)
        unmanaged = _unmanaged(manifest)
        if spec.get("databaseVersion") not in (None, live["databaseVersion"]):
            live = self._patch(name, {"databaseVersion": spec["databaseVersion"]})
        edition = spec["settings"].get("edition", "ENTERPRISE")
        if not unmanaged & {"spec.settings", "spec.settings.edition"} and edition != live["settings"]["edition"]:
            live = self._patch(name, {"settings": {"edition": edition, "tier": spec["settings"]["tier"]}})
        version = spec.get("maintenanceVersion")
        if version and version != live["maintenanceVersion"] and "spec.maintenanceVersion" not in unmanaged:
            live = self._patch(name, {"maintenanceVersion": version})
        desired = self.desired(manifest, live)
        for path in unmanaged:
            _leave(desired, live, path)
        if comparable(desired) != comparable(live, desired):
            self._write("PUT", ("instances", name), desired)

    def _patch(self, name: str, body: Body) -> Body:
        self._write("PATCH", ("instances", name), body)
        live: Body = self.wire.send(WireRequest("GET", ("instances", name)))[1]
        return live

    def _write(self, method: str, steps: tuple[str, ...], body: Body | None = None, query: Any = None) -> None:
        self.wire.send(WireRequest(method, steps, query or {}, body))

    def desired(self, manifest: Body, live: Body | None) -> Body:
        """The whole instance; `live` is the one that it replaces."""
        spec = manifest["spec"]
        body: Body = {"kind": "sql#instance", "name": _name(manifest)}
        body["instanceType"] = spec.get("instanceType", "CLOUD_SQL_INSTANCE")
        body |= {name: spec[name] for name in ("databaseVersion", "region") if spec.get(name)}
        if live is not None:
            body["maintenanceVersion"] = spec.get("maintenanceVersion") or live["maintenanceVersion"]
        if ref := spec.get("masterInstanceRef"):
            body["masterInstanceName"] = ref.get("external") or f"{PROJECT}:{ref['name']}"
        if ref := spec.get("encryptionKMSCryptoKeyRef"):
            key = {"kind": "sql#diskEncryptionConfiguration", "kmsKeyName": ref["external"]}
            body["diskEncryptionConfiguration"] = key
        if password := spec.get("rootPassword"):
            body["rootPassword"] = self._text(password)
        if replica := spec.get("replicaConfiguration"):
            body["replicaConfiguration"] = self._replica(replica)
        if cluster := spec.get("replicationCluster"):
            body["replicationCluster"] = {"failoverDrReplicaName": _other(cluster["failoverDrReplicaRef"])}
        labels = {key: value for key, value in manifest["metadata"].get("labels", {}).items() if key.count("/") != 1}
        settings = Settings(spec.get("databaseVersion", ""), spec["settings"], live).body()
        body["settings"] = {**settings, "userLabels": {**labels, "managed-by-cnrm": "true"}}
        return body

    def _replica(self, spec: Body) -> Body:
        inner = {name: value for name, value in spec.items() if name != "failoverTarget" and value != ""}
        if "password" in inner:
            inner["password"] = self._text(inner["password"])
        if "masterHeartbeatPeriod" in inner:
            inner["masterHeartbeatPeriod"] = str(inner["masterHeartbeatPeriod"])
        body: Body = {"kind": "sql#replicaConfiguration"}
        if "failoverTarget" in spec:
            body["failoverTarget"] = spec["failoverTarget"]
        return {**body, _REPLICA: {"kind": f"sql#{_REPLICA}", **inner}} if inner else body

    def _text(self, secret: Body) -> str:
        text: str = secret.get("value") or self.secrets[secret["valueFrom"]["secretKeyRef"]["name"]]
        return text


@dataclass
class Settings:
    """The settings of one instance, from the spec's to the API's."""

    version: str
    spec: Body
    live: Body | None

    def body(self) -> Body:
        """The settings to send."""
        spec = self.spec
        body: Body = {
            "kind": "sql#settings",
            "activationPolicy": "ALWAYS",
            "availabilityType": "ZONAL",
            "connectorEnforcement": "NOT_REQUIRED",
            "dataDiskType": spec.get("diskType", "PD_SSD"),
            "edition": "ENTERPRISE",
            "pricingPlan": "PER_USE",
            "replicationType": "SYNCHRONOUS",
            "storageAutoResize": spec.get("diskAutoresize", True),
            "ipConfiguration": self._network(),
            **{name: spec[name] for name in _AS_THEY_ARE if name in spec and spec[name] not in ("", [])},
            **{name: _with_kind(name, spec[name]) for name in _WITH_A_KIND if name in spec},
            **self._renamed(),
            **self._chosen(),
        }
        if "backupConfiguration" in spec:
            body["backupConfiguration"] = self._backups()
        if "insightsConfig" in spec:
            body["insightsConfig"] = {"queryPlansPerMinute": 5, **spec["insightsConfig"]}
        if audit := spec.get("sqlServerAuditConfig"):
            rest = {name: value for name, value in audit.items() if name != "bucketRef"}
            body["sqlServerAuditConfig"] = {"kind": "sql#sqlServerAuditConfig", "bucket": _bucket(audit), **rest}
        return body

    def _renamed(self) -> Body:
        spec, body = self.spec, dict[str, Any]()
        if spec.get("diskSize"):
            body["dataDiskSizeGb"] = str(spec["diskSize"])
        if "diskAutoresizeLimit" in spec:
            body["storageAutoResizeLimit"] = str(spec["diskAutoresizeLimit"])
        if "crashSafeReplication" in spec:
            body["crashSafeReplicationEnabled"] = spec["crashSafeReplication"]
        if "denyMaintenancePeriod" in spec:
            body["denyMaintenancePeriods"] = [spec["denyMaintenancePeriod"]]
        return body

    def _chosen(self) -> Body:
        """The live values of unspecified fields."""
        if self.live is None:
            return {}
        live, spec = self.live["settings"], self.spec
        body: Body = {"settingsVersion": live["settingsVersion"]}
        if "backupConfiguration" not in spec and not live["backupConfiguration"].get("enabled"):
            body["backupConfiguration"] = _without_zeros(live["backupConfiguration"])
        if "locationPreference" not in spec:
            body["locationPreference"] = _without_zeros(live["locationPreference"])
        if "diskSize" not in spec and spec.get("diskAutoresize", True):
            body["dataDiskSizeGb"] = live["dataDiskSizeGb"]
        return body

    def _backups(self) -> Body:
        specified = {name: value for name, value in self.spec["backupConfiguration"].items() if value != ""}
        own = {"retainedBackups": 15 if self.spec.get("edition") == "ENTERPRISE_PLUS" else 7, "retentionUnit": "COUNT"}
        kept = {name: value for name, value in specified.get("backupRetentionSettings", {}).items() if value}
        return {"kind": "sql#backupConfiguration", **specified, "backupRetentionSettings": {**own, **kept}}

    def _network(self) -> Body:
        if "ipConfiguration" not in self.spec:
            return {"ipv4Enabled": True, "sslMode": _PLAIN}
        spec = self.spec["ipConfiguration"]
        refs = ("privateNetworkRef", "pscConfig", "authorizedNetworks")
        body = {"ipv4Enabled": True, "enablePrivatePathForGoogleCloudServices": False, "sslMode": self._ssl(spec)}
        body |= {name: value for name, value in spec.items() if name not in refs and value != ""}
        if spec.get("authorizedNetworks"):
            body["authorizedNetworks"] = [{"kind": "sql#aclEntry", **one} for one in spec["authorizedNetworks"]]
        if spec.get("privateNetworkRef"):
            body["privateNetwork"] = spec["privateNetworkRef"]["external"].partition("/v1/")[2]
        if spec.get("pscConfig"):
            body["pscConfig"] = spec["pscConfig"][0]
        return body

    def _ssl(self, spec: Body) -> str:
        if not spec.get("requireSsl"):
            return _PLAIN
        is_certain = self.version.startswith(("MYSQL", "POSTGRES"))
        return "TRUSTED_CLIENT_CERTIFICATE_REQUIRED" if is_certain else "ENCRYPTED_ONLY"


_AS_THEY_ARE: Final = (
    *("activationPolicy", "advancedMachineFeatures", "authorizedGaeApplications", "availabilityType", "collation"),
    *("connectorEnforcement", "dataCacheConfig", "databaseFlags", "deletionProtectionEnabled", "edition"),
    *("passwordValidationPolicy", "pricingPlan", "replicationType", "tier", "timeZone"),
)
_WITH_A_KIND: Final = ("activeDirectoryConfig", "locationPreference", "maintenanceWindow")


def _with_kind(name: str, part: Body) -> Body:
    hour = {"hour": part["hour"]} if "hour" in part else {}
    return {"kind": f"sql#{name}", **_without_zeros(part), **hour}


# --- What causes a write of the whole instance ------------------------------------------------------------------------


def comparable(body: Body, beside: Body | None = None) -> Body:
    """The compared fields of an instance; `beside` is the desired one, which decides which fields are ignored."""
    names = ("databaseVersion", "instanceType", "maintenanceVersion", "masterInstanceName", "name", "region")
    found = {name: body.get(name) or "" for name in names}
    key, cluster = body.get("diskEncryptionConfiguration", {}), body.get("replicationCluster", {})
    replica = body.get("replicaConfiguration", {})
    inner = {name: value for name, value in replica.get(_REPLICA, {}).items() if name != "password"}
    return {
        **found,
        "key": key.get("kmsKeyName", ""),
        "cluster": cluster.get("failoverDrReplicaName", ""),
        "replica": _plain({"failoverTarget": replica.get("failoverTarget"), **inner}),
        "settings": _comparable_settings(body["settings"], (beside or body)["settings"]),
    }


def _comparable_settings(settings: Body, desired: Body) -> Body:
    found = {name: value for name, value in settings.items() if name != "crashSafeReplicationEnabled"}
    backups = dict(found.pop("backupConfiguration", {}))
    wanted = desired.get("backupConfiguration", {})
    for name in ("startTime", "transactionLogRetentionDays"):
        if not wanted.get(name):
            backups.pop(name, None)
    for name in ("backupTier", "transactionalLogStorageState"):
        backups.pop(name, None)
    insights = {"queryPlansPerMinute": 5, "queryStringLength": 1024, **_plain(found.pop("insightsConfig", {}))}
    network = {"ipv4Enabled": True, "sslMode": _PLAIN, **found.pop("ipConfiguration", {})}
    networks = sorted(network.pop("authorizedNetworks", []), key=lambda one: (one.get("name", ""), one["value"]))
    return _plain(
        {
            **found,
            "availabilityType": found.get("availabilityType", "").upper(),
            "backups": _plain(backups),
            "databaseFlags": sorted(found.get("databaseFlags", []), key=lambda one: str(one["name"])),
            "insights": insights,
            "network": {**_plain(network), "ipv4Enabled": network["ipv4Enabled"], "networks": networks},
            "storageAutoResize": found.get("storageAutoResize", True),
        }
    )


def _plain(part: Mapping[str, Any]) -> Body:
    """A part without empty values, recursively."""
    below = {name: _plain(value) if isinstance(value, Mapping) else value for name, value in part.items()}
    empty_values: tuple[Any, ...] = (None, False, 0, "", [], {}, "0")
    return {name: value for name, value in below.items() if name != "kind" and value not in empty_values}


def _without_zeros(part: Mapping[str, Any]) -> Body:
    """A part without zeros, as its encoder omits them."""
    below = {name: _without_zeros(value) if isinstance(value, Mapping) else value for name, value in part.items()}
    return {name: value for name, value in below.items() if value not in (None, False, 0, "", [])}


def _leave(desired: Body, live: Body, path: str) -> None:
    """The live value at an unmanaged path."""
    steps = _API[path]
    for step in steps[:-1]:
        desired, live = desired.setdefault(step, {}), live.get(step, {})
    if steps[-1] in live:
        desired[steps[-1]] = live[steps[-1]]
    else:
        desired.pop(steps[-1], None)


_API: Final = {
    "spec.replicaConfiguration": ("replicaConfiguration",),
    "spec.replicaConfiguration.username": ("replicaConfiguration", _REPLICA, "username"),
    "spec.replicaConfiguration.password": ("replicaConfiguration", _REPLICA, "password"),
    "spec.settings.edition": ("settings", "edition"),
    "spec.settings.diskSize": ("settings", "dataDiskSizeGb"),
    "spec.settings.ipConfiguration.ipv4Enabled": ("settings", "ipConfiguration", "ipv4Enabled"),
}


def _unmanaged(manifest: Body) -> set[str]:
    listed: str = manifest["metadata"].get("annotations", {}).get("cnrm.cloud.google.com/unmanaged", "")
    return set(listed.split(",")) - {""}


def _clone(spec: Body, name: str) -> Body:
    source, settings = spec["cloneSource"], spec["settings"]
    context: Body = {"destinationInstanceName": name, "kind": "sql#cloneContext"}
    context |= {member: source[member] for member in ("databaseNames", "pointInTime") if source.get(member)}
    place = settings.get("locationPreference", {})
    for member, value in (
        ("preferredZone", place.get("zone")),
        ("preferredSecondaryZone", place.get("secondaryZone")),
        ("allocatedIpRange", settings.get("ipConfiguration", {}).get("allocatedIpRange")),
    ):
        if value:
            context[member] = value
    return {"cloneContext": context}


def _name(manifest: Body) -> str:
    name: str = manifest["spec"].get("resourceID") or manifest["metadata"]["name"]
    return name


def _other(ref: Body) -> str:
    name: str = ref.get("external") or ref["name"]
    return name


def _bucket(audit: Body) -> str:
    return f"gs://{audit['bucketRef'].get('external') or audit['bucketRef']['name']}"
