"""The spec of a SQLInstance, field by field: what each is, its default, who may change it."""

from typing import Annotated, Final, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.shape import Default, Keyed, Mark
from setpoint.kinds.config_connector import Ref

ENTERPRISE: Final = "ENTERPRISE"
PLUS: Final = "ENTERPRISE_PLUS"
UNENCRYPTED: Final = "ALLOW_UNENCRYPTED_AND_ENCRYPTED"

T = TypeVar("T")
# A value, an explicit null, or nothing.
Maybe: TypeAlias = T | None | UnsetType


class _Part(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of the spec: nothing in it that the type does not name."""


class SecretKeyRef(_Part, frozen=True):
    name: str
    key: str


class ValueFrom(_Part, frozen=True):
    secretKeyRef: SecretKeyRef


class SecretText(_Part, frozen=True):
    """A secret: written out, or kept in a Secret."""

    value: Maybe[str] = UNSET
    valueFrom: Maybe[ValueFrom] = UNSET


class ReplicaConfiguration(_Part, frozen=True):
    failoverTarget: Annotated[Maybe[bool], Default(False)] = UNSET
    caCertificate: Maybe[str] = UNSET
    clientCertificate: Maybe[str] = UNSET
    clientKey: Annotated[Maybe[str], Mark.WRITE_ONLY] = UNSET
    connectRetryInterval: Annotated[Maybe[int], Default(0)] = UNSET
    dumpFilePath: Maybe[str] = UNSET
    masterHeartbeatPeriod: Annotated[Maybe[int], Default(0)] = UNSET
    password: Annotated[Maybe[SecretText], Mark.WRITE_ONLY] = UNSET
    sslCipher: Maybe[str] = UNSET
    username: Maybe[str] = UNSET
    verifyServerCertificate: Annotated[Maybe[bool], Default(False)] = UNSET


class ReplicationCluster(_Part, frozen=True):
    failoverDrReplicaRef: Maybe[Ref] = UNSET


class BinLogCoordinates(_Part, frozen=True):
    binLogFileName: Maybe[str] = UNSET
    binLogPosition: Maybe[int] = UNSET


class CloneSource(_Part, frozen=True):
    """Where a new instance gets its data from; of no consequence once it is there."""

    sqlInstanceRef: Ref
    binLogCoordinates: Maybe[BinLogCoordinates] = UNSET
    databaseNames: Maybe[list[str]] = UNSET
    pointInTime: Maybe[str] = UNSET


class ActiveDirectoryConfig(_Part, frozen=True):
    domain: str


class AdvancedMachineFeatures(_Part, frozen=True):
    threadsPerCore: Annotated[Maybe[int], Default(0)] = UNSET


class BackupRetentionSettings(_Part, frozen=True):
    """The defaults depend on the edition: see `fitted_instance`."""

    retainedBackups: int
    retentionUnit: Maybe[str] = UNSET


class BackupConfiguration(_Part, frozen=True):
    backupRetentionSettings: Maybe[BackupRetentionSettings] = UNSET
    binaryLogEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    enabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    location: Maybe[str] = UNSET
    pointInTimeRecoveryEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    # A wish: the service begins when it has room.
    startTime: Annotated[Maybe[str], Mark.CHOSEN, Mark.ASKED] = UNSET
    transactionLogRetentionDays: Annotated[Maybe[int], Mark.CHOSEN] = UNSET


class DataCacheConfig(_Part, frozen=True):
    dataCacheEnabled: Annotated[Maybe[bool], Default(False)] = UNSET


class DatabaseFlag(_Part, frozen=True):
    name: str
    value: str


class DenyMaintenancePeriod(_Part, frozen=True):
    endDate: str
    startDate: str
    time: str


class InsightsConfig(_Part, frozen=True):
    queryInsightsEnabled: Annotated[Maybe[bool], Default(False)] = UNSET
    queryPlansPerMinute: Annotated[Maybe[int], Default(5)] = UNSET
    queryStringLength: Annotated[Maybe[int], Default(1024)] = UNSET
    recordApplicationTags: Annotated[Maybe[bool], Default(False)] = UNSET
    recordClientAddress: Annotated[Maybe[bool], Default(False)] = UNSET


class AuthorizedNetwork(_Part, frozen=True):
    value: str
    name: Maybe[str] = UNSET
    expirationTime: Maybe[str] = UNSET


class PscConfig(_Part, frozen=True):
    allowedConsumerProjects: Maybe[list[str]] = UNSET
    pscEnabled: Maybe[bool] = UNSET


class IpConfiguration(_Part, frozen=True):
    """A private network that the instance is in stays when the spec is silent: the service cannot take it out."""

    allocatedIpRange: Maybe[str] = UNSET
    authorizedNetworks: Annotated[Maybe[list[AuthorizedNetwork]], Keyed("name", "value")] = UNSET
    enablePrivatePathForGoogleCloudServices: Annotated[Maybe[bool], Default(False)] = UNSET
    ipv4Enabled: Annotated[Maybe[bool], Default(True)] = UNSET
    privateNetworkRef: Annotated[Maybe[Ref], Mark.PROTECTED] = UNSET
    pscConfig: Maybe[list[PscConfig]] = UNSET
    requireSsl: Annotated[Maybe[bool], Default(False)] = UNSET
    sslMode: Annotated[Maybe[str], Default(UNENCRYPTED)] = UNSET


class LocationPreference(_Part, frozen=True):
    followGaeApplication: Maybe[str] = UNSET
    secondaryZone: Maybe[str] = UNSET
    zone: Annotated[Maybe[str], Mark.CHOSEN] = UNSET


class MaintenanceWindow(_Part, frozen=True):
    day: Annotated[Maybe[int], Default(0)] = UNSET
    hour: Annotated[Maybe[int], Default(0)] = UNSET
    updateTrack: Maybe[str] = UNSET


class PasswordValidationPolicy(_Part, frozen=True):
    enablePasswordPolicy: Annotated[bool, Default(False)]
    complexity: Maybe[str] = UNSET
    disallowUsernameSubstring: Annotated[Maybe[bool], Default(False)] = UNSET
    minLength: Annotated[Maybe[int], Default(0)] = UNSET
    passwordChangeInterval: Maybe[str] = UNSET
    reuseInterval: Annotated[Maybe[int], Default(0)] = UNSET


class SqlServerAuditConfig(_Part, frozen=True):
    bucketRef: Ref
    retentionInterval: Maybe[str] = UNSET
    uploadInterval: Maybe[str] = UNSET


class Settings(_Part, frozen=True):
    """The settings. What keeps data is given up only by an explicit value."""

    tier: str
    activationPolicy: Annotated[Maybe[str], Default("ALWAYS")] = UNSET
    activeDirectoryConfig: Maybe[ActiveDirectoryConfig] = UNSET
    advancedMachineFeatures: Maybe[AdvancedMachineFeatures] = UNSET
    authorizedGaeApplications: Maybe[list[str]] = UNSET
    availabilityType: Annotated[Maybe[str], Default("ZONAL")] = UNSET
    backupConfiguration: Annotated[Maybe[BackupConfiguration], Mark.PROTECTED] = UNSET
    collation: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    connectorEnforcement: Annotated[Maybe[str], Default("NOT_REQUIRED")] = UNSET
    # Deprecated: taken, and never given back.
    crashSafeReplication: Annotated[Maybe[bool], Mark.ASKED] = UNSET
    dataCacheConfig: Maybe[DataCacheConfig] = UNSET
    databaseFlags: Annotated[Maybe[list[DatabaseFlag]], Keyed("name")] = UNSET
    deletionProtectionEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    denyMaintenancePeriod: Maybe[DenyMaintenancePeriod] = UNSET
    diskAutoresize: Annotated[Maybe[bool], Default(True)] = UNSET
    diskAutoresizeLimit: Annotated[Maybe[int], Default(0)] = UNSET
    diskSize: Annotated[Maybe[int], Mark.CHOSEN] = UNSET
    diskType: Annotated[Maybe[str], Default("PD_SSD"), Mark.IMMUTABLE] = UNSET
    edition: Annotated[Maybe[str], Default(ENTERPRISE), Mark.PROTECTED] = UNSET
    insightsConfig: Maybe[InsightsConfig] = UNSET
    ipConfiguration: Annotated[Maybe[IpConfiguration], Default({})] = UNSET
    locationPreference: Annotated[Maybe[LocationPreference], Mark.CHOSEN] = UNSET
    maintenanceWindow: Maybe[MaintenanceWindow] = UNSET
    passwordValidationPolicy: Maybe[PasswordValidationPolicy] = UNSET
    pricingPlan: Annotated[Maybe[str], Default("PER_USE")] = UNSET
    replicationType: Annotated[Maybe[str], Default("SYNCHRONOUS")] = UNSET
    sqlServerAuditConfig: Maybe[SqlServerAuditConfig] = UNSET
    timeZone: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET


class SqlInstanceSpec(_Part, frozen=True):
    """The spec."""

    settings: Settings
    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    databaseVersion: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    region: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    instanceType: Annotated[Maybe[str], Default("CLOUD_SQL_INSTANCE"), Mark.IMMUTABLE] = UNSET
    maintenanceVersion: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    masterInstanceRef: Annotated[Maybe[Ref], Mark.IMMUTABLE] = UNSET
    encryptionKMSCryptoKeyRef: Annotated[Maybe[Ref], Mark.IMMUTABLE] = UNSET
    rootPassword: Annotated[Maybe[SecretText], Mark.WRITE_ONLY] = UNSET
    replicaConfiguration: Maybe[ReplicaConfiguration] = UNSET
    replicationCluster: Maybe[ReplicationCluster] = UNSET
    cloneSource: Maybe[CloneSource] = UNSET


class InstanceMetadata(_Part, frozen=True):
    """What of a manifest's metadata the instance has, too."""

    labels: Maybe[dict[str, str]] = UNSET


class SqlInstanceTree(_Part, frozen=True):
    """What is compared: the author's word and the live instance in the same terms."""

    spec: SqlInstanceSpec
    metadata: InstanceMetadata | UnsetType = UNSET
    # Said of an instance that is on its way, when nobody has its operation on record.
    made: bool | UnsetType = UNSET
