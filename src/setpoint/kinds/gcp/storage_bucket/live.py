"""The live bucket as the JSON API reports it, reduced to the fields that a spec models: no other changes its digest."""

from typing import Final

import msgspec
from msgspec import UNSET, Struct

from setpoint.clients.response_bodies import decode_response
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.kind.typed_spec import Maybe


class _Part(Struct, frozen=True, kw_only=True):
    """A part of the bucket. Members that are not modelled are dropped."""


class LiveUniformAccess(_Part, frozen=True):
    enabled: bool = False


class LiveIamConfiguration(_Part, frozen=True):
    uniformBucketLevelAccess: Maybe[LiveUniformAccess] = UNSET
    publicAccessPrevention: Maybe[str] = UNSET


class LiveVersioning(_Part, frozen=True):
    enabled: bool = False


class LiveLifecycleAction(_Part, frozen=True):
    type: str = ""
    storageClass: Maybe[str] = UNSET


class LiveLifecycleCondition(_Part, frozen=True):
    age: Maybe[int] = UNSET
    createdBefore: Maybe[str] = UNSET
    customTimeBefore: Maybe[str] = UNSET
    daysSinceCustomTime: Maybe[int] = UNSET
    daysSinceNoncurrentTime: Maybe[int] = UNSET
    isLive: Maybe[bool] = UNSET
    matchesPrefix: Maybe[list[str]] = UNSET
    matchesStorageClass: Maybe[list[str]] = UNSET
    matchesSuffix: Maybe[list[str]] = UNSET
    noncurrentTimeBefore: Maybe[str] = UNSET
    numNewerVersions: Maybe[int] = UNSET


class LiveLifecycleRule(_Part, frozen=True):
    action: LiveLifecycleAction = LiveLifecycleAction()
    condition: LiveLifecycleCondition = LiveLifecycleCondition()


class LiveLifecycle(_Part, frozen=True):
    rule: Maybe[list[LiveLifecycleRule]] = UNSET


class LiveAutoclass(_Part, frozen=True):
    enabled: bool = False
    terminalStorageClass: Maybe[str] = UNSET


class LiveSoftDeletePolicy(_Part, frozen=True):
    retentionDurationSeconds: Maybe[int] = UNSET


class LiveRetentionPolicy(_Part, frozen=True):
    retentionPeriod: int = 0
    isLocked: Maybe[bool] = UNSET


class LiveCors(_Part, frozen=True):
    maxAgeSeconds: Maybe[int] = UNSET
    method: Maybe[list[str]] = UNSET
    origin: Maybe[list[str]] = UNSET
    responseHeader: Maybe[list[str]] = UNSET


class LiveLogging(_Part, frozen=True):
    logBucket: str = ""
    logObjectPrefix: Maybe[str] = UNSET


class LiveWebsite(_Part, frozen=True):
    mainPageSuffix: Maybe[str] = UNSET
    notFoundPage: Maybe[str] = UNSET


class LiveEncryption(_Part, frozen=True):
    defaultKmsKeyName: Maybe[str] = UNSET


class LiveBilling(_Part, frozen=True):
    requesterPays: Maybe[bool] = UNSET


class LiveCustomPlacement(_Part, frozen=True):
    dataLocations: Maybe[list[str]] = UNSET


class LivePublicNetworkSource(_Part, frozen=True):
    allowedIpCidrRanges: Maybe[list[str]] = UNSET


class LiveVpcNetworkSource(_Part, frozen=True):
    network: str = ""
    allowedIpCidrRanges: Maybe[list[str]] = UNSET


class LiveIpFilter(_Part, frozen=True):
    mode: str = "Disabled"
    publicNetworkSource: Maybe[LivePublicNetworkSource] = UNSET
    vpcNetworkSources: Maybe[list[LiveVpcNetworkSource]] = UNSET
    allowCrossOrgVpcs: Maybe[bool] = UNSET
    allowAllServiceAgentAccess: Maybe[bool] = UNSET


class StorageBucket(_Part, frozen=True):
    """The live bucket."""

    name: str
    location: Maybe[str] = UNSET
    customPlacementConfig: Maybe[LiveCustomPlacement] = UNSET
    storageClass: Maybe[str] = UNSET
    autoclass: Maybe[LiveAutoclass] = UNSET
    iamConfiguration: Maybe[LiveIamConfiguration] = UNSET
    versioning: Maybe[LiveVersioning] = UNSET
    lifecycle: Maybe[LiveLifecycle] = UNSET
    softDeletePolicy: Maybe[LiveSoftDeletePolicy] = UNSET
    retentionPolicy: Maybe[LiveRetentionPolicy] = UNSET
    defaultEventBasedHold: Maybe[bool] = UNSET
    billing: Maybe[LiveBilling] = UNSET
    encryption: Maybe[LiveEncryption] = UNSET
    cors: Maybe[list[LiveCors]] = UNSET
    website: Maybe[LiveWebsite] = UNSET
    logging: Maybe[LiveLogging] = UNSET
    ipFilter: Maybe[LiveIpFilter] = UNSET
    labels: Maybe[dict[str, str]] = UNSET


class _EffectiveTime(Struct, frozen=True):
    effectiveTime: str | None = None


class StorageBucketOutputs(Struct, frozen=True):
    """Output-only fields of a bucket: neither compared nor part of a digest."""

    metageneration: str | None = None
    selfLink: str | None = None
    softDeletePolicy: _EffectiveTime | None = None


# Not strict: the API sends 64-bit integers as text.
_bucket: Final = msgspec.json.Decoder(StorageBucket, strict=False)
_outputs: Final = msgspec.json.Decoder(StorageBucketOutputs)


@dataclass(frozen=True, slots=True)
class DecodedBucket:
    """A decoded response: the bucket and its output-only fields."""

    bucket: StorageBucket
    outputs: StorageBucketOutputs


def read_bucket(body: bytes, what: str) -> DecodedBucket:
    """The decoded bucket; RemoteUnavailable for a response that is not one."""
    return DecodedBucket(decode_response(_bucket, body, what), decode_response(_outputs, body, what))
