"""An instance as the API reports it, cut to what the spec speaks of. What is not named here cannot move a digest."""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from setpoint.clients.google import decoded
from setpoint.kinds.gcp.sql_instance.others import others_in
from setpoint.kinds.spec_parts import Maybe

# States in which there is nothing to compare with yet, or ever. The others come and go, and say nothing about settings.
PENDING: Final = "PENDING_CREATE"
FAILED: Final = "FAILED"


class _Part(Struct, frozen=True, kw_only=True):
    """A part of the instance. Members that the API may grow are left out."""


class DiskEncryption(_Part, frozen=True):
    kmsKeyName: Maybe[str] = UNSET


class MysqlReplica(_Part, frozen=True):
    caCertificate: Maybe[str] = UNSET
    clientCertificate: Maybe[str] = UNSET
    connectRetryInterval: Maybe[int] = UNSET
    dumpFilePath: Maybe[str] = UNSET
    masterHeartbeatPeriod: Maybe[int] = UNSET
    sslCipher: Maybe[str] = UNSET
    username: Maybe[str] = UNSET
    verifyServerCertificate: Maybe[bool] = UNSET


class Replica(_Part, frozen=True):
    failoverTarget: Maybe[bool] = UNSET
    mysqlReplicaConfiguration: Maybe[MysqlReplica] = UNSET


class ReplicationCluster(_Part, frozen=True):
    failoverDrReplicaName: Maybe[str] = UNSET


class ActiveDirectory(_Part, frozen=True):
    domain: Maybe[str] = UNSET


class Machine(_Part, frozen=True):
    threadsPerCore: Maybe[int] = UNSET


class Retention(_Part, frozen=True):
    retainedBackups: Maybe[int] = UNSET
    retentionUnit: Maybe[str] = UNSET


class Backups(_Part, frozen=True):
    """The last two nobody can set; they go back as they came with a configuration that is sent back whole."""

    backupRetentionSettings: Maybe[Retention] = UNSET
    binaryLogEnabled: Maybe[bool] = UNSET
    enabled: Maybe[bool] = UNSET
    location: Maybe[str] = UNSET
    pointInTimeRecoveryEnabled: Maybe[bool] = UNSET
    startTime: Maybe[str] = UNSET
    transactionLogRetentionDays: Maybe[int] = UNSET
    backupTier: Maybe[str] = UNSET
    transactionalLogStorageState: Maybe[str] = UNSET


class DataCache(_Part, frozen=True):
    dataCacheEnabled: Maybe[bool] = UNSET


class Flag(_Part, frozen=True):
    name: str = ""
    value: str = ""


class DenyPeriod(_Part, frozen=True):
    endDate: str = ""
    startDate: str = ""
    time: str = ""


class Insights(_Part, frozen=True):
    queryInsightsEnabled: Maybe[bool] = UNSET
    queryPlansPerMinute: Maybe[int] = UNSET
    queryStringLength: Maybe[int] = UNSET
    recordApplicationTags: Maybe[bool] = UNSET
    recordClientAddress: Maybe[bool] = UNSET


class AclEntry(_Part, frozen=True):
    value: str = ""
    name: Maybe[str] = UNSET
    expirationTime: Maybe[str] = UNSET


class Psc(_Part, frozen=True):
    allowedConsumerProjects: Maybe[list[str]] = UNSET
    pscEnabled: Maybe[bool] = UNSET


class Network(_Part, frozen=True):
    allocatedIpRange: Maybe[str] = UNSET
    authorizedNetworks: Maybe[list[AclEntry]] = UNSET
    enablePrivatePathForGoogleCloudServices: Maybe[bool] = UNSET
    ipv4Enabled: Maybe[bool] = UNSET
    privateNetwork: Maybe[str] = UNSET
    pscConfig: Maybe[Psc] = UNSET
    requireSsl: Maybe[bool] = UNSET
    sslMode: Maybe[str] = UNSET


class Place(_Part, frozen=True):
    followGaeApplication: Maybe[str] = UNSET
    secondaryZone: Maybe[str] = UNSET
    zone: Maybe[str] = UNSET


class Window(_Part, frozen=True):
    day: Maybe[int] = UNSET
    hour: Maybe[int] = UNSET
    updateTrack: Maybe[str] = UNSET


class PasswordPolicy(_Part, frozen=True):
    complexity: Maybe[str] = UNSET
    disallowUsernameSubstring: Maybe[bool] = UNSET
    enablePasswordPolicy: Maybe[bool] = UNSET
    minLength: Maybe[int] = UNSET
    passwordChangeInterval: Maybe[str] = UNSET
    reuseInterval: Maybe[int] = UNSET


