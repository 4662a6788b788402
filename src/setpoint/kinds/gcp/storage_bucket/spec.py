"""The spec of a StorageBucket, field by field: what each is, its default, who may change it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from setpoint.core.numbers import Int64
from setpoint.core.overlay import Declared, overlay, overlay_typed
from setpoint.core.paths import Path, get_at, remove_at
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import Default, Mark, with_marks
from setpoint.core.values import Json, Missing
from setpoint.kinds.config_connector import NAMED, Ref, without_mark
from setpoint.kinds.gcp.storage_bucket.checks import SAME_REGIONS, SAYS_SOMETHING, TWO_REGIONS
from setpoint.kinds.spec_parts import Maybe, Part

LOCATION: Final = "US"
STORAGE_CLASS: Final = "STANDARD"
_AUTOCLASS: Final = Path(("spec", "autoclass", "enabled"))
_TERMINAL: Final = Path(("spec", "autoclass", "terminalStorageClass"))
_SERVICE_DECIDES: Final = {"spec.storageClass": Mark.OUTPUT_ONLY}


class Versioning(Part, frozen=True):
    enabled: Annotated[bool, Default(False)]
    """Whether what is overwritten or deleted is kept as an older version."""


class LifecycleAction(Part, frozen=True):
    type: str
    """Delete, SetStorageClass or AbortIncompleteMultipartUpload."""
    storageClass: Maybe[str] = UNSET
    """The class that objects get."""


class LifecycleCondition(Part, frozen=True):
    age: Maybe[Int64] = UNSET
    """The days that the object is old, or older."""
    createdBefore: Maybe[str] = UNSET
    """The day before which the object was made: `yyyy-mm-dd`."""
    customTimeBefore: Maybe[str] = UNSET
    """The day before which the object's custom time is: `yyyy-mm-dd`."""
    daysSinceCustomTime: Maybe[Int64] = UNSET
    """The days since the object's custom time."""
    daysSinceNoncurrentTime: Maybe[Int64] = UNSET
    """The days since a newer version took its place."""
    matchesPrefix: Maybe[list[str]] = UNSET
    """What the name starts with; one of them."""
    matchesStorageClass: Maybe[list[str]] = UNSET
    """The class of the object; one of them."""
    matchesSuffix: Maybe[list[str]] = UNSET
    """What the name ends with; one of them."""
    noncurrentTimeBefore: Maybe[str] = UNSET
    """The day before which a newer version took its place: `yyyy-mm-dd`."""
    numNewerVersions: Maybe[Int64] = UNSET
    """How many newer versions there are, or more."""
    withState: Maybe[Literal["LIVE", "ARCHIVED", "ANY", ""]] = UNSET
    """Whether it is the live version, or an archived one."""

    __checks__: ClassVar = (SAYS_SOMETHING,)


class LifecycleRule(Part, frozen=True):
    action: LifecycleAction
    """What is done."""
    condition: LifecycleCondition
    """To which objects: all that it says has to hold."""


class Autoclass(Part, frozen=True):
    enabled: Annotated[bool, Default(False)]
    """Whether the service moves objects to the class that fits how they are used."""
    terminalStorageClass: Annotated[Maybe[str], Default("NEARLINE")] = UNSET
    """The class of what nobody reads for long: NEARLINE or ARCHIVE."""


class SoftDeletePolicy(Part, frozen=True):
    retentionDurationSeconds: Annotated[Maybe[Int64], Default(604800), Mark.PROTECTED] = UNSET
    """For how many seconds what is deleted can be had back; 0 turns it off."""


class RetentionPolicy(Part, frozen=True):
    retentionPeriod: Int64
    """For how many seconds an object can be neither deleted nor replaced."""
    isLocked: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether the policy can only get stricter. A lock cannot be undone."""


class Cors(Part, frozen=True):
    maxAgeSeconds: Maybe[Int64] = UNSET
    """For how many seconds a browser may remember the answer."""
    method: Maybe[list[str]] = UNSET
    """The HTTP methods; `*` is any."""
    origin: Maybe[list[str]] = UNSET
    """The origins; `*` is any."""
    responseHeader: Maybe[list[str]] = UNSET
    """The headers that a page may read."""


class Logging(Part, frozen=True):
    logBucket: str
    """The bucket that logs go to."""
    logObjectPrefix: Maybe[str] = UNSET
    """What their names start with; the name of the bucket when left out."""


class Website(Part, frozen=True):
    mainPageSuffix: Maybe[str] = UNSET
    """The page of a folder, such as `index.html`."""
    notFoundPage: Maybe[str] = UNSET
    """The page for what is not there."""


class Encryption(Part, frozen=True):
    kmsKeyRef: Ref
    """The key."""


class CustomPlacementConfig(Part, frozen=True):
    dataLocations: list[str]
    """The two regions, such as EUROPE-WEST1 and EUROPE-WEST4."""

    __checks__: ClassVar = (TWO_REGIONS,)
    __unchanged__: ClassVar = SAME_REGIONS


class PublicNetworkSource(Part, frozen=True):
    allowedIpCidrRanges: list[str]
    """The addresses, in CIDR notation."""


class VpcNetworkSource(Part, frozen=True):
    networkRef: Ref
    """The network."""
    allowedIpCidrRanges: list[str]
    """The addresses in it, in CIDR notation."""


class IpFilter(Part, frozen=True):
    mode: Annotated[Literal["Enabled", "Disabled"], Default("Disabled")]
    """Whether the filter is in force."""
    publicNetworkSource: Maybe[PublicNetworkSource] = UNSET
    """The public addresses that reach the bucket."""
    vpcNetworkSources: Maybe[list[VpcNetworkSource]] = UNSET
    """The networks that reach the bucket."""
    allowCrossOrgVpcs: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether networks of other organizations may be among them."""
    allowAllServiceAgentAccess: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether Google's own services reach the bucket in any case."""


