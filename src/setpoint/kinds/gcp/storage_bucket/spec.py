"""The spec of a StorageBucket, field by field: what each is, its default, who may change it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import Declared, overlay, overlay_typed
from setpoint.core.paths import Path, get_at
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import Default, Mark, with_marks
from setpoint.core.values import Json, Missing
from setpoint.kinds.config_connector import Ref

LOCATION: Final = "US"
STORAGE_CLASS: Final = "STANDARD"
_AUTOCLASS: Final = Path(("spec", "autoclass", "enabled"))
_SERVICE_DECIDES: Final = {"spec.storageClass": Mark.OUTPUT_ONLY}

T = TypeVar("T")
# A value, an explicit null, or nothing.
Maybe: TypeAlias = T | None | UnsetType


class _Part(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of the spec: nothing in it that the type does not name."""


class Versioning(_Part, frozen=True):
    enabled: Annotated[bool, Default(False)]


class LifecycleAction(_Part, frozen=True):
    type: str
    storageClass: Maybe[str] = UNSET


class LifecycleCondition(_Part, frozen=True):
    age: Maybe[int] = UNSET
    createdBefore: Maybe[str] = UNSET
    customTimeBefore: Maybe[str] = UNSET
    daysSinceCustomTime: Maybe[int] = UNSET
    daysSinceNoncurrentTime: Maybe[int] = UNSET
    matchesPrefix: Maybe[list[str]] = UNSET
    matchesStorageClass: Maybe[list[str]] = UNSET
    matchesSuffix: Maybe[list[str]] = UNSET
    noncurrentTimeBefore: Maybe[str] = UNSET
    numNewerVersions: Maybe[int] = UNSET
    withState: Maybe[Literal["LIVE", "ARCHIVED", "ANY", ""]] = UNSET


class LifecycleRule(_Part, frozen=True):
    action: LifecycleAction
    condition: LifecycleCondition


class Autoclass(_Part, frozen=True):
    enabled: Annotated[bool, Default(False)]
    terminalStorageClass: Annotated[Maybe[str], Default("NEARLINE")] = UNSET


class SoftDeletePolicy(_Part, frozen=True):
    retentionDurationSeconds: Annotated[Maybe[int], Default(604800), Mark.PROTECTED] = UNSET


class RetentionPolicy(_Part, frozen=True):
    retentionPeriod: int
    isLocked: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET


class Cors(_Part, frozen=True):
    maxAgeSeconds: Maybe[int] = UNSET
    method: Maybe[list[str]] = UNSET
    origin: Maybe[list[str]] = UNSET
    responseHeader: Maybe[list[str]] = UNSET


class Logging(_Part, frozen=True):
    logBucket: str
    logObjectPrefix: Maybe[str] = UNSET


class Website(_Part, frozen=True):
    mainPageSuffix: Maybe[str] = UNSET
    notFoundPage: Maybe[str] = UNSET


class Encryption(_Part, frozen=True):
    kmsKeyRef: Ref


class CustomPlacementConfig(_Part, frozen=True):
    dataLocations: list[str]


class PublicNetworkSource(_Part, frozen=True):
    allowedIpCidrRanges: list[str]


class VpcNetworkSource(_Part, frozen=True):
    networkRef: Ref
    allowedIpCidrRanges: list[str]


class IpFilter(_Part, frozen=True):
    mode: Annotated[Literal["Enabled", "Disabled"], Default("Disabled")]
    publicNetworkSource: Maybe[PublicNetworkSource] = UNSET
    vpcNetworkSources: Maybe[list[VpcNetworkSource]] = UNSET
    allowCrossOrgVpcs: Annotated[Maybe[bool], Default(False)] = UNSET
    allowAllServiceAgentAccess: Annotated[Maybe[bool], Default(False)] = UNSET


class StorageBucketSpec(_Part, frozen=True):
    """The spec. What keeps data or strangers out is given up only by an explicit value."""

    resourceID: Annotated[Maybe[str], Mark.IMMUTABLE] = UNSET
    location: Annotated[Maybe[str], Default(LOCATION), Mark.IMMUTABLE] = UNSET
    customPlacementConfig: Annotated[Maybe[CustomPlacementConfig], Mark.IMMUTABLE] = UNSET
    storageClass: Annotated[Maybe[str], Default(STORAGE_CLASS)] = UNSET
    autoclass: Maybe[Autoclass] = UNSET
    uniformBucketLevelAccess: Annotated[Maybe[bool], Default(False), Mark.PROTECTED] = UNSET
    bucketPolicyOnly: Maybe[bool] = UNSET
    publicAccessPrevention: Annotated[Maybe[str], Default("inherited"), Mark.PROTECTED] = UNSET
    versioning: Maybe[Versioning] = UNSET
    lifecycleRule: Maybe[list[LifecycleRule]] = UNSET
    softDeletePolicy: Annotated[Maybe[SoftDeletePolicy], Mark.PROTECTED] = UNSET
    retentionPolicy: Annotated[Maybe[RetentionPolicy], Mark.PROTECTED] = UNSET
    defaultEventBasedHold: Annotated[Maybe[bool], Default(False)] = UNSET
    requesterPays: Annotated[Maybe[bool], Default(False)] = UNSET
    encryption: Maybe[Encryption] = UNSET
    cors: Maybe[list[Cors]] = UNSET
    website: Maybe[Website] = UNSET
    logging: Maybe[Logging] = UNSET
    ipFilter: Maybe[IpFilter] = UNSET


class BucketMetadata(_Part, frozen=True):
    """What of a manifest's metadata the bucket has, too."""

    labels: Maybe[dict[str, str]] = UNSET


class StorageBucketTree(_Part, frozen=True):
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
    if get_at(overlay(declared, live), _AUTOCLASS) is not True:
        return declared
    if get_at(live, _AUTOCLASS) is True:
        return replace(declared, shape=with_marks(declared.shape, _SERVICE_DECIDES))
    spec = declared.tree["spec"]
    assert isinstance(spec, Mapping)
    return replace(declared, tree={**declared.tree, "spec": {**spec, "storageClass": STORAGE_CLASS}})
