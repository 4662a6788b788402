"""Spec and status of a StorageBucket: type, default, validation rule and mutability of each field."""

from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from setpoint.core.schema.checks import AnyOf, Check, ExactlyOne, Given, Is, Not, NotEmpty, Sized
from setpoint.core.schema.constraints import Between, Matches, OneOf
from setpoint.core.schema.shape import Default, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kind.typed_spec import Maybe, SpecStruct
from setpoint.kinds.gcp.shared.config_connector import (
    BUCKET_NAME,
    IP_RANGE,
    LOCATION_NAME,
    RESOURCE_ID_CHECK,
    SpecReference,
    name_check,
)

_NUMBERS: Final = ("age", "daysSinceCustomTime", "daysSinceNoncurrentTime", "numNewerVersions")
_TEXTS: Final = ("createdBefore", "customTimeBefore", "noncurrentTimeBefore")
_LISTS: Final = ("matchesPrefix", "matchesStorageClass", "matchesSuffix")
CONDITION_NOT_EMPTY: Final = Check(
    AnyOf(*map(Given, _NUMBERS), *map(NotEmpty, (*_TEXTS, *_LISTS)), Is("withState", "LIVE", "ARCHIVED")),
    "says nothing, so that the rule would apply to every object at once: write age: 0 if that is meant",
)
TWO_REGIONS: Final = Check(Sized("dataLocations", 2, 16), "has to name two regions", "dataLocations")
# An action has a class if, and only if, it sets one.
CLASS_TO_SET: Final = Check(
    ExactlyOne(NotEmpty("storageClass"), Not(Is("type", "SetStorageClass"))),
    "write the class of SetStorageClass, and of no other action",
    "storageClass",
)
# Equal regions: in any order, and in any case.
SAME_REGIONS: Final = """
    self.dataLocations.size() != 2 || oldSelf.dataLocations.size() != 2
    || (self.dataLocations[0] + ' ' + self.dataLocations[1]).lowerAscii() in [
      (oldSelf.dataLocations[0] + ' ' + oldSelf.dataLocations[1]).lowerAscii(),
      (oldSelf.dataLocations[1] + ' ' + oldSelf.dataLocations[0]).lowerAscii()]
"""


