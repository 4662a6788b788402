"""The fields of a spec that the body of a creation sets: the way back from the terms of each API, written out."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from setpoint.core.plan import PlannedWrite

# What selects the object, and what the API says about its own types.
_IDENTITY: Final = ("name", "instance", "host", "kind")
# By kind: a path of the API, or the beginning of one, and what it is in the spec.
_SPEC_PATHS: Final[Mapping[str, Mapping[str, str]]] = {
    "StorageBucket": {
        "labels": "metadata.labels",
        "iamConfiguration.uniformBucketLevelAccess.enabled": "spec.uniformBucketLevelAccess",
        "iamConfiguration.publicAccessPrevention": "spec.publicAccessPrevention",
        "lifecycle.rule": "spec.lifecycleRule",
        "billing.requesterPays": "spec.requesterPays",
        "encryption.defaultKmsKeyName": "spec.encryption.kmsKeyRef.external",
    },
    "SQLInstance": {
        "masterInstanceName": "spec.masterInstanceRef.external",
        "diskEncryptionConfiguration.kmsKeyName": "spec.encryptionKMSCryptoKeyRef.external",
        "replicationCluster.failoverDrReplicaName": "spec.replicationCluster.failoverDrReplicaRef.external",
        "replicaConfiguration.mysqlReplicaConfiguration": "spec.replicaConfiguration",
        "settings.userLabels": "metadata.labels",
        "settings.storageAutoResizeLimit": "spec.settings.diskAutoresizeLimit",
        "settings.storageAutoResize": "spec.settings.diskAutoresize",
        "settings.dataDiskSizeGb": "spec.settings.diskSize",
        "settings.dataDiskType": "spec.settings.diskType",
        "settings.crashSafeReplicationEnabled": "spec.settings.crashSafeReplication",
        "settings.denyMaintenancePeriods[0]": "spec.settings.denyMaintenancePeriod",
        "settings.ipConfiguration.privateNetwork": "spec.settings.ipConfiguration.privateNetworkRef.external",
        "settings.sqlServerAuditConfig.bucket": "spec.settings.sqlServerAuditConfig.bucketRef.external",
    },
    "SQLDatabase": {},
    "SQLUser": {},
}
# Objects of the API that are one value in the spec.
_UNITS: Final = ("settings.ipConfiguration.pscConfig",)


def sent_fields(kind: str, body: Mapping[str, Any]) -> set[str]:
    """The fields that an insert sets; a list is one field."""
    return {_spec_path(kind, path) for path in _paths(body, "")}


def planned_fields(write: PlannedWrite) -> set[str]:
    """The fields that a planned write sets; a list is one field."""
    return {str(change.path).partition("[name=")[0] for change in write.changes}


def _paths(value: Any, at: str) -> Iterator[str]:
    if at == "settings.denyMaintenancePeriods":
        yield from _paths(value[0], f"{at}[0]")
    elif isinstance(value, Mapping) and value and at not in _UNITS:
        for name, one in value.items():
            if name != "kind" and (at or name not in _IDENTITY):
                yield from _paths(one, f"{at}.{name}".removeprefix("."))
    else:
        yield at


def _spec_path(kind: str, path: str) -> str:
    for start, field in _SPEC_PATHS[kind].items():
        if path == start or path.startswith(f"{start}."):
            return field + path.removeprefix(start)
    return f"spec.{path}"
