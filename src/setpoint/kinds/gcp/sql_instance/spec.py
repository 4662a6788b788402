"""The spec of a SQLInstance: type, default and mutability of each field."""

from typing import Annotated, ClassVar, Final

from msgspec import UNSET, UnsetType

from setpoint.core.schema.shape import Check, Default, Keyed, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kinds.gcp.shared.config_connector import RESOURCE_ID_CHECK, SECRET_CHECK, SpecReference
from setpoint.kinds.typed_spec import Maybe, SpecStruct, ValueFrom

ENTERPRISE: Final = "ENTERPRISE"
PLUS: Final = "ENTERPRISE_PLUS"
UNENCRYPTED: Final = "ALLOW_UNENCRYPTED_AND_ENCRYPTED"


class SecretText(SpecStruct, frozen=True):
    """A secret value in the manifest, or in a Secret."""

    value: Maybe[str] = UNSET
    """The secret in plain text, readable by every user who may read the resource."""
    valueFrom: Maybe[ValueFrom] = UNSET
    """Where the secret is kept."""

    __checks__: ClassVar = (SECRET_CHECK,)


class ReplicaConfiguration(SpecStruct, frozen=True):
    failoverTarget: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the primary fails over to this replica. MySQL only."""
    caCertificate: Maybe[str] = UNSET
    """The certificate of the authority that signed the primary's certificate, in PEM."""
    clientCertificate: Maybe[str] = UNSET
    """The replica's own certificate, in PEM."""
    clientKey: Annotated[Maybe[str], Mark.WRITE_ONLY] = UNSET
    """The private key of that certificate, in PEM."""
    connectRetryInterval: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The seconds between two attempts to connect to the primary."""
    dumpFilePath: Maybe[str] = UNSET
    """The dump to start from, as `gs://BUCKET/FILE`."""
    masterHeartbeatPeriod: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The milliseconds between two heartbeats of the replication."""
    password: Annotated[Maybe[SecretText], Mark.WRITE_ONLY] = UNSET
    """The password of the replication user."""
    sslCipher: Maybe[str] = UNSET
    """The ciphers that the replication may use."""
    username: Maybe[str] = UNSET
    """The replication user."""
    verifyServerCertificate: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the common name in the primary's certificate is verified."""


class ReplicationCluster(SpecStruct, frozen=True):
    failoverDrReplicaRef: Maybe[SpecReference] = UNSET
    """The replica in another region that takes over after a disaster."""


class BinLogCoordinates(SpecStruct, frozen=True):
    binLogFileName: Maybe[str] = UNSET
    """The last file of the binary log that is read."""
    binLogPosition: Maybe[Int64] = UNSET
    """The position in that file."""


class CloneSource(SpecStruct, frozen=True):
    """The source of a new clone; ignored once the instance exists."""

    sqlInstanceRef: SpecReference
    """The instance to clone."""
    binLogCoordinates: Maybe[BinLogCoordinates] = UNSET
    """How far into the binary log of the source the clone goes. MySQL only."""
    databaseNames: Maybe[list[str]] = UNSET
    """The databases to clone; all of them when none is named. SQL Server only."""
    pointInTime: Maybe[str] = UNSET
    """The point in time of the source's data, in RFC 3339."""


class ActiveDirectoryConfig(SpecStruct, frozen=True):
    domain: str
    """The domain, such as `corp.example.com`."""


class AdvancedMachineFeatures(SpecStruct, frozen=True):
    threadsPerCore: Annotated[Maybe[Int64], Default(0)] = UNSET
    """How many threads each core has: 1 or 2."""


class BackupRetentionSettings(SpecStruct, frozen=True):
    """The retention of backups. Its defaults depend on the edition: see `fit_instance_to_live`."""

    retainedBackups: Int64
    """How many backups are kept."""
    retentionUnit: Maybe[str] = UNSET
    """The unit: COUNT is a number of backups."""


class BackupConfiguration(SpecStruct, frozen=True):
    backupRetentionSettings: Maybe[BackupRetentionSettings] = UNSET
    """How many backups are kept."""
    binaryLogEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether there is a binary log. MySQL only, and only with backups."""
    enabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether there are daily backups."""
    location: Maybe[str] = UNSET
    """Where backups are kept: a region or a multi-region."""
    pointInTimeRecoveryEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the data can be restored to any point in time."""
    # A request: the service starts when it has capacity.
    startTime: Annotated[Maybe[str], Mark.CHOSEN, Mark.ASKED] = UNSET
    """When a backup may begin, in UTC: `HH:MM`."""
    transactionLogRetentionDays: Annotated[Maybe[Int64], Mark.CHOSEN] = UNSET
    """For how many days the transaction logs for point-in-time recovery are kept."""


class DataCacheConfig(SpecStruct, frozen=True):
    dataCacheEnabled: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether reads are cached on local disks. ENTERPRISE_PLUS only."""


class DatabaseFlag(SpecStruct, frozen=True):
    name: str
    """The name of the flag."""
    value: str
    """The value of the flag, as text."""