class Audit(_Part, frozen=True):
    bucket: Maybe[str] = UNSET
    retentionInterval: Maybe[str] = UNSET
    uploadInterval: Maybe[str] = UNSET


class Settings(_Part, frozen=True):
    activationPolicy: Maybe[str] = UNSET
    activeDirectoryConfig: Maybe[ActiveDirectory] = UNSET
    advancedMachineFeatures: Maybe[Machine] = UNSET
    authorizedGaeApplications: Maybe[list[str]] = UNSET
    availabilityType: Maybe[str] = UNSET
    backupConfiguration: Maybe[Backups] = UNSET
    collation: Maybe[str] = UNSET
    connectorEnforcement: Maybe[str] = UNSET
    dataCacheConfig: Maybe[DataCache] = UNSET
    dataDiskSizeGb: Maybe[int] = UNSET
    dataDiskType: Maybe[str] = UNSET
    databaseFlags: Maybe[list[Flag]] = UNSET
    deletionProtectionEnabled: Maybe[bool] = UNSET
    denyMaintenancePeriods: Maybe[list[DenyPeriod]] = UNSET
    edition: Maybe[str] = UNSET
    insightsConfig: Maybe[Insights] = UNSET
    ipConfiguration: Maybe[Network] = UNSET
    locationPreference: Maybe[Place] = UNSET
    maintenanceWindow: Maybe[Window] = UNSET
    passwordValidationPolicy: Maybe[PasswordPolicy] = UNSET
    pricingPlan: Maybe[str] = UNSET
    replicationType: Maybe[str] = UNSET
    sqlServerAuditConfig: Maybe[Audit] = UNSET
    storageAutoResize: Maybe[bool] = UNSET
    storageAutoResizeLimit: Maybe[int] = UNSET
    tier: Maybe[str] = UNSET
    timeZone: Maybe[str] = UNSET
    userLabels: Maybe[dict[str, str]] = UNSET


class Instance(_Part, frozen=True):
    """The live instance. `others` names settings that are in use and that the spec has no word for."""

    name: str
    settings: Settings
    state: Maybe[str] = UNSET
    databaseVersion: Maybe[str] = UNSET
    diskEncryptionConfiguration: Maybe[DiskEncryption] = UNSET
    instanceType: Maybe[str] = UNSET
    maintenanceVersion: Maybe[str] = UNSET
    masterInstanceName: Maybe[str] = UNSET
    region: Maybe[str] = UNSET
    replicaConfiguration: Maybe[Replica] = UNSET
    replicationCluster: Maybe[ReplicationCluster] = UNSET
    others: list[str] = []


class _Version(Struct, frozen=True):
    settingsVersion: str | int | None = None


class IpAddress(Struct, frozen=True, omit_defaults=True):
    ipAddress: str = ""
    timeToRetire: str = ""
    type: str = ""


class ServerCaCert(Struct, frozen=True, omit_defaults=True):
    cert: str = ""
    commonName: str = ""
    createTime: str = ""
    expirationTime: str = ""
    sha1Fingerprint: str = ""


class ObservedCluster(Struct, frozen=True, omit_defaults=True):
    drReplica: bool | None = None
    psaWriteEndpoint: str = ""


class Aside(Struct, frozen=True):
    """What comes with an instance and is neither compared nor part of a digest."""

    settings: _Version = _Version()
    availableMaintenanceVersions: list[str] | None = None
    connectionName: str | None = None
    dnsName: str | None = None
    instanceType: str | None = None
    ipAddresses: list[IpAddress] | None = None
    pscServiceAttachmentLink: str | None = None
    replicationCluster: ObservedCluster | None = None
    selfLink: str | None = None
    serverCaCert: ServerCaCert | None = None
    serviceAccountEmailAddress: str | None = None


# Not strict: 64-bit integers come as text.
_instance: Final = msgspec.json.Decoder(Instance, strict=False)
_aside: Final = msgspec.json.Decoder(Aside)


@dataclass(frozen=True, slots=True)
class Reading:
    """An instance and what came with it."""

    instance: Instance
    aside: Aside

    @property
    def version(self) -> str | None:
        """What a write names so that it meets these settings and no others."""
        found = self.aside.settings.settingsVersion
        return None if found is None else str(found)


def read_instance(body: bytes, what: str) -> Reading:
    """The instance in an answer; RemoteUnavailable when there is none in it."""
    found = decoded(_instance, body, what)
    state = found.state if found.state in (PENDING, FAILED) else UNSET
    instance = msgspec.structs.replace(found, state=state, others=others_in(body, what))
    return Reading(instance, decoded(_aside, body, what))
