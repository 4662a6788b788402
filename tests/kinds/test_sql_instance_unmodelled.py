"""Settings of an instance that are kept: those that the spec does not model, and unmanaged ones."""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.core.plan import Action, PlannedWrite
from setpoint.engine.kind import Present
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.requests import patch_body
from tests.clients.scripted_http import ScriptedHttp, response
from tests.kinds.effective_states import effective_over, instance_as_spec
from tests.kinds.instance_bodies import KIND, differing, intent_for, manifest, observed, replaced

UNMANAGED = "cnrm.cloud.google.com/unmanaged"
PLUS = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}


@pytest.mark.parametrize(
    ("settings", "members", "others"),
    [
        ({}, {}, []),
        (
            {"ipConfiguration": {"pscConfig": {"networkAttachmentUri": "projects/p/x"}}},
            {},
            ["settings.ipConfiguration.pscConfig.networkAttachmentUri"],
        ),
        ({}, {"failoverReplica": {"name": "standby"}}, ["failoverReplica.name"]),
        # A replica that another writer stopped; a running one is as declared.
        ({"databaseReplicationEnabled": False}, {}, ["settings.databaseReplicationEnabled"]),
        ({"databaseReplicationEnabled": True}, {}, []),
    ],
)
def test_unmodelled_settings_in_use_are_listed(
    settings: dict[str, Any], members: dict[str, Any], others: list[str]
) -> None:
    assert observed(settings, **members).live.others == others


# Every setting that the spec does not model, in an order other than that of the list.
NETWORK = {
    "customSubjectAlternativeNames": ["a.example.com"],
    "pscConfig": {"networkAttachmentUri": "a", "pscAutoConnections": [{"consumerNetwork": "n"}]},
    "serverCaMode": "CUSTOMER_MANAGED_CAS_CA",
    "serverCaPool": "pool",
    "serverCertificateRotationMode": "AUTOMATIC_ROTATION_DURING_MAINTENANCE",
}
DIRECTORY = {
    "adminCredentialSecretName": "s",
    "dnsServers": ["10.0.0.1"],
    "mode": "CUSTOMER_MANAGED_ACTIVE_DIRECTORY",
    "organizationalUnit": "ou",
}
ALL_SETTINGS = {
    "retainBackupsOnDelete": True,
    "replicationLagMaxSeconds": 60,
    "passwordValidationPolicy": {"disallowCompromisedCredentials": True},
    "ipConfiguration": NETWORK,
    "insightsConfig": {"enhancedQueryInsightsEnabled": True},
    "finalBackupConfig": {"enabled": True, "retentionDays": 3},
    "enableGoogleMlIntegration": True,
    "enableDataplexIntegration": True,
    "databaseReplicationEnabled": False,
    "dataDiskProvisionedThroughput": "200",
    "dataDiskProvisionedIops": "4000",
    "dataApiAccess": "ALLOW_DATA_API",
    "connectionPoolConfig": {"connectionPoolingEnabled": True},
    "activeDirectoryConfig": DIRECTORY,
}
ALL_MEMBERS = {
    "switchTransactionLogsToCloudStorageEnabled": True,
    "replicaConfiguration": {"cascadableReplica": True},
    "onPremisesConfiguration": {"hostPort": "10.0.0.2:3306"},
    "includeReplicasForMajorVersionUpgrade": True,
    "failoverReplica": {"name": "standby", "available": True},
}
ALL_PATHS = [
    "failoverReplica.name",
    "includeReplicasForMajorVersionUpgrade",
    "onPremisesConfiguration.hostPort",
    "replicaConfiguration.cascadableReplica",
    "settings.activeDirectoryConfig.adminCredentialSecretName",
    "settings.activeDirectoryConfig.dnsServers",
    "settings.activeDirectoryConfig.mode",
    "settings.activeDirectoryConfig.organizationalUnit",
    "settings.connectionPoolConfig.connectionPoolingEnabled",
    "settings.dataApiAccess",
    "settings.dataDiskProvisionedIops",
    "settings.dataDiskProvisionedThroughput",
    "settings.databaseReplicationEnabled",
    "settings.enableDataplexIntegration",
    "settings.enableGoogleMlIntegration",
    "settings.finalBackupConfig.enabled",
    "settings.finalBackupConfig.retentionDays",
    "settings.insightsConfig.enhancedQueryInsightsEnabled",
    "settings.ipConfiguration.customSubjectAlternativeNames",
    "settings.ipConfiguration.pscConfig.networkAttachmentUri",
    "settings.ipConfiguration.pscConfig.pscAutoConnections",
    "settings.ipConfiguration.serverCaMode",
    "settings.ipConfiguration.serverCaPool",
    "settings.ipConfiguration.serverCertificateRotationMode",
    "settings.passwordValidationPolicy.disallowCompromisedCredentials",
    "settings.replicationLagMaxSeconds",
    "settings.retainBackupsOnDelete",
    "switchTransactionLogsToCloudStorageEnabled",
]