class DenyMaintenancePeriod(SpecStruct, frozen=True):
    endDate: str
    """The last day: `yyyy-mm-dd`, or `mm-dd` for every year."""
    startDate: str
    """The first day: `yyyy-mm-dd`, or `mm-dd` for every year."""
    time: str
    """The time of day at which it starts and ends, in UTC: `HH:mm:SS`."""


class InsightsConfig(SpecStruct, frozen=True):
    queryInsightsEnabled: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether Query Insights is on."""
    queryPlansPerMinute: Annotated[Maybe[Int64], Default(5)] = UNSET
    """How many query plans are recorded per minute, 0 to 20."""
    queryStringLength: Annotated[Maybe[Int64], Default(1024)] = UNSET
    """How many bytes of a query are recorded, 256 to 4500."""
    recordApplicationTags: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the tags that applications put into queries are recorded."""
    recordClientAddress: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the addresses of clients are recorded."""


class AuthorizedNetwork(SpecStruct, frozen=True):
    value: str
    """The addresses, in CIDR notation."""
    name: Maybe[str] = UNSET
    """The name of the entry."""
    expirationTime: Maybe[str] = UNSET
    """When the entry expires, in RFC 3339."""


class PscConfig(SpecStruct, frozen=True):
    allowedConsumerProjects: Maybe[list[str]] = UNSET
    """The projects that may connect, by name or number."""
    pscEnabled: Maybe[bool] = UNSET
    """Whether the instance can be reached through Private Service Connect."""


class IpConfiguration(SpecStruct, frozen=True):
    """The IP configuration. A private network that the spec leaves out stays: the service cannot remove it."""

    allocatedIpRange: Maybe[str] = UNSET
    """The name of the range that the private address is taken from."""
    authorizedNetworks: Annotated[Maybe[list[AuthorizedNetwork]], Keyed("name", "value")] = UNSET
    """The networks that may connect to the public address."""
    enablePrivatePathForGoogleCloudServices: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether services such as BigQuery may connect to the private address."""
    ipv4Enabled: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether there is a public address."""
    privateNetworkRef: Annotated[Maybe[SpecReference], Mark.PROTECTED] = UNSET
    """The network in which the instance has a private address."""
    pscConfig: Maybe[list[PscConfig]] = UNSET
    """Private Service Connect; one element at most."""
    requireSsl: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether connections have to be encrypted. `sslMode` says it in more detail."""
    sslMode: Annotated[Maybe[str], Default(UNENCRYPTED)] = UNSET
    """Which connections are accepted: ALLOW_UNENCRYPTED_AND_ENCRYPTED, ENCRYPTED_ONLY or
    TRUSTED_CLIENT_CERTIFICATE_REQUIRED."""

    __checks__: ClassVar = (
        Check("!has(self.pscConfig) || self.pscConfig.size() < 2", "takes one element: keep one", "pscConfig"),
    )


class LocationPreference(SpecStruct, frozen=True):
    followGaeApplication: Maybe[str] = UNSET
    """The App Engine application to be close to."""
    secondaryZone: Maybe[str] = UNSET
    """The zone of the standby."""
    zone: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    """The zone."""


class MaintenanceWindow(SpecStruct, frozen=True):
    day: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The day of the week, 1 to 7; 1 is Monday, and 0 is any."""
    hour: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The hour of the day in UTC, 0 to 23."""
    updateTrack: Maybe[str] = UNSET
    """When updates are installed, from first to last: `canary`, `stable` or `week5`."""


class PasswordValidationPolicy(SpecStruct, frozen=True):
    enablePasswordPolicy: Annotated[bool, Default(False)]
    """Whether the policy is enforced."""
    complexity: Maybe[str] = UNSET
    """COMPLEXITY_DEFAULT requires lower-case letters, upper-case letters, digits and other characters."""
    disallowUsernameSubstring: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the name of the user is refused in a password."""
    minLength: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The minimum number of characters."""
    passwordChangeInterval: Maybe[str] = UNSET
    """The minimum time between two changes of a password, such as `600s`. PostgreSQL only."""
    reuseInterval: Annotated[Maybe[Int64], Default(0)] = UNSET
    """How many earlier passwords may not be used again."""


class SqlServerAuditConfig(SpecStruct, frozen=True):
    bucketRef: SpecReference
    """The bucket that audit files are uploaded to."""
    retentionInterval: Maybe[str] = UNSET
    """How long audit files stay on the instance, such as `86400s`."""
    uploadInterval: Maybe[str] = UNSET
    """How often audit files are uploaded, such as `600s`."""


