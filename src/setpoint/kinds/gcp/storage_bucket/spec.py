"""Spec and status of a StorageBucket: type, default, validation rule and mutability of each field."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from setpoint.core.schema.shape import Check, Default, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kinds.gcp.shared.config_connector import RESOURCE_ID_CHECK, SpecReference
from setpoint.kinds.typed_spec import Maybe, SpecStruct

_NUMBERS: Final = ("age", "daysSinceCustomTime", "daysSinceNoncurrentTime", "numNewerVersions")
_TEXTS: Final = ("createdBefore", "customTimeBefore", "noncurrentTimeBefore")
_LISTS: Final = ("matchesPrefix", "matchesStorageClass", "matchesSuffix")
CONDITION_NOT_EMPTY: Final = Check(
    " || ".join(
        [
            *(f"has(self.{name})" for name in _NUMBERS),
            *(f"(has(self.{name}) && self.{name} != '')" for name in _TEXTS),
            *(f"(has(self.{name}) && self.{name}.size() > 0)" for name in _LISTS),
            "(has(self.withState) && !(self.withState in ['', 'ANY']))",
        ]
    ),
    "says nothing, so that the rule would apply to every object at once: write age: 0 if that is meant",
)
TWO_REGIONS: Final = Check("self.dataLocations.size() > 1", "has to name two regions", "dataLocations")
# Equal regions: in any order, and in any case.
SAME_REGIONS: Final = """
    self.dataLocations.size() != 2 || oldSelf.dataLocations.size() != 2
    || (self.dataLocations[0] + ' ' + self.dataLocations[1]).lowerAscii() in [
      (oldSelf.dataLocations[0] + ' ' + oldSelf.dataLocations[1]).lowerAscii(),
      (oldSelf.dataLocations[1] + ' ' + oldSelf.dataLocations[0]).lowerAscii()]
"""


LOCATION: Final = "US"
STORAGE_CLASS: Final = "STANDARD"


class BucketVersioning(SpecStruct, frozen=True):
    enabled: Annotated[bool, Default(False)]
    """Whether objects that are overwritten or deleted are kept as older versions."""


class LifecycleAction(SpecStruct, frozen=True):
    type: str
    """Delete, SetStorageClass or AbortIncompleteMultipartUpload."""
    storageClass: Maybe[str] = UNSET
    """The new class of the objects."""


class LifecycleCondition(SpecStruct, frozen=True):
    age: Maybe[Int64] = UNSET
    """The minimum age of the object in days."""
    createdBefore: Maybe[str] = UNSET
    """The day before which the object was created: `yyyy-mm-dd`."""
    customTimeBefore: Maybe[str] = UNSET
    """The day before which the object's custom time is: `yyyy-mm-dd`."""
    daysSinceCustomTime: Maybe[Int64] = UNSET
    """The minimum days since the object's custom time."""
    daysSinceNoncurrentTime: Maybe[Int64] = UNSET
    """The minimum days since a newer version replaced it."""
    matchesPrefix: Maybe[list[str]] = UNSET
    """Prefixes of the name; one of them has to match."""
    matchesStorageClass: Maybe[list[str]] = UNSET
    """Classes of the object; one of them has to match."""
    matchesSuffix: Maybe[list[str]] = UNSET
    """Suffixes of the name; one of them has to match."""
    noncurrentTimeBefore: Maybe[str] = UNSET
    """The day before which a newer version replaced it: `yyyy-mm-dd`."""
    numNewerVersions: Maybe[Int64] = UNSET
    """The minimum number of newer versions."""
    withState: Maybe[Literal["LIVE", "ARCHIVED", "ANY", ""]] = UNSET
    """Whether it is the live version, or an archived one."""

    __checks__: ClassVar = (CONDITION_NOT_EMPTY,)


class LifecycleRule(SpecStruct, frozen=True):
    action: LifecycleAction
    """The action."""
    condition: LifecycleCondition
    """The objects that the rule applies to: every field has to match."""


class BucketAutoclass(SpecStruct, frozen=True):
    enabled: Annotated[bool, Default(False)]
    """Whether the service moves objects to the class that fits how they are used."""
    terminalStorageClass: Annotated[Maybe[str], Default("NEARLINE")] = UNSET
    """The last class of objects that are not read: NEARLINE or ARCHIVE."""


class BucketSoftDeletePolicy(SpecStruct, frozen=True):
    retentionDurationSeconds: Annotated[Maybe[Int64], Default(604800), Mark.PROTECTED] = UNSET
    """For how many seconds deleted objects can be restored; 0 turns soft delete off."""


