"""The spec of a SQLInstance: type, default and mutability of each field."""

from typing import Annotated, ClassVar, Final

from msgspec import UNSET, Meta, UnsetType

from setpoint.core.schema.checks import Check, Sized
from setpoint.core.schema.constraints import Between, Matches, OneOf
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kind.spec_references import SECRET_CHECK
from setpoint.kind.typed_spec import Maybe, SpecStruct, ValueFrom
from setpoint.kinds.gcp.shared.config_connector import (
    GOOGLE_DURATION,
    INSTANCE_NAME,
    IPV4_RANGE,
    LOCATION_NAME,
    RESOURCE_ID_CHECK,
    TIMESTAMP,
    SpecReference,
    name_check,
)

ENTERPRISE: Final = "ENTERPRISE"
PLUS: Final = "ENTERPRISE_PLUS"
UNENCRYPTED: Final = "ALLOW_UNENCRYPTED_AND_ENCRYPTED"
# Sets that Google extends are checked by their form only.
_DATABASE_VERSION: Final = Matches(
    "(?:MYSQL|POSTGRES|SQLSERVER)_[0-9][A-Z0-9_]*", "one such as POSTGRES_16, MYSQL_8_0 or SQLSERVER_2022_STANDARD", 64
)
_INSTANCE_TYPE: Final = Matches("[A-Z][A-Z_]*_INSTANCE", "CLOUD_SQL_INSTANCE or READ_REPLICA_INSTANCE", 64)
_DISK_TYPE: Final = Matches("[A-Z][A-Z0-9]*_[A-Z0-9_]+", "PD_SSD or PD_HDD", 64)
_TIER: Final = Matches("[A-Za-z][A-Za-z0-9_.-]*", "a machine, such as db-custom-2-8192", 128, or_empty=False)
_FLAG: Final = Matches(
    "[A-Za-z0-9][A-Za-z0-9_ .-]*", "the name of a flag, such as max_connections", 256, or_empty=False
)
_DUMP: Final = Matches("gs://.+", "gs://BUCKET/FILE", 2048)
_TIME_OF_DAY: Final = Matches("(?:[01][0-9]|2[0-3]):[0-5][0-9]", "a time of day, such as 03:00", 64)
_SECOND_OF_DAY: Final = Matches(
    "(?:[01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", "a time of day, such as 03:00:00", 64, or_empty=False
)
_DAY: Final = Matches(
    "(?:[0-9]{4}-)?(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])",
    "a day, such as 2026-12-31, or 12-31 for every year",
    64,
    or_empty=False,
)
# Bounds of the API server's estimate, far above those of the service.
_MAX_FLAGS: Final = 1000
_MAX_NETWORKS: Final = 1000


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
    connectRetryInterval: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
    """The seconds between two attempts to connect to the primary."""
    dumpFilePath: Annotated[Maybe[str], _DUMP] = UNSET
    """The dump to start from, as `gs://BUCKET/FILE`."""
    masterHeartbeatPeriod: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
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
    binLogPosition: Annotated[Maybe[Int64], Between(0)] = UNSET
    """The position in that file."""


class CloneSource(SpecStruct, frozen=True):
    """The source of a new clone; ignored once the instance exists."""

    sqlInstanceRef: SpecReference
    """The instance to clone."""
    binLogCoordinates: Maybe[BinLogCoordinates] = UNSET
    """How far into the binary log of the source the clone goes. MySQL only."""
    databaseNames: Maybe[list[str]] = UNSET
    """The databases to clone; all of them when none is named. SQL Server only."""
    pointInTime: Annotated[Maybe[str], TIMESTAMP] = UNSET
    """The point in time of the source's data, in RFC 3339."""


class ActiveDirectoryConfig(SpecStruct, frozen=True):
    domain: str
    """The domain, such as `corp.example.com`."""


class AdvancedMachineFeatures(SpecStruct, frozen=True):
    threadsPerCore: Annotated[Maybe[Int64], Between(0, 2), Default(0)] = UNSET
    """How many threads each core has: 1 or 2."""


class BackupRetentionSettings(SpecStruct, frozen=True):
    """The retention of backups. Its defaults depend on the edition: see `fit_instance_to_live`."""

    retainedBackups: Annotated[Int64, Between(0, 365)]
    """How many backups are kept."""
    retentionUnit: Annotated[Maybe[str], OneOf("COUNT")] = UNSET
    """The unit: COUNT is a number of backups."""


