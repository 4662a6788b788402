"""A bucket as the JSON API reports it, cut to what the spec speaks of. What is not named here cannot move a digest."""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from setpoint.clients.google import decoded
from setpoint.kinds.spec_parts import Maybe


class _Part(Struct, frozen=True, kw_only=True):
    """A part of the bucket. Members that the API may grow are left out."""


class UniformBucketLevelAccess(_Part, frozen=True):
    enabled: bool = False


class IamConfiguration(_Part, frozen=True):
    uniformBucketLevelAccess: Maybe[UniformBucketLevelAccess] = UNSET
    publicAccessPrevention: Maybe[str] = UNSET


class Versioning(_Part, frozen=True):
    enabled: bool = False


class Action(_Part, frozen=True):
    type: str = ""
    storageClass: Maybe[str] = UNSET


class Condition(_Part, frozen=True):
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


class Rule(_Part, frozen=True):
    action: Action = Action()
    condition: Condition = Condition()


class Lifecycle(_Part, frozen=True):
    rule: Maybe[list[Rule]] = UNSET


class Autoclass(_Part, frozen=True):
    enabled: bool = False
    terminalStorageClass: Maybe[str] = UNSET


class SoftDeletePolicy(_Part, frozen=True):
    retentionDurationSeconds: Maybe[int] = UNSET


class RetentionPolicy(_Part, frozen=True):
    retentionPeriod: int = 0
    isLocked: Maybe[bool] = UNSET


class Cors(_Part, frozen=True):
    maxAgeSeconds: Maybe[int] = UNSET
    method: Maybe[list[str]] = UNSET
    origin: Maybe[list[str]] = UNSET
    responseHeader: Maybe[list[str]] = UNSET


class Logging(_Part, frozen=True):
    logBucket: str = ""
    logObjectPrefix: Maybe[str] = UNSET


class Website(_Part, frozen=True):
    mainPageSuffix: Maybe[str] = UNSET
    notFoundPage: Maybe[str] = UNSET


class Encryption(_Part, frozen=True):
    defaultKmsKeyName: Maybe[str] = UNSET


class Billing(_Part, frozen=True):
    requesterPays: Maybe[bool] = UNSET


class CustomPlacementConfig(_Part, frozen=True):
    dataLocations: Maybe[list[str]] = UNSET


class PublicNetworkSource(_Part, frozen=True):
    allowedIpCidrRanges: Maybe[list[str]] = UNSET


class VpcNetworkSource(_Part, frozen=True):
    network: str = ""
    allowedIpCidrRanges: Maybe[list[str]] = UNSET


class IpFilter(_Part, frozen=True):
    mode: str = "Disabled"
    publicNetworkSource: Maybe[PublicNetworkSource] = UNSET
    vpcNetworkSources: Maybe[list[VpcNetworkSource]] = UNSET
    allowCrossOrgVpcs: Maybe[bool] = UNSET
    allowAllServiceAgentAccess: Maybe[bool] = UNSET


class Bucket(_Part, frozen=True):
    """The live bucket."""

    name: str
    location: Maybe[str] = UNSET
    customPlacementConfig: Maybe[CustomPlacementConfig] = UNSET
    storageClass: Maybe[str] = UNSET
    autoclass: Maybe[Autoclass] = UNSET
    iamConfiguration: Maybe[IamConfiguration] = UNSET
    versioning: Maybe[Versioning] = UNSET
    lifecycle: Maybe[Lifecycle] = UNSET
    softDeletePolicy: Maybe[SoftDeletePolicy] = UNSET
    retentionPolicy: Maybe[RetentionPolicy] = UNSET
    defaultEventBasedHold: Maybe[bool] = UNSET
    billing: Maybe[Billing] = UNSET
    encryption: Maybe[Encryption] = UNSET
    cors: Maybe[list[Cors]] = UNSET
    website: Maybe[Website] = UNSET
    logging: Maybe[Logging] = UNSET
    ipFilter: Maybe[IpFilter] = UNSET
    labels: Maybe[dict[str, str]] = UNSET


class _EffectiveTime(Struct, frozen=True):
    effectiveTime: str | None = None


class Aside(Struct, frozen=True):
    """What comes with a bucket and is neither compared nor part of a digest."""

    metageneration: str | None = None
    selfLink: str | None = None
    softDeletePolicy: _EffectiveTime | None = None


# Not strict: 64-bit integers come as text.
_bucket: Final = msgspec.json.Decoder(Bucket, strict=False)
_aside: Final = msgspec.json.Decoder(Aside)


@dataclass(frozen=True, slots=True)
class Reading:
    """A bucket and what came with it."""

    bucket: Bucket
    aside: Aside


def read_bucket(body: bytes, what: str) -> Reading:
    """The bucket in an answer; RemoteUnavailable when there is none in it."""
    return Reading(decoded(_bucket, body, what), decoded(_aside, body, what))