class InstanceSettings(SpecStruct, frozen=True):
    """The settings. Those that protect data are removed only by an explicit value."""

    tier: str
    """The machine, such as `db-custom-2-8192`."""
    activationPolicy: Annotated[Maybe[str], Default("ALWAYS")] = UNSET
    """When the instance runs: ALWAYS, NEVER or ON_DEMAND."""
    activeDirectoryConfig: Maybe[ActiveDirectoryConfig] = UNSET
    """The Active Directory that the instance is in. SQL Server only."""
    advancedMachineFeatures: Maybe[AdvancedMachineFeatures] = UNSET
    """Details of the machine. SQL Server only."""
    authorizedGaeApplications: Maybe[list[str]] = UNSET
    """Deprecated: the service ignores it."""
    availabilityType: Annotated[Maybe[str], Default("ZONAL")] = UNSET
    """ZONAL, or REGIONAL for a standby in another zone."""
    backupConfiguration: Annotated[Maybe[BackupConfiguration], Mark.PROTECTED] = UNSET
    """Backups and point-in-time recovery."""
    collation: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The collation of the server. SQL Server only."""
    connectorEnforcement: Annotated[Maybe[str], Default("NOT_REQUIRED")] = UNSET
    """Whether clients have to connect through a connector: REQUIRED or NOT_REQUIRED."""
    # Deprecated: accepted, and never returned.
    crashSafeReplication: Annotated[Maybe[bool], Mark.ASKED] = UNSET
    """Deprecated: the service ignores it."""
    dataCacheConfig: Maybe[DataCacheConfig] = UNSET
    """The cache on local disks."""
    databaseFlags: Annotated[Maybe[list[DatabaseFlag]], Keyed("name")] = UNSET
    """Settings of the database engine."""
    deletionProtectionEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the service refuses to delete the instance."""
    denyMaintenancePeriod: Maybe[DenyMaintenancePeriod] = UNSET
    """Days without maintenance."""
    diskAutoresize: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether the disk grows when it is nearly full."""
    diskAutoresizeLimit: Annotated[Maybe[Int64], Default(0)] = UNSET
    """The size in GB up to which it grows; 0 is no limit."""
    diskSize: Annotated[Maybe[Int64], Mark.CHOSEN] = UNSET
    """The size of the disk in GB. It can only grow."""
    diskType: Annotated[Maybe[str], Default("PD_SSD"), Mark.IMMUTABLE] = UNSET
    """PD_SSD or PD_HDD."""
    edition: Annotated[Maybe[str], Default(ENTERPRISE), Mark.PROTECTED] = UNSET
    """ENTERPRISE or ENTERPRISE_PLUS."""
    insightsConfig: Maybe[InsightsConfig] = UNSET
    """Query Insights."""
    ipConfiguration: Annotated[Maybe[IpConfiguration], Default({})] = UNSET
    """The addresses of the instance, and which clients may connect."""
    locationPreference: Annotated[Maybe[LocationPreference], Mark.CHOSEN] = UNSET
    """The zones."""
    maintenanceWindow: Maybe[MaintenanceWindow] = UNSET
    """The hour of the week in which maintenance may begin."""
    passwordValidationPolicy: Maybe[PasswordValidationPolicy] = UNSET
    """The rules for the passwords of users."""
    pricingPlan: Annotated[Maybe[str], Default("PER_USE")] = UNSET
    """The pricing plan: PER_USE."""
    replicationType: Annotated[Maybe[str], Default("SYNCHRONOUS")] = UNSET
    """Deprecated: the service ignores it."""
    sqlServerAuditConfig: Maybe[SqlServerAuditConfig] = UNSET
    """Where audit files are stored, and for how long. SQL Server only."""
    timeZone: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The time zone of the server. SQL Server only."""


class SqlInstanceSpec(SpecStruct, frozen=True):
    """The spec of a SQLInstance."""

    settings: InstanceSettings
    """The settings of the instance."""
    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The name of the instance in the service; the resource's own when left out."""
    databaseVersion: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    """The database engine and its version, such as `POSTGRES_16`."""
    region: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """Where the instance is, such as `europe-west1`."""
    instanceType: Annotated[Maybe[str], Default("CLOUD_SQL_INSTANCE"), Mark.IMMUTABLE] = UNSET
    """CLOUD_SQL_INSTANCE, or READ_REPLICA_INSTANCE for a replica."""
    maintenanceVersion: Annotated[Maybe[str], Mark.CHOSEN] = UNSET
    """The maintenance version, one of `status.availableMaintenanceVersions`."""
    masterInstanceRef: Annotated[Maybe[SpecReference], Mark.IMMUTABLE] = UNSET
    """The primary of a replica."""
    encryptionKMSCryptoKeyRef: Annotated[Maybe[SpecReference], Mark.IMMUTABLE] = UNSET
    """The key that the data is encrypted with."""
    rootPassword: Annotated[Maybe[SecretText], Mark.WRITE_ONLY] = UNSET
    """The password of the first user. SQL Server requires it."""
    replicaConfiguration: Maybe[ReplicaConfiguration] = UNSET
    """How a replica replicates from its primary."""
    replicationCluster: Maybe[ReplicationCluster] = UNSET
    """Its role in disaster recovery."""
    cloneSource: Maybe[CloneSource] = UNSET
    """The instance that a new one is cloned from; ignored once the instance exists."""

    __checks__: ClassVar = (RESOURCE_ID_CHECK,)


class InstanceMetadata(SpecStruct, frozen=True):
    """The metadata that is compared: the labels."""

    labels: Maybe[dict[str, str]] = UNSET
    """The labels of the instance."""


class SqlInstanceTree(SpecStruct, frozen=True):
    """The compared tree: spec and labels."""

    spec: SqlInstanceSpec
    metadata: InstanceMetadata | UnsetType = UNSET
