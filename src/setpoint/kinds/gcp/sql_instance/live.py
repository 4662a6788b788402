"""The live instance as the API reports it, reduced to the fields that a spec models: no other field changes its digest.

Settings in use that no spec field models are listed, because a full update would reset them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.clients.response_bodies import decode_response, decode_tree
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.kind.typed_spec import Maybe

# States without settings to compare: not yet, or never. Other states are transient and irrelevant to settings.
PENDING: Final = "PENDING_CREATE"
FAILED: Final = "FAILED"


class _Part(Struct, frozen=True, kw_only=True):
    """A part of the instance. Members that are not modelled are dropped."""


class LiveDiskEncryption(_Part, frozen=True):
    kmsKeyName: Maybe[str] = UNSET


class LiveMysqlReplica(_Part, frozen=True):
    caCertificate: Maybe[str] = UNSET
    clientCertificate: Maybe[str] = UNSET
    connectRetryInterval: Maybe[int] = UNSET
    dumpFilePath: Maybe[str] = UNSET
    masterHeartbeatPeriod: Maybe[int] = UNSET
    sslCipher: Maybe[str] = UNSET
    username: Maybe[str] = UNSET
    verifyServerCertificate: Maybe[bool] = UNSET


class LiveReplicaConfiguration(_Part, frozen=True):
    failoverTarget: Maybe[bool] = UNSET
    mysqlReplicaConfiguration: Maybe[LiveMysqlReplica] = UNSET


class LiveReplicationCluster(_Part, frozen=True):
    failoverDrReplicaName: Maybe[str] = UNSET


class LiveActiveDirectory(_Part, frozen=True):
    domain: Maybe[str] = UNSET


class LiveMachineFeatures(_Part, frozen=True):
    threadsPerCore: Maybe[int] = UNSET


class LiveBackupRetention(_Part, frozen=True):
    retainedBackups: Maybe[int] = UNSET
    retentionUnit: Maybe[str] = UNSET


class LiveBackupConfiguration(_Part, frozen=True):
    """The last two are output only: sent back unchanged when the whole configuration is sent."""

    backupRetentionSettings: Maybe[LiveBackupRetention] = UNSET
    binaryLogEnabled: Maybe[bool] = UNSET
    enabled: Maybe[bool] = UNSET
    location: Maybe[str] = UNSET
    pointInTimeRecoveryEnabled: Maybe[bool] = UNSET
    startTime: Maybe[str] = UNSET
    transactionLogRetentionDays: Maybe[int] = UNSET
    backupTier: Maybe[str] = UNSET
    transactionalLogStorageState: Maybe[str] = UNSET


class LiveDataCache(_Part, frozen=True):
    dataCacheEnabled: Maybe[bool] = UNSET


class LiveDatabaseFlag(_Part, frozen=True):
    name: str = ""
    value: str = ""


class LiveDenyPeriod(_Part, frozen=True):
    endDate: str = ""
    startDate: str = ""
    time: str = ""


class LiveInsightsConfig(_Part, frozen=True):
    queryInsightsEnabled: Maybe[bool] = UNSET
    queryPlansPerMinute: Maybe[int] = UNSET
    queryStringLength: Maybe[int] = UNSET
    recordApplicationTags: Maybe[bool] = UNSET
    recordClientAddress: Maybe[bool] = UNSET


class LiveAclEntry(_Part, frozen=True):
    value: str = ""
    name: Maybe[str] = UNSET
    expirationTime: Maybe[str] = UNSET


class LivePscConfig(_Part, frozen=True):
    allowedConsumerProjects: Maybe[list[str]] = UNSET
    pscEnabled: Maybe[bool] = UNSET


class LiveIpConfiguration(_Part, frozen=True):
    allocatedIpRange: Maybe[str] = UNSET
    authorizedNetworks: Maybe[list[LiveAclEntry]] = UNSET
    enablePrivatePathForGoogleCloudServices: Maybe[bool] = UNSET
    ipv4Enabled: Maybe[bool] = UNSET
    privateNetwork: Maybe[str] = UNSET
    pscConfig: Maybe[LivePscConfig] = UNSET
    requireSsl: Maybe[bool] = UNSET
    sslMode: Maybe[str] = UNSET


class LiveLocationPreference(_Part, frozen=True):
    followGaeApplication: Maybe[str] = UNSET
    secondaryZone: Maybe[str] = UNSET
    zone: Maybe[str] = UNSET


class LiveMaintenanceWindow(_Part, frozen=True):
    day: Maybe[int] = UNSET
    hour: Maybe[int] = UNSET
    updateTrack: Maybe[str] = UNSET


class LivePasswordPolicy(_Part, frozen=True):
    complexity: Maybe[str] = UNSET
    disallowUsernameSubstring: Maybe[bool] = UNSET
    enablePasswordPolicy: Maybe[bool] = UNSET
    minLength: Maybe[int] = UNSET
    passwordChangeInterval: Maybe[str] = UNSET
    reuseInterval: Maybe[int] = UNSET


class LiveAuditConfig(_Part, frozen=True):
    bucket: Maybe[str] = UNSET
    retentionInterval: Maybe[str] = UNSET
    uploadInterval: Maybe[str] = UNSET


class LiveInstanceSettings(_Part, frozen=True):
    activationPolicy: Maybe[str] = UNSET
    activeDirectoryConfig: Maybe[LiveActiveDirectory] = UNSET
    advancedMachineFeatures: Maybe[LiveMachineFeatures] = UNSET
    authorizedGaeApplications: Maybe[list[str]] = UNSET
    availabilityType: Maybe[str] = UNSET
    backupConfiguration: Maybe[LiveBackupConfiguration] = UNSET
    collation: Maybe[str] = UNSET
    connectorEnforcement: Maybe[str] = UNSET
    dataCacheConfig: Maybe[LiveDataCache] = UNSET
    dataDiskSizeGb: Maybe[int] = UNSET
    dataDiskType: Maybe[str] = UNSET
    databaseFlags: Maybe[list[LiveDatabaseFlag]] = UNSET
    deletionProtectionEnabled: Maybe[bool] = UNSET
    denyMaintenancePeriods: Maybe[list[LiveDenyPeriod]] = UNSET
    edition: Maybe[str] = UNSET
    insightsConfig: Maybe[LiveInsightsConfig] = UNSET
    ipConfiguration: Maybe[LiveIpConfiguration] = UNSET
    locationPreference: Maybe[LiveLocationPreference] = UNSET
    maintenanceWindow: Maybe[LiveMaintenanceWindow] = UNSET
    passwordValidationPolicy: Maybe[LivePasswordPolicy] = UNSET
    pricingPlan: Maybe[str] = UNSET
    replicationType: Maybe[str] = UNSET
    sqlServerAuditConfig: Maybe[LiveAuditConfig] = UNSET
    storageAutoResize: Maybe[bool] = UNSET
    storageAutoResizeLimit: Maybe[int] = UNSET
    tier: Maybe[str] = UNSET
    timeZone: Maybe[str] = UNSET
    userLabels: Maybe[dict[str, str]] = UNSET


class SqlInstance(_Part, frozen=True):
    """The live instance. `others` are the paths of settings in use that the spec does not model."""

    name: str
    settings: LiveInstanceSettings
    state: Maybe[str] = UNSET
    databaseVersion: Maybe[str] = UNSET
    diskEncryptionConfiguration: Maybe[LiveDiskEncryption] = UNSET
    instanceType: Maybe[str] = UNSET
    maintenanceVersion: Maybe[str] = UNSET
    masterInstanceName: Maybe[str] = UNSET
    region: Maybe[str] = UNSET
    replicaConfiguration: Maybe[LiveReplicaConfiguration] = UNSET
    replicationCluster: Maybe[LiveReplicationCluster] = UNSET
    others: list[str] = []


class _Version(Struct, frozen=True):
    settingsVersion: str | int | None = None


class LiveIpAddress(Struct, frozen=True, omit_defaults=True):
    ipAddress: str = ""
    timeToRetire: str = ""
    type: str = ""


class LiveServerCaCert(Struct, frozen=True, omit_defaults=True):
    cert: str = ""
    commonName: str = ""
    createTime: str = ""
    expirationTime: str = ""
    sha1Fingerprint: str = ""


class LiveObservedCluster(Struct, frozen=True, omit_defaults=True):
    drReplica: bool | None = None
    psaWriteEndpoint: str = ""


class SqlInstanceOutputs(Struct, frozen=True):
    """Output-only fields of an instance: neither compared nor part of a digest."""

    settings: _Version = _Version()
    availableMaintenanceVersions: list[str] | None = None
    connectionName: str | None = None
    dnsName: str | None = None
    instanceType: str | None = None
    ipAddresses: list[LiveIpAddress] | None = None
    pscServiceAttachmentLink: str | None = None
    replicationCluster: LiveObservedCluster | None = None
    selfLink: str | None = None
    serverCaCert: LiveServerCaCert | None = None
    serviceAccountEmailAddress: str | None = None


# Not strict: the API sends 64-bit integers as text.
_instance: Final = msgspec.json.Decoder(SqlInstance, strict=False)
_outputs: Final = msgspec.json.Decoder(SqlInstanceOutputs)


@dataclass(frozen=True, slots=True)
class DecodedInstance:
    """A decoded response: the instance and its output-only fields."""

    instance: SqlInstance
    outputs: SqlInstanceOutputs

    @property
    def version(self) -> str | None:
        """The settings version for optimistic concurrency: a write with it fails if the settings have changed."""
        found = self.outputs.settings.settingsVersion
        return None if found is None else str(found)


def read_instance(body: bytes, what: str) -> DecodedInstance:
    """The decoded instance; RemoteUnavailable for a response that is not one."""
    found = decode_response(_instance, body, what)
    state = found.state if found.state in (PENDING, FAILED) else UNSET
    instance = msgspec.structs.replace(found, state=state, others=unmodelled_settings(body, what))
    return DecodedInstance(instance, decode_response(_outputs, body, what))


# Settings that no field of the spec models, in the order of a report; each with the value that the service sets when a
# request leaves it out, if that is not an empty one.
_UNMODELLED: Final[Mapping[str, object]] = {
    "failoverReplica.name": None,
    "includeReplicasForMajorVersionUpgrade": None,
    "onPremisesConfiguration": None,
    "replicaConfiguration.cascadableReplica": None,
    "settings.activeDirectoryConfig.adminCredentialSecretName": None,
    "settings.activeDirectoryConfig.dnsServers": None,
    "settings.activeDirectoryConfig.mode": "MANAGED_ACTIVE_DIRECTORY",
    "settings.activeDirectoryConfig.organizationalUnit": None,
    "settings.connectionPoolConfig": None,
    "settings.dataApiAccess": "DISALLOW_DATA_API",
    "settings.dataDiskProvisionedIops": None,
    "settings.dataDiskProvisionedThroughput": None,
    "settings.databaseReplicationEnabled": True,
    "settings.enableDataplexIntegration": None,
    "settings.enableGoogleMlIntegration": None,
    "settings.finalBackupConfig": None,
    "settings.insightsConfig.enhancedQueryInsightsEnabled": None,
    "settings.ipConfiguration.customSubjectAlternativeNames": None,
    "settings.ipConfiguration.pscConfig.networkAttachmentUri": None,
    "settings.ipConfiguration.pscConfig.pscAutoConnections": None,
    "settings.ipConfiguration.serverCaMode": "GOOGLE_MANAGED_INTERNAL_CA",
    "settings.ipConfiguration.serverCaPool": None,
    "settings.ipConfiguration.serverCertificateRotationMode": "NO_AUTOMATIC_ROTATION",
    "settings.passwordValidationPolicy.disallowCompromisedCredentials": None,
    "settings.replicationLagMaxSeconds": 31536000,
    "settings.retainBackupsOnDelete": None,
    "switchTransactionLogsToCloudStorageEnabled": None,
}


def _struct_with(paths: Iterable[str]) -> type[Struct]:
    """A struct with a field for each path: decoding drops every other member without building it."""
    below: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        below.setdefault(name, []).extend([rest] if rest else [])
    fields: list[tuple[str, Any, object]] = [
        (name, _struct_with(rest) | None | UnsetType if rest else Any, UNSET) for name, rest in below.items()
    ]
    return msgspec.defstruct("_Unmodelled", fields, frozen=True)


_unmodelled: Final = msgspec.json.Decoder(_struct_with(_UNMODELLED))


def unmodelled_settings(body: bytes, what: str) -> list[str]:
    """The paths of settings in the response that are in use and that the spec does not model."""
    found = msgspec.to_builtins(decode_tree(_unmodelled, body, what))
    return [path for path, value in _leaves(found, "") if value != _UNMODELLED.get(path)]


def _leaves(value: object, at: str) -> Iterator[tuple[str, Any]]:
    """Every value that is not empty, with its path."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, f"{at}.{name}".lstrip("."))
    elif (value is False and _UNMODELLED.get(at) is True) or _is_set(value):
        yield at, value


def _is_set(value: object) -> bool:
    return value not in (None, False, 0, "", "0", []) and not str(value).endswith("_UNSPECIFIED")