class BackupConfiguration(SpecStruct, frozen=True):
    backupRetentionSettings: Maybe[BackupRetentionSettings] = UNSET
    """How many backups are kept."""
    binaryLogEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether there is a binary log. MySQL only, and only with backups."""
    enabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether there are daily backups."""
    location: Annotated[Maybe[str], LOCATION_NAME] = UNSET
    """Where backups are kept: a region or a multi-region."""
    pointInTimeRecoveryEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the data can be restored to any point in time."""
    # A request: the service starts when it has capacity.
    startTime: Annotated[Maybe[str], _TIME_OF_DAY, Mark.CHOSEN, Mark.ASKED] = UNSET
    """When a backup may begin, in UTC: `HH:MM`."""
    transactionLogRetentionDays: Annotated[Maybe[Int64], Between(0, 35), Mark.CHOSEN] = UNSET
    """For how many days the transaction logs for point-in-time recovery are kept."""


class DataCacheConfig(SpecStruct, frozen=True):
    dataCacheEnabled: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether reads are cached on local disks. ENTERPRISE_PLUS only."""


class DatabaseFlag(SpecStruct, frozen=True):
    name: Annotated[str, _FLAG]
    """The name of the flag."""
    value: str
    """The value of the flag, as text."""


class DenyMaintenancePeriod(SpecStruct, frozen=True):
    endDate: Annotated[str, _DAY]
    """The last day: `yyyy-mm-dd`, or `mm-dd` for every year."""
    startDate: Annotated[str, _DAY]
    """The first day: `yyyy-mm-dd`, or `mm-dd` for every year."""
    time: Annotated[str, _SECOND_OF_DAY]
    """The time of day at which it starts and ends, in UTC: `HH:mm:SS`."""


class InsightsConfig(SpecStruct, frozen=True):
    queryInsightsEnabled: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether Query Insights is on."""
    queryPlansPerMinute: Annotated[Maybe[Int64], Between(0, 20), Default(5)] = UNSET
    """How many query plans are recorded per minute, 0 to 20."""
    queryStringLength: Annotated[Maybe[Int64], Between(256, 1048576, or_zero=True), Default(1024)] = UNSET
    """How many bytes of a query are recorded, 256 to 4500, or to 1048576 with ENTERPRISE_PLUS."""
    recordApplicationTags: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the tags that applications put into queries are recorded."""
    recordClientAddress: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the addresses of clients are recorded."""


class AuthorizedNetwork(SpecStruct, frozen=True):
    value: Annotated[str, IPV4_RANGE]
    """The addresses, in CIDR notation."""
    name: Maybe[str] = UNSET
    """The name of the entry."""
    expirationTime: Annotated[Maybe[str], TIMESTAMP] = UNSET
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
    authorizedNetworks: Annotated[
        Maybe[Annotated[list[AuthorizedNetwork], Meta(max_length=_MAX_NETWORKS)]], Keyed("name", "value")
    ] = UNSET
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
    sslMode: Annotated[
        Maybe[str], OneOf(UNENCRYPTED, "ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"), Default(UNENCRYPTED)
    ] = UNSET
    """Which connections are accepted: ALLOW_UNENCRYPTED_AND_ENCRYPTED, ENCRYPTED_ONLY or
    TRUSTED_CLIENT_CERTIFICATE_REQUIRED."""

    __checks__: ClassVar = (Check(Sized("pscConfig", 0, 1), "takes one element: keep one", "pscConfig"),)


class LocationPreference(SpecStruct, frozen=True):
    followGaeApplication: Maybe[str] = UNSET
    """The App Engine application to be close to."""
    secondaryZone: Annotated[Maybe[str], LOCATION_NAME] = UNSET
    """The zone of the standby."""
    zone: Annotated[Maybe[str], LOCATION_NAME, Mark.CHOSEN] = UNSET
    """The zone."""


class MaintenanceWindow(SpecStruct, frozen=True):
    day: Annotated[Maybe[Int64], Between(0, 7), Default(0)] = UNSET
    """The day of the week, 1 to 7; 1 is Monday, and 0 is any."""
    hour: Annotated[Maybe[Int64], Between(0, 23), Default(0)] = UNSET
    """The hour of the day in UTC, 0 to 23."""
    updateTrack: Annotated[Maybe[str], OneOf("canary", "stable", "week5")] = UNSET
    """When updates are installed, from first to last: `canary`, `stable` or `week5`."""


class PasswordValidationPolicy(SpecStruct, frozen=True):
    enablePasswordPolicy: Annotated[bool, Default(False)]
    """Whether the policy is enforced."""
    complexity: Annotated[Maybe[str], OneOf("COMPLEXITY_DEFAULT", "COMPLEXITY_UNSPECIFIED")] = UNSET
    """COMPLEXITY_DEFAULT requires lower-case letters, upper-case letters, digits and other characters."""
    disallowUsernameSubstring: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the name of the user is refused in a password."""
    minLength: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
    """The minimum number of characters."""
    passwordChangeInterval: Annotated[Maybe[str], GOOGLE_DURATION] = UNSET
    """The minimum time between two changes of a password, such as `600s`. PostgreSQL only."""
    reuseInterval: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
    """How many earlier passwords may not be used again."""


