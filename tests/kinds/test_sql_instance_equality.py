"""Equal values of a SQLInstance, for which nothing is sent; and invalid manifests."""

import asyncio
from typing import Any

import pytest

from setpoint.engine.context import EngineContext
from setpoint.engine.intent import check_manifest, intent_of
from setpoint.engine.kind import Reference, ResolvedReferences
from setpoint.engine.references import resolve_dependencies
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.sql_instance.requests import insert_body
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.kinds.effective_states import effective_over
from tests.kinds.instance_bodies import ALWAYS, BACKUPS, KIND, differing, inserted, manifest, observed

MYSQL_REPLICA = {"mysqlReplicaConfiguration": {"username": "u", "connectRetryInterval": 60}, "failoverTarget": False}
EQUAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"availabilityType": "zonal"}, {}),
    ({"availabilityType": "REGIONAL"}, {"availabilityType": "regional"}),
    ({"edition": "ENTERPRISE"}, {"edition": None}),
    ({"diskAutoresize": True}, {"storageAutoResize": None}),
    ({"dataCacheConfig": {"dataCacheEnabled": False}}, {}),
    ({"dataCacheConfig": {}}, {}),
    ({}, {"dataCacheConfig": {"dataCacheEnabled": False}}),
    ({"insightsConfig": {}}, {}),
    (
        {"insightsConfig": {"queryPlansPerMinute": 0, "queryStringLength": 0}},
        {"insightsConfig": {"queryPlansPerMinute": 5, "queryStringLength": 1024}},
    ),
    ({"insightsConfig": {"queryPlansPerMinute": 5}}, {"insightsConfig": {"queryPlansPerMinute": 0}}),
    ({"maintenanceWindow": {}}, {}),
    ({"maintenanceWindow": {"hour": 0, "day": 1}}, {"maintenanceWindow": {"day": 1}}),
    ({"ipConfiguration": {}}, {"ipConfiguration": None}),
    ({"ipConfiguration": {"ipv4Enabled": True}}, {}),
    (
        {"ipConfiguration": {"sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"}},
        {
            "ipConfiguration": {
                "ipv4Enabled": True,
                "requireSsl": True,
                "sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED",
            }
        },
    ),
    (
        {"ipConfiguration": {"requireSsl": True}},
        {
            "ipConfiguration": {
                "ipv4Enabled": True,
                "requireSsl": True,
                "sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED",
            }
        },
    ),
    ({"ipConfiguration": {"pscConfig": [{"pscEnabled": False}]}}, {}),
    (
        {"ipConfiguration": {"authorizedNetworks": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}},
        {"ipConfiguration": {"authorizedNetworks": [{"name": "b", "value": "2"}, {"name": "a", "value": "1"}]}},
    ),
    (
        {"ipConfiguration": {"authorizedNetworks": [{"value": "1", "expirationTime": "2099-01-01T00:00:00Z"}]}},
        {"ipConfiguration": {"authorizedNetworks": [{"value": "1", "expirationTime": "2099-01-01T00:00:00.000Z"}]}},
    ),
    (
        {"databaseFlags": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]},
        {"databaseFlags": [{"name": "b", "value": "2"}, {"name": "a", "value": "1"}]},
    ),
    ({}, {"activeDirectoryConfig": {"domain": "", "kind": "sql#activeDirectoryConfig"}}),
    ({"backupConfiguration": {}}, {}),
    ({"backupConfiguration": {"enabled": False}}, {}),
    ({"backupConfiguration": {"startTime": "03:00"}}, {}),
    ({"authorizedGaeApplications": []}, {}),
    ({"locationPreference": {"zone": "us-central1-a"}}, {}),
    ({"locationPreference": {}}, {}),
    ({"diskSize": 10}, {}),
    ({"diskSize": 10}, {"dataDiskSizeGb": "25"}),
    ({"crashSafeReplication": True}, {}),
]


