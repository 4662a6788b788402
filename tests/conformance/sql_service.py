"""Cloud SQL as in the recordings: it fills in defaults, and every operation is done at once."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.wire import ABSENT, PROJECT, SQL, WireRequest, WireResponse

Body = dict[str, Any]
PLUS: Final = "ENTERPRISE_PLUS"
_FIRST_USERS: Final = {"MYSQL": ("root",), "POSTGRES": ("postgres",), "SQLSERVER": ("sqlserver",)}
# The fields that a patch may change; other fields in it are ignored.
_PATCHED: Final = ("databaseVersion", "maintenanceVersion", "edition", "tier")


class SqlService:
    """The instances of all projects, with their users and databases."""

    def __init__(self) -> None:
        self.instances: dict[str, Body] = {}
        self.users: dict[str, list[Body]] = {}
        self.databases: dict[str, dict[str, Body]] = {}

    def answer(self, request: WireRequest) -> WireResponse:
        """The response to one request; the path starts after `projects/{project}/`."""
        match request.steps:
            case ("operations", _):
                return _done()
            case ("instances",):
                return self._insert(request.body)
            case ("instances", source, "clone"):
                return self._clone(source, request.body["cloneContext"])
            case ("instances", name, *inside):
                if name not in self.instances:
                    return ABSENT
                return self._instance(name, request) if not inside else self._inside(name, tuple(inside), request)
            case _:
                return ABSENT

    def _insert(self, body: Body) -> WireResponse:
        assert "maintenanceVersion" not in body
        body = {name: value for name, value in body.items() if name != "rootPassword"}
        self._put(body["name"], completed(body, {}))
        return _running()

    def _put(self, name: str, instance: Body) -> None:
        self.instances[name] = instance
        engine = instance["databaseVersion"].partition("_")[0]
        host = "%" if engine == "MYSQL" else ""
        self.users[name] = [{"name": one, "host": host, "kind": "sql#user"} for one in _FIRST_USERS[engine]]
        self.databases[name] = {}

    def _clone(self, source: str, context: Body) -> WireResponse:
        wanted = copy.deepcopy(self.instances[source])
        wanted.pop("maintenanceVersion")
        wanted["name"] = context["destinationInstanceName"]
        if zone := context.get("preferredZone"):
            wanted["settings"]["locationPreference"]["zone"] = zone
        self._put(wanted["name"], completed(wanted, {}))
        return _running()

    def _instance(self, name: str, request: WireRequest) -> WireResponse:
        live = self.instances[name]
        match request.method:
            case "GET":
                return 200, copy.deepcopy(live)
            case "PUT":
                body = {member: value for member, value in request.body.items() if member != "rootPassword"}
                self.instances[name] = completed(body, live)
            case "PATCH":
                self.instances[name] = patched(live, request.body)
            case _:
                del self.instances[name]
        return _running()

    def _inside(self, name: str, inside: tuple[str, ...], request: WireRequest) -> WireResponse:
        if inside == ("users",):
            return self._users(name, request)
        databases = self.databases[name]
        if inside == ("databases",):
            databases[request.body["name"]] = {"kind": "sql#database", **_charset(request.body), **request.body}
            return _done()
        found = databases.get(inside[1])
        if found is None:
            return ABSENT
        match request.method:
            case "GET":
                return 200, found
            case "PUT":
                databases[inside[1]] = {**found, **request.body}
            case _:
                del databases[inside[1]]
        return _done()

    def _users(self, name: str, request: WireRequest) -> WireResponse:
        users = self.users[name]
        match request.method:
            case "GET":
                return 200, {"kind": "sql#usersList", "items": users}
            case "POST":
                users.append({"host": "", **request.body, "kind": "sql#user"})
            case "PUT":
                response = (
                    {"passwordPolicy": request.body["passwordPolicy"]} if "passwordPolicy" in request.body else {}
                )
                users[:] = [{**one, **response} if one["name"] == request.query["name"] else one for one in users]
            case _:
                users[:] = [one for one in users if one["name"] != request.query["name"]]
        return _done()


def completed(wanted: Body, live: Body) -> Body:
    """The instance of an insert: the request, over the defaults."""
    version = wanted["databaseVersion"]
    number = int(live.get("settings", {}).get("settingsVersion", 0)) + 1
    settings = {**_settings(wanted, version), "settingsVersion": str(number)}
    own = {name: live[name] for name in ("maintenanceVersion",) if name in live}
    return {
        "kind": "sql#instance",
        "instanceType": "READ_REPLICA_INSTANCE" if wanted.get("masterInstanceName") else "CLOUD_SQL_INSTANCE",
        "maintenanceVersion": _maintenance(version),
        "satisfiesPzi": True,
        "sqlNetworkArchitecture": "NEW_NETWORK_ARCHITECTURE",
        "geminiConfig": {"entitled": False, "activeQueryEnabled": False},
        "state": "RUNNABLE",
        **own,
        **wanted,
        "selfLink": f"{SQL}/projects/{PROJECT}/instances/{wanted['name']}",
        "settings": settings,
    }


def patched(live: Body, patch: Body) -> Body:
    """The instance after a patch, of which only some members have an effect."""
    requested = {**patch, **patch.get("settings", {})}
    effective = {name: requested[name] for name in _PATCHED if name in requested}
    top = {name: value for name, value in effective.items() if name.endswith("Version")}
    settings = {**live["settings"], **{name: value for name, value in effective.items() if name not in top}}
    if effective.get("edition", live["settings"]["edition"]) != live["settings"]["edition"]:
        own = _retention(settings)
        settings["backupConfiguration"] = {**settings["backupConfiguration"], **own}
        settings["dataCacheConfig"] = {"dataCacheEnabled": effective["edition"] == PLUS}
    if "databaseVersion" in top:
        top.setdefault("maintenanceVersion", _maintenance(top["databaseVersion"]))
    return completed({**live, **top, "settings": settings}, live)


def _settings(wanted: Body, version: str) -> Body:
    requested = wanted.get("settings", {})
    is_plus = requested.get("edition") == PLUS
    settings = {
        "activationPolicy": "ALWAYS",
        "authorizedGaeApplications": [],
        "availabilityType": "ZONAL",
        "connectorEnforcement": "NOT_REQUIRED",
        "dataDiskSizeGb": "20" if is_plus else "10",
        "dataDiskType": "PD_SSD",
        "deletionProtectionEnabled": False,
        "edition": "ENTERPRISE",
        "kind": "sql#settings",
        "locationPreference": {"kind": "sql#locationPreference", "zone": f"{wanted.get('region')}-a"},
        "pricingPlan": "PER_USE",
        "replicationType": "SYNCHRONOUS",
        "storageAutoResize": is_plus,
        "storageAutoResizeLimit": "0",
        **requested,
        "backupConfiguration": _backups(requested, version),
        "ipConfiguration": _network(requested.get("ipConfiguration", {}), version),
    }
    if not settings.get("dataCacheConfig", {}).get("dataCacheEnabled"):
        settings.pop("dataCacheConfig", None)
    return settings


def _retention(settings: Mapping[str, Any]) -> Body:
    is_plus = settings.get("edition") == PLUS
    kept = {"retainedBackups": 15 if is_plus else 7, "retentionUnit": "COUNT"}
    return {"backupRetentionSettings": kept, "transactionLogRetentionDays": 14 if is_plus else 7}


def _backups(settings: Body, version: str) -> Body:
    is_plus, requested = settings.get("edition") == PLUS, settings.get("backupConfiguration", {})
    is_mysql = version.startswith("MYSQL")
    backups = {
        "enabled": is_plus,
        "kind": "sql#backupConfiguration",
        "startTime": "12:00",
        "transactionalLogStorageState": "TRANSACTIONAL_LOG_STORAGE_STATE_UNSPECIFIED",
        **({"binaryLogEnabled": True} if is_plus and is_mysql and not requested else {}),
        **({"backupTier": "STANDARD"} if is_plus or version.startswith("SQLSERVER") else {}),
        **_retention(settings),
        **requested,
    }
    backups.pop("pointInTimeRecoveryEnabled" if is_mysql else "binaryLogEnabled", None)
    return backups


def _network(requested: Body, version: str) -> Body:
    requires = requested.get("requireSsl", False)
    by_certificate = "ENCRYPTED_ONLY" if version.startswith("SQLSERVER") else "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
    mode = by_certificate if requires else "ALLOW_UNENCRYPTED_AND_ENCRYPTED"
    return {"authorizedNetworks": [], "ipv4Enabled": True, "requireSsl": False, "sslMode": mode, **requested}


def _maintenance(version: str) -> str:
    return f"{version}_7.R20240514.00_12"


def _charset(body: Body) -> Body:
    return {} if body.get("charset") else {"charset": "utf8", "collation": "utf8_general_ci"}


def _running() -> WireResponse:
    return 200, {"kind": "sql#operation", "name": "operation-1", "operationType": "UPDATE", "status": "PENDING"}


def _done() -> WireResponse:
    return 200, {"kind": "sql#operation", "name": "operation-1", "operationType": "UPDATE", "status": "DONE"}
