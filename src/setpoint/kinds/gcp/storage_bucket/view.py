"""The live bucket in the terms of the spec."""

from typing import Any

import msgspec
from msgspec import UNSET

from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.kinds.config_connector import relative
from setpoint.kinds.gcp.storage_bucket import live
from setpoint.kinds.gcp.storage_bucket.declared import plain, without_own_prefix
from setpoint.kinds.gcp.storage_bucket.lifecycle import viewed_rules
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketSpec

_SERVICES_OWN = "goog-dataplex"


def bucket_view(bucket: live.Bucket) -> Tree:
    """The bucket as a tree that can be compared with the author's."""
    spec: dict[str, Any] = {}
    for name in ("versioning", "softDeletePolicy", "retentionPolicy", "defaultEventBasedHold"):
        if getattr(bucket, name) not in (None, UNSET):
            spec[name] = msgspec.to_builtins(getattr(bucket, name))
    spec |= {**_place(bucket), **_classes(bucket), **_access(bucket), **_use(bucket)}
    if bucket.encryption and bucket.encryption.defaultKmsKeyName:
        spec["encryption"] = {"kmsKeyRef": {"external": relative(bucket.encryption.defaultKmsKeyName)}}
    if bucket.lifecycle:
        spec["lifecycleRule"] = viewed_rules(bucket.lifecycle)
    return {"spec": spec, "metadata": {"labels": _labels(bucket)}}


def in_spec_terms(bucket: live.Bucket) -> StorageBucketSpec:
    """The bucket as a spec that would ask for exactly this."""
    return msgspec.convert(bucket_view(bucket)["spec"], StorageBucketSpec)


def _labels(bucket: live.Bucket) -> dict[str, Json]:
    """The labels that people put there."""
    return {key: value for key, value in (bucket.labels or {}).items() if not key.startswith(_SERVICES_OWN)}


def _place(bucket: live.Bucket) -> dict[str, Json]:
    place: dict[str, Json] = {}
    if bucket.location:
        place["location"] = bucket.location.upper()
    if bucket.customPlacementConfig and bucket.customPlacementConfig.dataLocations:
        regions = sorted(region.upper() for region in bucket.customPlacementConfig.dataLocations)
        place["customPlacementConfig"] = {"dataLocations": regions}
    return place


def _classes(bucket: live.Bucket) -> dict[str, Json]:
    classes: dict[str, Json] = {"storageClass": bucket.storageClass} if bucket.storageClass else {}
    if not bucket.autoclass:
        return classes
    if not bucket.autoclass.enabled:
        return {**classes, "autoclass": {"enabled": False}}
    return {**classes, "autoclass": msgspec.to_builtins(bucket.autoclass)}


def _access(bucket: live.Bucket) -> dict[str, Json]:
    access: dict[str, Json] = {}
    iam = bucket.iamConfiguration
    if iam and iam.uniformBucketLevelAccess:
        access["uniformBucketLevelAccess"] = iam.uniformBucketLevelAccess.enabled
    if iam and iam.publicAccessPrevention:
        access["publicAccessPrevention"] = iam.publicAccessPrevention
    if bucket.ipFilter:
        access["ipFilter"] = _ip_filter(bucket.ipFilter)
    return access


def _ip_filter(ip_filter: live.IpFilter) -> Json:
    found: dict[str, Json] = msgspec.to_builtins(ip_filter)
    public = ip_filter.publicNetworkSource
    found["publicNetworkSource"] = {"allowedIpCidrRanges": public.allowedIpCidrRanges or []} if public else None
    found["vpcNetworkSources"] = [
        {"networkRef": {"external": relative(one.network)}, "allowedIpCidrRanges": one.allowedIpCidrRanges or []}
        for one in ip_filter.vpcNetworkSources or ()
    ]
    return plain(found)


def _use(bucket: live.Bucket) -> dict[str, Json]:
    use: dict[str, Json] = {}
    if bucket.billing and bucket.billing.requesterPays is not UNSET:
        use["requesterPays"] = bucket.billing.requesterPays
    if bucket.cors:
        use["cors"] = [plain(msgspec.to_builtins(one)) for one in bucket.cors]
    if bucket.website:
        use["website"] = plain(msgspec.to_builtins(bucket.website))
    if bucket.logging:
        use["logging"] = without_own_prefix(plain(msgspec.to_builtins(bucket.logging)), bucket.name)
    return use