@pytest.mark.parametrize(("declared", "live"), EQUAL, ids=[f"{declared} and {live}" for declared, live in EQUAL])
def test_values_that_are_equivalent_to_the_service_are_equal(declared: dict[str, Any], live: dict[str, Any]) -> None:
    assert differing(manifest(declared), observed(live)) == []


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"pricingPlan": "PACKAGE"}, "spec.settings.pricingPlan"),
    ({}, {"databaseFlags": [{"name": "a", "value": "1"}]}, "spec.settings.databaseFlags[name=a]"),
    ({}, {"maintenanceWindow": {"day": 1}}, "spec.settings.maintenanceWindow.day"),
    ({}, {"storageAutoResize": False}, "spec.settings.diskAutoresize"),
    ({}, {"insightsConfig": {"queryStringLength": 2048}}, "spec.settings.insightsConfig.queryStringLength"),
    ({}, {"userLabels": {"managed-by-cnrm": "true", "x": "y"}}, "metadata.labels.x"),
    (
        {"backupConfiguration": {"enabled": False}},
        {
            "backupConfiguration": {
                **BACKUPS,
                "backupRetentionSettings": {"retainedBackups": 9, "retentionUnit": "COUNT"},
            }
        },
        "spec.settings.backupConfiguration.backupRetentionSettings.retainedBackups",
    ),
    (
        {"deletionProtectionEnabled": False},
        {"deletionProtectionEnabled": True},
        "spec.settings.deletionProtectionEnabled",
    ),
]


@pytest.mark.parametrize(("declared", "live", "path"), DIFFERENT, ids=[path for _, _, path in DIFFERENT])
def test_every_difference_is_named(declared: dict[str, Any], live: dict[str, Any], path: str) -> None:
    assert differing(manifest(declared), observed(live)) == [path]


def test_the_replica_configuration_is_compared_without_its_secrets() -> None:
    declared = {"username": "u", "connectRetryInterval": 60, "clientKey": "k", "password": {"value": "p"}}
    live = observed({}, replicaConfiguration=MYSQL_REPLICA)

    assert differing(manifest({}, replicaConfiguration=declared), live) == []
    assert differing(manifest({}, replicaConfiguration={**declared, "username": "v"}), live) == [
        "spec.replicaConfiguration.username"
    ]


@pytest.mark.parametrize("external", ["primary", "p:primary", "projects/p/instances/primary"])
def test_a_primary_may_be_referred_to_in_every_form(external: str) -> None:
    live = observed({}, masterInstanceName="p:primary", instanceType="READ_REPLICA_INSTANCE")
    declared = manifest({}, masterInstanceRef={"external": external}, instanceType="READ_REPLICA_INSTANCE")

    assert differing(declared, live) == []


UNMANAGED = (
    *("spec.instanceType", "spec.maintenanceVersion", "spec.replicationCluster", "spec.settings"),
    *("spec.replicationCluster.failoverDrReplicaRef", "spec.replicaConfiguration"),
    *(f"spec.replicaConfiguration.{name}" for name in ("caCertificate", "clientCertificate", "clientKey", "username")),
    *(f"spec.replicaConfiguration.{name}" for name in ("connectRetryInterval", "dumpFilePath", "failoverTarget")),
    *(f"spec.replicaConfiguration.{name}" for name in ("masterHeartbeatPeriod", "password", "sslCipher")),
    "spec.replicaConfiguration.verifyServerCertificate",
    *(f"spec.settings.{name}" for name in ("activationPolicy", "backupConfiguration", "connectorEnforcement")),
    *(f"spec.settings.backupConfiguration.{name}" for name in ("enabled", "pointInTimeRecoveryEnabled", "startTime")),
    "spec.settings.backupConfiguration.transactionLogRetentionDays",
    "spec.settings.backupConfiguration.backupRetentionSettings",
    "spec.settings.backupConfiguration.backupRetentionSettings.retainedBackups",
    "spec.settings.backupConfiguration.backupRetentionSettings.retentionUnit",
    *(f"spec.settings.{name}" for name in ("dataCacheConfig", "dataCacheConfig.dataCacheEnabled", "diskAutoresize")),
    *(f"spec.settings.{name}" for name in ("diskAutoresizeLimit", "diskSize", "diskType", "edition")),
    *(f"spec.settings.{name}" for name in ("ipConfiguration", "ipConfiguration.ipv4Enabled", "pricingPlan")),
    *(f"spec.settings.{name}" for name in ("locationPreference", "locationPreference.zone")),
)


