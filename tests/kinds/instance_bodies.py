"""Request bodies and differences of an instance, as pure functions: without a service."""

from typing import Any

import msgspec

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, Present, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import read_instance
from setpoint.kinds.gcp.sql_instance.requests import insert_body, put_body
from tests.kinds.effective_states import effective_over, plan_over

KIND = SqlInstanceKind(GoogleClient(HttpClient(), GoogleSettings()))
TIER = "db-custom-1-3840"
# The settings that are sent for every instance.
ALWAYS = {
    "activationPolicy": "ALWAYS",
    "availabilityType": "ZONAL",
    "connectorEnforcement": "NOT_REQUIRED",
    "dataDiskType": "PD_SSD",
    "edition": "ENTERPRISE",
    "ipConfiguration": {"ipv4Enabled": True, "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED"},
    "kind": "sql#settings",
    "pricingPlan": "PER_USE",
    "replicationType": "SYNCHRONOUS",
    "storageAutoResize": True,
    "tier": TIER,
    "userLabels": {"managed-by-cnrm": "true"},
}
# What the service returns by default.
BACKUPS = {
    "backupRetentionSettings": {"retainedBackups": 7, "retentionUnit": "COUNT"},
    "enabled": False,
    "kind": "sql#backupConfiguration",
    "startTime": "12:00",
    "transactionLogRetentionDays": 7,
    "transactionalLogStorageState": "DISK",
}
LIVE = {
    **ALWAYS,
    "authorizedGaeApplications": [],
    "backupConfiguration": BACKUPS,
    "dataDiskSizeGb": "10",
    "deletionProtectionEnabled": False,
    "ipConfiguration": {**ALWAYS["ipConfiguration"], "authorizedNetworks": [], "requireSsl": False},  # type: ignore[dict-item]  # a literal of several types
    "locationPreference": {"kind": "sql#locationPreference", "zone": "us-central1-a"},
    "settingsVersion": "5",
    "storageAutoResizeLimit": "0",
}


def manifest(settings: dict[str, Any], **spec: Any) -> Resource:
    return Resource(
        {
            "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
            "kind": "SQLInstance",
            "metadata": {"name": "i", "namespace": "p", "uid": "u", "annotations": spec.pop("annotations", {})},
            "spec": {"databaseVersion": "MYSQL_8_0", **spec, "settings": {"tier": TIER, **settings}},
        }
    )


def intent_for(resource: Resource) -> Intent:
    return intent_of(resource, KIND, ResolvedReferences())


def observed(settings: dict[str, Any], **members: Any) -> Present[SqlInstance]:
    whole = {
        "name": "i",
        "databaseVersion": "MYSQL_8_0",
        "maintenanceVersion": "M.1",
        "instanceType": "CLOUD_SQL_INSTANCE",
    }
    found = read_instance(msgspec.json.encode({**whole, **members, "settings": {**LIVE, **settings}}), "i")
    return Present(found.instance, None, found.version)


def inserted(settings: dict[str, Any], **spec: Any) -> dict[str, Any]:
    intent = intent_for(manifest(settings, **spec))
    return insert_body(intent, effective_over(KIND, intent).tree)


def replaced(resource: Resource, before: Present[SqlInstance]) -> dict[str, Any]:
    intent, view = intent_for(resource), KIND.view(before.live)
    found = effective_over(KIND, intent, view)
    return put_body(intent, found.declared, found.tree, before)


def differing(resource: Resource, before: Present[SqlInstance]) -> list[str]:
    changes = plan_over(KIND, intent_for(resource), KIND.view(before.live)).changes
    return [str(change.path) for change in changes]