class StorageBucketSpec(Part, frozen=True):
    """The spec. What keeps data or strangers out is given up only by an explicit value."""

    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    """The name of the bucket in the service; the resource's own when left out."""
    location: Annotated[Maybe[str], Default(LOCATION), Mark.IMMUTABLE] = UNSET
    """Where the bucket is: a region, a dual region or a multi-region."""
    customPlacementConfig: Annotated[Maybe[CustomPlacementConfig], Mark.IMMUTABLE] = UNSET
    """The regions of a dual region of your own choice."""
    storageClass: Annotated[Maybe[str], Default(STORAGE_CLASS)] = UNSET
    """The class of objects that come without one."""
    autoclass: Maybe[Autoclass] = UNSET
    """Storage classes chosen by the service."""
    uniformBucketLevelAccess: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    """Whether only the bucket says who may do what, and no object for itself."""
    bucketPolicyOnly: Maybe[bool] = UNSET
    """Deprecated: the older name of `uniformBucketLevelAccess`, which wins."""
    publicAccessPrevention: Annotated[Maybe[str], Default("inherited"), Mark.PROTECTED] = UNSET
    """`enforced` keeps the public out; `inherited` leaves that to the organization."""
    versioning: Maybe[Versioning] = UNSET
    """Older versions of objects."""
    lifecycleRule: Maybe[Annotated[list[LifecycleRule], Meta(max_length=1000)]] = UNSET
    """What becomes of objects in time."""
    softDeletePolicy: Annotated[Maybe[SoftDeletePolicy], Mark.PROTECTED] = UNSET
    """For how long deleted objects can be had back."""
    retentionPolicy: Annotated[Maybe[RetentionPolicy], Mark.PROTECTED] = UNSET
    """For how long objects have to stay."""
    defaultEventBasedHold: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether new objects are held until somebody lets go of them."""
    requesterPays: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether whoever reads also pays for it."""
    encryption: Maybe[Encryption] = UNSET
    """The key for objects that come without one."""
    cors: Maybe[list[Cors]] = UNSET
    """Which pages of other origins may read."""
    website: Maybe[Website] = UNSET
    """The bucket as a web site."""
    logging: Maybe[Logging] = UNSET
    """Logs of who reads and writes."""
    ipFilter: Maybe[IpFilter] = UNSET
    """From where the bucket can be reached."""

    __checks__: ClassVar = (NAMED,)


class BucketMetadata(Part, frozen=True):
    """What of a manifest's metadata the bucket has, too."""

    labels: Maybe[dict[str, str]] = UNSET
    """The labels of the bucket."""


class StorageBucketTree(Part, frozen=True):
    """What is compared: the author's word and the live bucket in the same terms."""

    spec: StorageBucketSpec
    metadata: BucketMetadata | UnsetType = UNSET


def effective_desired_storage_bucket(
    spec: StorageBucketSpec, live: StorageBucketSpec | Missing, policy: FieldPolicy
) -> StorageBucketSpec:
    """What the bucket should be: the spec over the live bucket in the spec's terms; paths start with `spec`.

    While Autoclass is on, the service decides about the storage class.
    """
    before = live if isinstance(live, Missing) else StorageBucketTree(spec=live)
    return overlay_typed(StorageBucketTree(spec=spec), before, policy, fitted_bucket).spec


def fitted_bucket(declared: Declared, live: Mapping[str, Json]) -> Declared:
    """While Autoclass is on, the service decides about the storage class; it starts from the standard one."""
    declared = without_mark(declared, live)
    if get_at(overlay(declared, live), _AUTOCLASS) is not True:
        return _without_terminal(declared)
    if get_at(live, _AUTOCLASS) is True:
        return replace(declared, shape=with_marks(declared.shape, _SERVICE_DECIDES))
    spec = declared.tree["spec"]
    assert isinstance(spec, Mapping)
    return replace(declared, tree={**declared.tree, "spec": {**spec, "storageClass": STORAGE_CLASS}})


def _without_terminal(declared: Declared) -> Declared:
    """Without Autoclass no class is the last: the author may say one, and leave the switch to others."""
    tree = remove_at(declared.tree, _TERMINAL)
    assert isinstance(tree, Mapping)
    return replace(declared, tree=tree)