def test_every_path_that_config_connector_can_leave_unmanaged_can_be_unmanaged() -> None:
    declared = {"edition": "INVALID", "activationPolicy": "INVALID", "diskType": "INVALID", "pricingPlan": "INVALID"}
    listed = {"cnrm.cloud.google.com/unmanaged": ",".join(UNMANAGED)}
    resource = manifest(declared, annotations=listed, instanceType="INVALID", maintenanceVersion="INVALID")

    check_manifest(resource, KIND)

    assert len(set(UNMANAGED)) == 39
    assert differing(resource, observed({"edition": "ENTERPRISE_PLUS", "pricingPlan": "PACKAGE"})) == []


def test_unmanaged_fields_are_created_with_the_defaults() -> None:
    unmanaged = {"cnrm.cloud.google.com/unmanaged": "spec.settings,spec.instanceType"}

    assert inserted({"pricingPlan": "PACKAGE"}, annotations=unmanaged) == {
        **inserted({}),
        "settings": {**ALWAYS, "pricingPlan": "PACKAGE"},
    }


# --- Manifests -------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"tiers": "x"}, {}, "there is no field spec.settings.tiers; did you mean spec.settings.tier?"),
    ({"edition": "STANDARD"}, {}, "spec.settings.edition is 'STANDARD': write ENTERPRISE or ENTERPRISE_PLUS"),
    ({"diskSize": "10"}, {}, "spec.settings.diskSize is text"),
    ({"ipConfiguration": {"pscConfig": [{}, {}]}}, {}, "pscConfig: takes one element: keep one"),
    ({"sqlServerAuditConfig": {}}, {}, "spec.settings.sqlServerAuditConfig.bucketRef is missing: write it"),
    ({}, {"rootPassword": {}}, "spec.rootPassword needs value or valueFrom, and not both"),
    ({}, {"masterInstanceRef": {}}, "spec.masterInstanceRef needs name or external, and not both"),
]


@pytest.mark.parametrize(("settings", "spec", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_an_invalid_spec_is_refused(settings: dict[str, Any], spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        check_manifest(manifest(settings, **spec), KIND)

    assert message in str(refused.value)


def test_references_by_name_resolve_to_names_in_the_service() -> None:
    declared = {
        "ipConfiguration": {"privateNetworkRef": {"name": "net"}},
        "sqlServerAuditConfig": {"bucketRef": {"name": "logs"}},
    }
    primary = {"masterInstanceRef": {"name": "primary", "namespace": "other"}}
    resource = manifest(declared, **primary)

    async def resolved() -> ResolvedReferences:
        store = MemoryStore(FakeClock(), lambda: "uid")
        for group, kind, name, space in (
            ("compute.cnrm.cloud.google.com", "ComputeNetwork", "net", "p"),
            ("storage.cnrm.cloud.google.com", "StorageBucket", "logs", "p"),
            ("sql.cnrm.cloud.google.com", "SQLInstance", "primary", "other"),
        ):
            named = {"name": name, "namespace": space}
            await store.apply({"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": named, "spec": {}})
        dependencies = [dependency for dependency in KIND.dependencies(resource) if isinstance(dependency, Reference)]
        unready = [Reference(dependency.field, dependency.target, must_be_ready=False) for dependency in dependencies]
        return await resolve_dependencies(unready, resource.ref, EngineContext(store, FakeClock(), {}))

    intent = intent_of(resource, KIND, asyncio.run(resolved()))

    sent: Any = insert_body(intent, effective_over(KIND, intent).tree)
    assert sent["masterInstanceName"] == "other:primary"
    assert sent["settings"]["ipConfiguration"]["privateNetwork"] == "projects/p/global/networks/net"
    assert sent["settings"]["sqlServerAuditConfig"]["bucket"] == "gs://logs"