def test_every_unmodelled_setting_is_listed_in_a_fixed_order() -> None:
    """The list is part of the live digest: another order would be drift of every instance."""
    assert observed(ALL_SETTINGS, **ALL_MEMBERS).live.others == ALL_PATHS


def patched(resource: Resource, before: Present[SqlInstance]) -> Any:
    intent, view = intent_for(resource), KIND.view(before.live)
    found = effective_over(KIND, intent, view)
    return patch_body(intent, found.declared, found.tree, before)["settings"]


def test_removing_a_field_keeps_the_unmodelled_settings_beside_it() -> None:
    insights = {"queryInsightsEnabled": True, "queryStringLength": 2048, "enhancedQueryInsightsEnabled": True}
    window = {"day": 1, "hour": 3}

    body = patched(manifest({}), observed({"insightsConfig": insights, "maintenanceWindow": window}))

    assert body["insightsConfig"] == {"queryInsightsEnabled": None, "queryStringLength": None}
    assert body["maintenanceWindow"] is None


def test_unmanaged_backups_are_not_turned_off() -> None:
    policy = {UNMANAGED: "spec.settings.backupConfiguration.enabled"}
    resource = manifest({**PLUS, "backupConfiguration": None, "pricingPlan": "PACKAGE"}, annotations=policy)
    live = observed({**PLUS, "backupConfiguration": {"enabled": True}})

    assert replaced(resource, live)["settings"]["backupConfiguration"]["enabled"] is True


def test_an_unspecified_region_is_not_removed() -> None:
    live = observed({}, region="us-central1")

    assert [differing(manifest({}, region=region), live) for region in (None, "")] == [[], []]


def test_an_unmanaged_root_password_is_not_sent() -> None:
    http = ScriptedHttp(response(500))
    kind = SqlInstanceKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))
    resource = manifest({}, rootPassword={"value": "s3cret"}, annotations={UNMANAGED: "spec.rootPassword"})
    intent, before = intent_for(resource), observed({})
    wanted = effective_over(KIND, intent, KIND.view(before.live)).tree

    sent = asyncio.run(kind.update(intent, wanted, PlannedWrite(Action.UPDATE, "root password"), before))

    assert (sent, http.requests) == (None, [])


def test_an_audit_configuration_with_an_unmanaged_bucket_is_sent_without_it() -> None:
    policy = {UNMANAGED: "spec.settings.sqlServerAuditConfig.bucketRef"}
    audit = {"bucketRef": {"external": "gs://logs"}, "uploadInterval": "600s"}
    resource = manifest({"sqlServerAuditConfig": audit}, annotations=policy)

    sent = replaced(resource, observed({}))["settings"]["sqlServerAuditConfig"]

    assert sent == {"kind": "sql#sqlServerAuditConfig", "uploadInterval": "600s"}
    assert differing(resource, observed({"sqlServerAuditConfig": sent})) == []
    assert instance_as_spec(observed({"sqlServerAuditConfig": sent}).live).settings.sqlServerAuditConfig is UNSET


@pytest.mark.parametrize("policy", [{}, {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}])
def test_an_unmanaged_binary_log_is_not_turned_on_by_enterprise_plus(policy: dict[str, str]) -> None:
    resource = manifest({**PLUS, "pricingPlan": "PACKAGE"}, annotations=policy)
    live = observed({**PLUS, "backupConfiguration": {"enabled": True, "binaryLogEnabled": False}})

    assert replaced(resource, live)["settings"]["backupConfiguration"]["binaryLogEnabled"] is False