# Those that new buckets have, and older ones of buckets that are there already.
_STORAGE_CLASSES: Final = OneOf(
    *("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "RAPID"),
    *("MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY"),
)
_DAY: Final = Matches("[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", "a day, such as 2026-12-31", 64)
_METHOD: Final = Matches("[A-Za-z-]+|[*]", "an HTTP method, such as GET, or '*'", 32)
# Bounds of the API server's estimate, not below those of the service.
_MAX_ITEMS: Final = 100
_MAX_NETWORKS: Final = 25
_IpRanges: TypeAlias = Annotated[list[Annotated[str, IP_RANGE]], Meta(max_length=200)]
LOCATION: Final = "US"
STORAGE_CLASS: Final = "STANDARD"


class BucketVersioning(SpecStruct, frozen=True):
    enabled: Annotated[bool, Default(False)]
    """Whether objects that are overwritten or deleted are kept as older versions."""


class LifecycleAction(SpecStruct, frozen=True):
    type: Annotated[str, OneOf("Delete", "SetStorageClass", "AbortIncompleteMultipartUpload", or_empty=False)]
    """Delete, SetStorageClass or AbortIncompleteMultipartUpload."""
    storageClass: Annotated[Maybe[str], _STORAGE_CLASSES] = UNSET
    """The new class of the objects."""

    __checks__: ClassVar = (CLASS_TO_SET,)


class LifecycleCondition(SpecStruct, frozen=True):
    age: Annotated[Maybe[Int64], Between(0)] = UNSET
    """The minimum age of the object in days."""
    createdBefore: Annotated[Maybe[str], _DAY] = UNSET
    """The day before which the object was created: `yyyy-mm-dd`."""
    customTimeBefore: Annotated[Maybe[str], _DAY] = UNSET
    """The day before which the object's custom time is: `yyyy-mm-dd`."""
    daysSinceCustomTime: Annotated[Maybe[Int64], Between(0)] = UNSET
    """The minimum days since the object's custom time."""
    daysSinceNoncurrentTime: Annotated[Maybe[Int64], Between(0)] = UNSET
    """The minimum days since a newer version replaced it."""
    matchesPrefix: Maybe[list[str]] = UNSET
    """Prefixes of the name; one of them has to match."""
    matchesStorageClass: Maybe[Annotated[list[Annotated[str, _STORAGE_CLASSES]], Meta(max_length=20)]] = UNSET
    """Classes of the object; one of them has to match."""
    matchesSuffix: Maybe[list[str]] = UNSET
    """Suffixes of the name; one of them has to match."""
    noncurrentTimeBefore: Annotated[Maybe[str], _DAY] = UNSET
    """The day before which a newer version replaced it: `yyyy-mm-dd`."""
    numNewerVersions: Annotated[Maybe[Int64], Between(0)] = UNSET
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
    terminalStorageClass: Annotated[Maybe[str], OneOf("NEARLINE", "ARCHIVE"), Default("NEARLINE")] = UNSET
    """The last class of objects that are not read: NEARLINE or ARCHIVE."""


class BucketSoftDeletePolicy(SpecStruct, frozen=True):
    retentionDurationSeconds: Annotated[
        Maybe[Int64], Between(604800, 7776000, or_zero=True), Default(604800), Mark.PROTECTED
    ] = UNSET
    """For how many seconds deleted objects can be restored; 0 turns soft delete off."""


class BucketRetentionPolicy(SpecStruct, frozen=True):
    retentionPeriod: Annotated[Int64, Between(1, 3155760000)]
    """For how many seconds an object can be neither deleted nor replaced."""
    isLocked: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the policy can only get stricter. A lock cannot be undone."""


class BucketCors(SpecStruct, frozen=True):
    maxAgeSeconds: Annotated[Maybe[Int64], Between(0)] = UNSET
    """For how many seconds a browser may cache the response."""
    method: Maybe[Annotated[list[Annotated[str, _METHOD]], Meta(max_length=20)]] = UNSET
    """The HTTP methods; `*` is any."""
    origin: Maybe[list[str]] = UNSET
    """The origins; `*` is any."""
    responseHeader: Maybe[list[str]] = UNSET
    """The headers that a page may read."""


class BucketLogging(SpecStruct, frozen=True):
    logBucket: Annotated[str, replace(BUCKET_NAME.constraint, or_empty=False)]
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
    dataLocations: Annotated[list[Annotated[str, LOCATION_NAME]], Meta(max_length=16)]
    """The two regions, such as EUROPE-WEST1 and EUROPE-WEST4."""

    __checks__: ClassVar = (TWO_REGIONS,)
    __unchanged__: ClassVar = SAME_REGIONS


class PublicNetworkSource(SpecStruct, frozen=True):
    allowedIpCidrRanges: _IpRanges
    """The addresses, in CIDR notation."""


class VpcNetworkSource(SpecStruct, frozen=True):
    networkRef: SpecReference
    """The network."""
    allowedIpCidrRanges: _IpRanges
    """The addresses in it, in CIDR notation."""


class BucketIpFilter(SpecStruct, frozen=True):
    mode: Annotated[Literal["Enabled", "Disabled"], Default("Disabled")]
    """Whether the filter is enforced."""
    publicNetworkSource: Maybe[PublicNetworkSource] = UNSET
    """The public addresses that reach the bucket."""
    vpcNetworkSources: Maybe[Annotated[list[VpcNetworkSource], Meta(max_length=_MAX_NETWORKS)]] = UNSET
    """The networks that reach the bucket."""
    allowCrossOrgVpcs: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether networks of other organizations may be among them."""
    allowAllServiceAgentAccess: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether Google's own services reach the bucket in any case."""


class StorageBucketSpec(SpecStruct, frozen=True):
    """The spec of a StorageBucket. Fields that protect data or access are removed only by an explicit value."""

    resourceID: Annotated[Maybe[str], BUCKET_NAME.constraint, Mark.IMMUTABLE] = UNSET
    """The name of the bucket in the service; the resource's own when left out."""
    location: Annotated[Maybe[str], LOCATION_NAME, Default(LOCATION), Mark.IMMUTABLE] = UNSET
    """Where the bucket is: a region, a dual region or a multi-region."""
    customPlacementConfig: Annotated[Maybe[CustomPlacementConfig], Mark.IMMUTABLE] = UNSET
    """The regions of a dual region of your own choice."""
    storageClass: Annotated[Maybe[str], _STORAGE_CLASSES, Default(STORAGE_CLASS)] = UNSET
    """The class of objects that do not name one: STANDARD, NEARLINE, COLDLINE or ARCHIVE."""
    autoclass: Maybe[BucketAutoclass] = UNSET
    """Storage classes chosen by the service."""
    uniformBucketLevelAccess: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether access is granted on the bucket only, and not on single objects."""
    bucketPolicyOnly: Maybe[bool] = UNSET
    """Deprecated: the older name of `uniformBucketLevelAccess`, which wins."""
    publicAccessPrevention: Annotated[
        Maybe[str], OneOf("enforced", "inherited", "unspecified"), Default("inherited"), Mark.PROTECTED
    ] = UNSET
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
    cors: Maybe[Annotated[list[BucketCors], Meta(max_length=_MAX_ITEMS)]] = UNSET
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

    __checks__: ClassVar = (name_check(BUCKET_NAME),)


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