class BucketRetentionPolicy(SpecStruct, frozen=True):
    retentionPeriod: Int64
    """For how many seconds an object can be neither deleted nor replaced."""
    isLocked: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the policy can only get stricter. A lock cannot be undone."""


class BucketCors(SpecStruct, frozen=True):
    maxAgeSeconds: Maybe[Int64] = UNSET
    """For how many seconds a browser may cache the response."""
    method: Maybe[list[str]] = UNSET
    """The HTTP methods; `*` is any."""
    origin: Maybe[list[str]] = UNSET
    """The origins; `*` is any."""
    responseHeader: Maybe[list[str]] = UNSET
    """The headers that a page may read."""


class BucketLogging(SpecStruct, frozen=True):
    logBucket: str
    """The bucket that logs are written to."""
    logObjectPrefix: Maybe[str] = UNSET
    """The prefix of their names; the name of the bucket when left out."""


class BucketWebsite(SpecStruct, frozen=True):
    mainPageSuffix: Maybe[str] = UNSET
    """The page of a folder, such as `index.html`."""
    notFoundPage: Maybe[str] = UNSET
    """The page for objects that do not exist."""


class BucketEncryption(SpecStruct, frozen=True):
    kmsKeyRef: SpecReference
    """The key."""


class CustomPlacementConfig(SpecStruct, frozen=True):
    dataLocations: list[str]
    """The two regions, such as EUROPE-WEST1 and EUROPE-WEST4."""

    __checks__: ClassVar = (TWO_REGIONS,)
    __unchanged__: ClassVar = SAME_REGIONS


class PublicNetworkSource(SpecStruct, frozen=True):
    allowedIpCidrRanges: list[str]
    """The addresses, in CIDR notation."""


class VpcNetworkSource(SpecStruct, frozen=True):
    networkRef: SpecReference
    """The network."""
    allowedIpCidrRanges: list[str]
    """The addresses in it, in CIDR notation."""


class BucketIpFilter(SpecStruct, frozen=True):
    mode: Annotated[Literal["Enabled", "Disabled"], Default("Disabled")]
    """Whether the filter is enforced."""
    publicNetworkSource: Maybe[PublicNetworkSource] = UNSET
    """The public addresses that reach the bucket."""
    vpcNetworkSources: Maybe[list[VpcNetworkSource]] = UNSET
    """The networks that reach the bucket."""
    allowCrossOrgVpcs: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether networks of other organizations may be among them."""
    allowAllServiceAgentAccess: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether Google's own services reach the bucket in any case."""


class StorageBucketSpec(SpecStruct, frozen=True):
    """The spec of a StorageBucket. Fields that protect data or access are removed only by an explicit value."""

    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The name of the bucket in the service; the resource's own when left out."""
    location: Annotated[Maybe[str], Default(LOCATION), Mark.IMMUTABLE] = UNSET
    """Where the bucket is: a region, a dual region or a multi-region."""
    customPlacementConfig: Annotated[Maybe[CustomPlacementConfig], Mark.IMMUTABLE] = UNSET
    """The regions of a dual region of your own choice."""
    storageClass: Annotated[Maybe[str], Default(STORAGE_CLASS)] = UNSET
    """The class of objects that do not name one."""
    autoclass: Maybe[BucketAutoclass] = UNSET
    """Storage classes chosen by the service."""
    uniformBucketLevelAccess: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether access is granted on the bucket only, and not on single objects."""
    bucketPolicyOnly: Maybe[bool] = UNSET
    """Deprecated: the older name of `uniformBucketLevelAccess`, which wins."""
    publicAccessPrevention: Annotated[Maybe[str], Default("inherited"), Mark.PROTECTED] = UNSET
    """`enforced` refuses public access; `inherited` leaves that to the organization."""
    versioning: Maybe[BucketVersioning] = UNSET
    """Older versions of objects."""
    lifecycleRule: Maybe[Annotated[list[LifecycleRule], Meta(max_length=1000)]] = UNSET
    """Rules that delete objects, or change their class, over time."""
    softDeletePolicy: Annotated[Maybe[BucketSoftDeletePolicy], Mark.PROTECTED] = UNSET
    """For how long deleted objects can be restored."""
    retentionPolicy: Annotated[Maybe[BucketRetentionPolicy], Mark.PROTECTED] = UNSET
    """For how long objects cannot be deleted or replaced."""
    defaultEventBasedHold: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether new objects get an event-based hold, which stays until it is released."""
    requesterPays: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the requester pays for the request, instead of the owner of the bucket."""
    encryption: Maybe[BucketEncryption] = UNSET
    """The key for objects that do not name one."""
    cors: Maybe[list[BucketCors]] = UNSET
    """Which web pages of other origins may read."""
    website: Maybe[BucketWebsite] = UNSET
    """The bucket as a web site."""
    logging: Maybe[BucketLogging] = UNSET
    """Access logs."""
    ipFilter: Maybe[BucketIpFilter] = UNSET
    """The addresses and networks that can reach the bucket."""

    __checks__: ClassVar = (RESOURCE_ID_CHECK,)


class BucketMetadata(SpecStruct, frozen=True):
    """The metadata that is compared: the labels."""

    labels: Maybe[dict[str, str]] = UNSET
    """The labels of the bucket."""


class StorageBucketTree(SpecStruct, frozen=True):
    """The compared tree: spec and labels."""

    spec: StorageBucketSpec
    metadata: BucketMetadata | UnsetType = UNSET


class ObservedSoftDelete(Struct, frozen=True):
    effectiveTime: str | UnsetType = UNSET
    """Since when it is in effect."""
    retentionDurationSeconds: Int64 | UnsetType = UNSET
    """For how many seconds a deleted object can be restored."""


class BucketObservedState(Struct, frozen=True):
    softDeletePolicy: ObservedSoftDelete | UnsetType = UNSET
    """The soft delete policy."""
    storageClass: str | UnsetType = UNSET
    """The class of objects that do not name one."""


class StorageBucketStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec."""

    observedState: BucketObservedState | UnsetType = UNSET
    """The storage class, and the soft delete policy with the time since when it is in effect."""
    selfLink: str | UnsetType = UNSET
    """The address of the bucket in the API."""
    url: str | UnsetType = UNSET
    """`gs://` and the bucket's name."""