class SqlServerAuditConfig(SpecStruct, frozen=True):
    bucketRef: SpecReference
    """The bucket that audit files are uploaded to."""
    retentionInterval: Annotated[Maybe[str], GOOGLE_DURATION] = UNSET
    """How long audit files stay on the instance, such as `86400s`."""
    uploadInterval: Annotated[Maybe[str], GOOGLE_DURATION] = UNSET
    """How often audit files are uploaded, such as `600s`."""


class InstanceSettings(SpecStruct, frozen=True):
    """The settings. Those that protect data are removed only by an explicit value."""

    tier: Annotated[str, _TIER]
    """The machine, such as `db-custom-2-8192`."""
    activationPolicy: Annotated[Maybe[str], OneOf("ALWAYS", "NEVER", "ON_DEMAND"), Default("ALWAYS")] = UNSET
    """When the instance runs: ALWAYS, NEVER or ON_DEMAND."""
    activeDirectoryConfig: Maybe[ActiveDirectoryConfig] = UNSET
    """The Active Directory that the instance is in. SQL Server only."""
    advancedMachineFeatures: Maybe[AdvancedMachineFeatures] = UNSET
    """Details of the machine. SQL Server only."""
    authorizedGaeApplications: Maybe[list[str]] = UNSET
    """Deprecated: the service ignores it."""
    availabilityType: Annotated[Maybe[str], OneOf("ZONAL", "REGIONAL", ignore_case=True), Default("ZONAL")] = UNSET
    """ZONAL, or REGIONAL for a standby in another zone."""
    backupConfiguration: Annotated[Maybe[BackupConfiguration], Mark.PROTECTED] = UNSET
    """Backups and point-in-time recovery."""
    collation: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The collation of the server. SQL Server only."""
    connectorEnforcement: Annotated[Maybe[str], OneOf("REQUIRED", "NOT_REQUIRED"), Default("NOT_REQUIRED")] = UNSET
    """Whether clients have to connect through a connector: REQUIRED or NOT_REQUIRED."""
    # Deprecated: accepted, and never returned.
    crashSafeReplication: Annotated[Maybe[bool], Mark.ASKED] = UNSET
    """Deprecated: the service ignores it."""
    dataCacheConfig: Maybe[DataCacheConfig] = UNSET
    """The cache on local disks."""
    databaseFlags: Annotated[Maybe[Annotated[list[DatabaseFlag], Meta(max_length=_MAX_FLAGS)]], Keyed("name")] = UNSET
    """Settings of the database engine."""
    deletionProtectionEnabled: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the service refuses to delete the instance."""
    denyMaintenancePeriod: Maybe[DenyMaintenancePeriod] = UNSET
    """Days without maintenance."""
    diskAutoresize: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether the disk grows when it is nearly full."""
    diskAutoresizeLimit: Annotated[Maybe[Int64], Between(0), Default(0)] = UNSET
    """The size in GB up to which it grows; 0 is no limit."""
    diskSize: Annotated[Maybe[Int64], Between(10, or_zero=True), Mark.CHOSEN] = UNSET
    """The size of the disk in GB. It can only grow."""
    diskType: Annotated[Maybe[str], _DISK_TYPE, Default("PD_SSD"), Mark.IMMUTABLE] = UNSET
    """PD_SSD or PD_HDD."""
    edition: Annotated[Maybe[str], OneOf(ENTERPRISE, PLUS), Default(ENTERPRISE), Mark.PROTECTED] = UNSET
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
    pricingPlan: Annotated[Maybe[str], OneOf("PER_USE", "PACKAGE"), Default("PER_USE")] = UNSET
    """The pricing plan: PER_USE."""
    replicationType: Annotated[Maybe[str], OneOf("SYNCHRONOUS", "ASYNCHRONOUS"), Default("SYNCHRONOUS")] = UNSET
    """Deprecated: the service ignores it."""
    sqlServerAuditConfig: Maybe[SqlServerAuditConfig] = UNSET
    """Where audit files are stored, and for how long. SQL Server only."""
    timeZone: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The time zone of the server. SQL Server only."""


class SqlInstanceSpec(SpecStruct, frozen=True):
    """The spec of a SQLInstance."""

    settings: InstanceSettings
    """The settings of the instance."""
    resourceID: Annotated[Maybe[str], INSTANCE_NAME.constraint, Mark.IMMUTABLE] = UNSET
    """The name of the instance in the service; the resource's own when left out."""
    databaseVersion: Annotated[Maybe[str], _DATABASE_VERSION, Mark.CHOSEN] = UNSET
    """The database engine and its version, such as `POSTGRES_16`."""
    region: Annotated[Maybe[str], LOCATION_NAME, Mark.IMMUTABLE] = UNSET
    """Where the instance is, such as `europe-west1`."""
    instanceType: Annotated[Maybe[str], _INSTANCE_TYPE, Default("CLOUD_SQL_INSTANCE"), Mark.IMMUTABLE] = UNSET
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

    __checks__: ClassVar = (name_check(INSTANCE_NAME),)
