"""The bucket resource: its fields, the defaults that Cloud Storage fills in, and what it refuses.

The real service ignores fields that it does not know. Here they are refused: a misspelt field is a mistake.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import invalid_bucket
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.schema import (
    OUTPUT,
    JsonBody,
    ListSchema,
    MapSchema,
    ObjectSchema,
    ScalarSchema,
    check_labels,
    enum_of,
    member,
)

_TEXT, _BOOL, _INT32, _INT64, _TIME = (
    ScalarSchema.TEXT,
    ScalarSchema.BOOL,
    ScalarSchema.INT32,
    ScalarSchema.INT64,
    ScalarSchema.TIME,
)

STORAGE_CLASSES: Final = (
    *("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"),
    *("MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY"),
)

_LIFECYCLE_RULE: Final = ObjectSchema(
    {
        "action": ObjectSchema(
            {
                "storageClass": enum_of(*STORAGE_CLASSES),
                "type": enum_of("Delete", "SetStorageClass", "AbortIncompleteMultipartUpload"),
            }
        ),
        "condition": ObjectSchema(
            {
                "age": _INT32,
                "createdBefore": _TEXT,
                "customTimeBefore": _TEXT,
                "daysSinceCustomTime": _INT32,
                "daysSinceNoncurrentTime": _INT32,
                "isLive": _BOOL,
                "matchesPattern": _TEXT,
                "matchesPrefix": ListSchema(_TEXT),
                "matchesStorageClass": ListSchema(_TEXT),
                "matchesSuffix": ListSchema(_TEXT),
                "noncurrentTimeBefore": _TEXT,
                "numNewerVersions": _INT32,
                "sizeAboveBytes": _INT64,
                "sizeBelowBytes": _INT64,
            }
        ),
    }
)

_IP_FILTER: Final = ObjectSchema(
    {
        "allowAllServiceAgentAccess": _BOOL,
        "allowCrossOrgVpcs": _BOOL,
        "mode": enum_of("Enabled", "Disabled"),
        "publicNetworkSource": ObjectSchema({"allowedIpCidrRanges": ListSchema(_TEXT)}),
        "vpcNetworkSources": ListSchema(ObjectSchema({"allowedIpCidrRanges": ListSchema(_TEXT), "network": _TEXT})),
    }
)

_ENFORCEMENT: Final = ObjectSchema(
    {"effectiveTime": OUTPUT, "restrictionMode": enum_of("NotRestricted", "FullyRestricted")}
)

_OUTPUTS: Final = (
    *("etag", "generation", "hardDeleteTime", "id", "locationType", "metageneration", "owner", "projectNumber"),
    *("satisfiesPZI", "satisfiesPZS", "selfLink", "softDeleteTime", "timeCreated", "updated"),
)

BUCKET: Final = ObjectSchema(
    {
        **dict.fromkeys(_OUTPUTS, OUTPUT),
        # In the schema, so that they are refused with a reason: the local cloud keeps no access control lists.
        "acl": ListSchema(MapSchema(_TEXT)),
        "autoclass": ObjectSchema(
            {
                "enabled": _BOOL,
                "terminalStorageClass": enum_of("NEARLINE", "ARCHIVE"),
                "terminalStorageClassUpdateTime": OUTPUT,
                "toggleTime": OUTPUT,
            }
        ),
        "billing": ObjectSchema({"requesterPays": _BOOL}),
        "cors": ListSchema(
            ObjectSchema(
                {
                    "maxAgeSeconds": _INT32,
                    "method": ListSchema(_TEXT),
                    "origin": ListSchema(_TEXT),
                    "responseHeader": ListSchema(_TEXT),
                }
            )
        ),
        "customPlacementConfig": ObjectSchema({"dataLocations": ListSchema(_TEXT)}),
        "defaultEventBasedHold": _BOOL,
        "defaultObjectAcl": ListSchema(MapSchema(_TEXT)),
        "encryption": ObjectSchema(
            {
                "customerManagedEncryptionEnforcementConfig": _ENFORCEMENT,
                "customerSuppliedEncryptionEnforcementConfig": _ENFORCEMENT,
                "defaultKmsKeyName": _TEXT,
                "googleManagedEncryptionEnforcementConfig": _ENFORCEMENT,
            }
        ),
        "hierarchicalNamespace": ObjectSchema({"enabled": _BOOL}),
        "iamConfiguration": ObjectSchema(
            {
                "bucketPolicyOnly": ObjectSchema({"enabled": _BOOL, "lockedTime": OUTPUT}),
                "publicAccessPrevention": enum_of("inherited", "enforced", "unspecified"),
                "uniformBucketLevelAccess": ObjectSchema({"enabled": _BOOL, "lockedTime": OUTPUT}),
            }
        ),
        "ipFilter": _IP_FILTER,
        "labels": MapSchema(_TEXT),
        "lifecycle": ObjectSchema({"rule": ListSchema(_LIFECYCLE_RULE)}),
        "location": _TEXT,
        "logging": ObjectSchema({"logBucket": _TEXT, "logObjectPrefix": _TEXT}),
        "name": _TEXT,
        "objectRetention": OUTPUT,
        "retentionPolicy": ObjectSchema({"effectiveTime": OUTPUT, "isLocked": _BOOL, "retentionPeriod": _INT64}),
        "rpo": enum_of("DEFAULT", "ASYNC_TURBO"),
        "softDeletePolicy": ObjectSchema({"effectiveTime": OUTPUT, "retentionDurationSeconds": _INT64}),
        "storageClass": enum_of(*STORAGE_CLASSES),
        "versioning": ObjectSchema({"enabled": _BOOL}),
        "website": ObjectSchema({"mainPageSuffix": _TEXT, "notFoundPage": _TEXT}),
    },
    kind="storage#bucket",
)


_MULTI_REGIONS: Final = frozenset({"US", "EU", "ASIA"})
_DUAL_REGIONS: Final = frozenset({"NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1"})
_UNIFORM_LOCK: Final = timedelta(days=90)
_EMPTY_MEANS_ABSENT: Final = ("labels", "cors", "website", "logging", "encryption", "billing", "retentionPolicy")


def location_type(bucket: JsonBody) -> str:
    """The location type of a bucket: region, dual-region or multi-region."""
    location = str(bucket["location"]).upper()
    if "customPlacementConfig" in bucket or location in _DUAL_REGIONS:
        return "dual-region"
    return "multi-region" if location in _MULTI_REGIONS else "region"


def with_defaults(wanted: JsonBody, live: JsonBody, now: datetime) -> JsonBody:
    """`wanted` with every default. `live` is the bucket as it was, and empty for a new one."""
    bucket: JsonBody = {"location": "US", "storageClass": "STANDARD", **wanted}
    bucket["location"] = str(bucket["location"]).upper()
    bucket["iamConfiguration"] = _access(bucket.get("iamConfiguration", {}), live, now)
    bucket["softDeletePolicy"] = _soft_delete(bucket.get("softDeletePolicy", {}), live, now)
    if location_type(bucket) == "region":
        bucket["satisfiesPZI"] = True
    else:
        bucket = {"rpo": "DEFAULT", **bucket}
    bucket["locationType"] = location_type(bucket)
    if "autoclass" in bucket:
        bucket["autoclass"] = _autoclass(bucket["autoclass"], live, now)
    if bucket.get("retentionPolicy"):
        bucket["retentionPolicy"] = _retention(bucket["retentionPolicy"], live, now)
    return _without_empty(bucket)


def _access(wanted: JsonBody, live: JsonBody, now: datetime) -> JsonBody:
    # The older name of the same field counts when the newer one is absent.
    older = bool(member(wanted, "bucketPolicyOnly.enabled"))
    is_unspecified = "uniformBucketLevelAccess" not in wanted
    uniform: JsonBody = {
        "enabled": older if is_unspecified else bool(member(wanted, "uniformBucketLevelAccess.enabled"))
    }
    if uniform["enabled"]:
        path = "iamConfiguration.uniformBucketLevelAccess.lockedTime"
        uniform["lockedTime"] = member(live, path) or timestamp(now + _UNIFORM_LOCK)
    prevention = wanted.get("publicAccessPrevention", "inherited")
    return {
        "bucketPolicyOnly": dict(uniform),
        "publicAccessPrevention": "inherited" if prevention == "unspecified" else prevention,
        "uniformBucketLevelAccess": uniform,
    }


def _soft_delete(wanted: JsonBody, live: JsonBody, now: datetime) -> JsonBody:
    seconds = wanted.get("retentionDurationSeconds", "604800")
    if seconds == "0":
        return {"retentionDurationSeconds": "0"}
    is_new = member(live, "softDeletePolicy.retentionDurationSeconds") != seconds
    since = None if is_new else member(live, "softDeletePolicy.effectiveTime")
    return {"effectiveTime": since or timestamp(now), "retentionDurationSeconds": seconds}


def _autoclass(wanted: JsonBody, live: JsonBody, now: datetime) -> JsonBody:
    is_on = bool(wanted.get("enabled"))
    was_on = member(live, "autoclass.enabled")
    toggled = member(live, "autoclass.toggleTime") if was_on == is_on else None
    result: JsonBody = {"enabled": is_on, "toggleTime": toggled or timestamp(now)}
    if is_on:
        terminal = wanted.get("terminalStorageClass", "NEARLINE")
        same_terminal = was_on and member(live, "autoclass.terminalStorageClass") == terminal
        chosen = member(live, "autoclass.terminalStorageClassUpdateTime") if same_terminal else None
        result |= {"terminalStorageClass": terminal, "terminalStorageClassUpdateTime": chosen or timestamp(now)}
    return result


def _retention(wanted: JsonBody, live: JsonBody, now: datetime) -> JsonBody:
    since = member(live, "retentionPolicy.effectiveTime") or timestamp(now)
    result: JsonBody = {"effectiveTime": since, "retentionPeriod": wanted.get("retentionPeriod", "0")}
    return {**result, "isLocked": True} if wanted.get("isLocked") else result


def _without_empty(bucket: JsonBody) -> JsonBody:
    if not member(bucket, "lifecycle.rule"):
        bucket.pop("lifecycle", None)
    return {name: value for name, value in bucket.items() if name not in _EMPTY_MEANS_ABSENT or value}


_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*[a-z0-9]")
_LOCATION: Final = re.compile(r"[A-Z]+[0-9]*|[A-Z]+-[A-Z]+[0-9]+")
_DAY: Final = 86400
_LONGEST_RETENTION: Final = 3_155_760_000

_IMMUTABLE: Final = {
    "name": "The name of a bucket",
    "location": "The location of a bucket",
    "customPlacementConfig": "The placement of a bucket",
    "hierarchicalNamespace": "The hierarchical namespace of a bucket",
}


def check_name(name: str) -> None:
    """Refuses an invalid name of a bucket."""
    parts = name.split(".")
    fits = 3 <= len(name) <= (222 if len(parts) > 1 else 63) and all(1 <= len(part) <= 63 for part in parts)
    if not fits or not _NAME.fullmatch(name) or _is_address(name):
        raise invalid_bucket(f"Invalid bucket name: '{name}'")
    if name.startswith("goog") or "google" in name:
        raise invalid_bucket(f"Invalid bucket name: '{name}'. Google keeps its own name for itself")


def _is_address(name: str) -> bool:
    """Whether the name looks like an address of IPv4, whatever its numbers."""
    parts = name.split(".")
    return len(parts) == 4 and all(part.isdecimal() for part in parts)


def check_bucket(bucket: JsonBody) -> None:
    """Refuses an invalid bucket; it is complete with its defaults."""
    for field in ("acl", "defaultObjectAcl"):
        if field in bucket:
            raise invalid_bucket(f"The local cloud keeps no access control lists: leave out {field}")
    if not _LOCATION.fullmatch(bucket["location"]):
        raise invalid_bucket(f"The specified location constraint is not valid: '{bucket['location']}'")
    check_placement(bucket)
    check_periods(bucket)
    check_lifecycle(member(bucket, "lifecycle.rule"))
    check_labels(bucket.get("labels", {}), invalid_bucket)
    if bucket.get("rpo") == "ASYNC_TURBO" and bucket["locationType"] != "dual-region":
        raise invalid_bucket("Turbo replication needs a dual-region bucket")
    if member(bucket, "logging.logObjectPrefix") and not member(bucket, "logging.logBucket"):
        raise invalid_bucket("logging needs a logBucket")


def check_placement(bucket: JsonBody) -> None:
    """Refuses a custom dual region that is not two regions."""
    if "customPlacementConfig" in bucket:
        places = bucket["customPlacementConfig"].get("dataLocations", [])
        if len(set(places)) != 2:
            raise invalid_bucket("customPlacementConfig.dataLocations must name exactly two regions")


def check_periods(bucket: JsonBody) -> None:
    """Refuses a retention period out of range."""
    soft = int(bucket["softDeletePolicy"]["retentionDurationSeconds"])
    if soft and not 7 * _DAY <= soft <= 90 * _DAY:
        raise invalid_bucket(f"softDeletePolicy.retentionDurationSeconds ({soft}) must be 0, or from 604800 to 7776000")
    if "retentionPolicy" in bucket:
        period = int(bucket["retentionPolicy"]["retentionPeriod"])
        if not 1 <= period <= _LONGEST_RETENTION:
            raise invalid_bucket(f"retentionPolicy.retentionPeriod ({period}) must be from 1 to {_LONGEST_RETENTION}")


def check_lifecycle(rules: object) -> None:
    """Refuses a lifecycle rule without an action or a condition."""
    for rule in rules if isinstance(rules, list) else []:
        action = rule.get("action", {})
        if "type" not in action:
            raise invalid_bucket("A lifecycle rule must have an action with a type")
        if (action["type"] == "SetStorageClass") != ("storageClass" in action):
            raise invalid_bucket("A lifecycle action has a storageClass if and only if its type is SetStorageClass")
        if not rule.get("condition"):
            raise invalid_bucket("A lifecycle rule must have at least one condition")


def check_change(before: JsonBody, after: JsonBody, now: datetime) -> None:
    """Refuses a change between two complete buckets that Cloud Storage does not support."""
    for path, what in _IMMUTABLE.items():
        was, to = member(before, path), member(after, path)
        if was != to:
            raise invalid_bucket(f"{what} cannot change from {was} to {to}")
    check_lock(before, after)
    check_uniform_access(before, after, now)


def check_lock(before: JsonBody, after: JsonBody) -> None:
    """Refuses to weaken a locked retention policy, and to lock one except by its own method."""
    was_locked, is_locked = bool(member(before, "retentionPolicy.isLocked")), member(after, "retentionPolicy.isLocked")
    if not was_locked and is_locked:
        raise invalid_bucket("A retention policy is locked with lockRetentionPolicy, not with a field")
    if not was_locked:
        return
    was, now = _period(before), _period(after)
    if not is_locked or now < was:
        raise api_errors.retention_locked(str(before["name"]))


def check_uniform_access(before: JsonBody, after: JsonBody, now: datetime) -> None:
    """Refuses to turn uniform access off once it has been on for 90 days."""
    path = "iamConfiguration.uniformBucketLevelAccess"
    until = member(before, f"{path}.lockedTime")
    if isinstance(until, str) and not member(after, f"{path}.enabled") and now > datetime.fromisoformat(until):
        raise invalid_bucket("Uniform bucket-level access has been on for 90 days: it can no longer be turned off")


def check_autoclass(bucket: JsonBody) -> None:
    """Refuses a storage class with Autoclass, where the service chooses it."""
    if member(bucket, "autoclass.enabled") and bucket["storageClass"] != "STANDARD":
        raise invalid_bucket("The storage class of a bucket with Autoclass must be STANDARD")


def check_preconditions(metageneration: str, query: Mapping[str, str]) -> None:
    """Refuses a request with a metageneration precondition that does not hold."""
    wanted, unwanted = query.get("ifMetagenerationMatch"), query.get("ifMetagenerationNotMatch")
    if wanted is not None and wanted != metageneration:
        raise api_errors.condition_not_met("ifMetagenerationMatch")
    if unwanted is not None and unwanted == metageneration:
        raise api_errors.condition_not_met("ifMetagenerationNotMatch")


def _period(bucket: JsonBody) -> int:
    found = member(bucket, "retentionPolicy.retentionPeriod")
    return int(found) if isinstance(found, str) else 0
