"""The live bucket in the terms of the spec."""

from typing import Any

import msgspec
from msgspec import UNSET

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.kinds.gcp.shared.config_connector import relative_link, without_empty
from setpoint.kinds.gcp.storage_bucket.declared import live_rules, without_default_prefix
from setpoint.kinds.gcp.storage_bucket.live import LiveIpFilter, StorageBucket

_SERVICE_LABEL_PREFIX = "goog-dataplex"


def bucket_view(bucket: StorageBucket) -> JsonObject:
    """The live bucket in the terms of the spec, for the comparison with the declared tree."""
    spec: dict[str, Any] = {}
    for name in ("versioning", "softDeletePolicy", "retentionPolicy", "defaultEventBasedHold"):
        if getattr(bucket, name) not in (None, UNSET):
            spec[name] = msgspec.to_builtins(getattr(bucket, name))
    spec |= {**_location(bucket), **_classes(bucket), **_access(bucket), **_use(bucket)}
    if bucket.encryption and bucket.encryption.defaultKmsKeyName:
        spec["encryption"] = {"kmsKeyRef": {"external": relative_link(bucket.encryption.defaultKmsKeyName)}}
    if bucket.lifecycle:
        spec["lifecycleRule"] = live_rules(bucket.lifecycle)
    return {"spec": spec, "metadata": {"labels": _labels(bucket)}}


def _labels(bucket: StorageBucket) -> dict[str, Json]:
    """The labels, without those that Google services add."""
    return {key: value for key, value in (bucket.labels or {}).items() if not key.startswith(_SERVICE_LABEL_PREFIX)}


def _location(bucket: StorageBucket) -> dict[str, Json]:
    place: dict[str, Json] = {}
    if bucket.location:
        place["location"] = bucket.location.upper()
    if bucket.customPlacementConfig and bucket.customPlacementConfig.dataLocations:
        regions = sorted(region.upper() for region in bucket.customPlacementConfig.dataLocations)
        place["customPlacementConfig"] = {"dataLocations": regions}
    return place


def _classes(bucket: StorageBucket) -> dict[str, Json]:
    classes: dict[str, Json] = {"storageClass": bucket.storageClass} if bucket.storageClass else {}
    if not bucket.autoclass:
        return classes
    if not bucket.autoclass.enabled:
        return {**classes, "autoclass": {"enabled": False}}
    return {**classes, "autoclass": msgspec.to_builtins(bucket.autoclass)}


def _access(bucket: StorageBucket) -> dict[str, Json]:
    access: dict[str, Json] = {}
    iam = bucket.iamConfiguration
    if iam and iam.uniformBucketLevelAccess:
        access["uniformBucketLevelAccess"] = iam.uniformBucketLevelAccess.enabled
    if iam and iam.publicAccessPrevention:
        access["publicAccessPrevention"] = iam.publicAccessPrevention
    if bucket.ipFilter:
        access["ipFilter"] = _ip_filter(bucket.ipFilter)
    return access


def _ip_filter(ip_filter: LiveIpFilter) -> Json:
    found: dict[str, Json] = msgspec.to_builtins(ip_filter)
    public = ip_filter.publicNetworkSource
    found["publicNetworkSource"] = {"allowedIpCidrRanges": public.allowedIpCidrRanges or []} if public else None
    found["vpcNetworkSources"] = [
        {"networkRef": {"external": relative_link(one.network)}, "allowedIpCidrRanges": one.allowedIpCidrRanges or []}
        for one in ip_filter.vpcNetworkSources or ()
    ]
    return without_empty(found)


def _use(bucket: StorageBucket) -> dict[str, Json]:
    use: dict[str, Json] = {}
    if bucket.billing and bucket.billing.requesterPays is not UNSET:
        use["requesterPays"] = bucket.billing.requesterPays
    if bucket.cors:
        use["cors"] = [without_empty(msgspec.to_builtins(one)) for one in bucket.cors]
    if bucket.website:
        use["website"] = without_empty(msgspec.to_builtins(bucket.website))
    if bucket.logging:
        use["logging"] = without_default_prefix(without_empty(msgspec.to_builtins(bucket.logging)), bucket.name)
    return use
