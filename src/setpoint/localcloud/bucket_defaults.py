"""What Cloud Storage fills in where a request is silent, and the times it notes down.

Completing twice changes nothing: what was not touched keeps its times.
"""

from datetime import datetime, timedelta
from typing import Final

from setpoint.localcloud.clock import stamp
from setpoint.localcloud.trees import Tree, member

_MULTI_REGIONS: Final = frozenset({"US", "EU", "ASIA"})
_DUAL_REGIONS: Final = frozenset({"NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1"})
_UNIFORM_LOCK: Final = timedelta(days=90)
_EMPTY_MEANS_ABSENT: Final = ("labels", "cors", "website", "logging", "encryption", "billing", "retentionPolicy")


def location_type(bucket: Tree) -> str:
    """How many places a bucket is kept in."""
    location = str(bucket["location"]).upper()
    if "customPlacementConfig" in bucket or location in _DUAL_REGIONS:
        return "dual-region"
    return "multi-region" if location in _MULTI_REGIONS else "region"


def completed(wanted: Tree, live: Tree, now: datetime) -> Tree:
    """`wanted` with every default. `live` is the bucket as it was, and empty for a new one."""
    bucket: Tree = {"location": "US", "storageClass": "STANDARD", **wanted}
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


def _access(wanted: Tree, live: Tree, now: datetime) -> Tree:
    # The older name of the same switch counts when the newer one is not there.
    older = bool(member(wanted, "bucketPolicyOnly.enabled"))
    is_silent = "uniformBucketLevelAccess" not in wanted
    uniform: Tree = {"enabled": older if is_silent else bool(member(wanted, "uniformBucketLevelAccess.enabled"))}
    if uniform["enabled"]:
        path = "iamConfiguration.uniformBucketLevelAccess.lockedTime"
        uniform["lockedTime"] = member(live, path) or stamp(now + _UNIFORM_LOCK)
    prevention = wanted.get("publicAccessPrevention", "inherited")
    return {
        "bucketPolicyOnly": dict(uniform),
        "publicAccessPrevention": "inherited" if prevention == "unspecified" else prevention,
        "uniformBucketLevelAccess": uniform,
    }


def _soft_delete(wanted: Tree, live: Tree, now: datetime) -> Tree:
    seconds = wanted.get("retentionDurationSeconds", "604800")
    if seconds == "0":
        return {"retentionDurationSeconds": "0"}
    is_new = member(live, "softDeletePolicy.retentionDurationSeconds") != seconds
    since = None if is_new else member(live, "softDeletePolicy.effectiveTime")
    return {"effectiveTime": since or stamp(now), "retentionDurationSeconds": seconds}


def _autoclass(wanted: Tree, live: Tree, now: datetime) -> Tree:
    is_on = bool(wanted.get("enabled"))
    was_on = member(live, "autoclass.enabled")
    toggled = member(live, "autoclass.toggleTime") if was_on == is_on else None
    result: Tree = {"enabled": is_on, "toggleTime": toggled or stamp(now)}
    if is_on:
        terminal = wanted.get("terminalStorageClass", "NEARLINE")
        same_terminal = was_on and member(live, "autoclass.terminalStorageClass") == terminal
        chosen = member(live, "autoclass.terminalStorageClassUpdateTime") if same_terminal else None
        result |= {"terminalStorageClass": terminal, "terminalStorageClassUpdateTime": chosen or stamp(now)}
    return result


def _retention(wanted: Tree, live: Tree, now: datetime) -> Tree:
    since = member(live, "retentionPolicy.effectiveTime") or stamp(now)
    result: Tree = {"effectiveTime": since, "retentionPeriod": wanted.get("retentionPeriod", "0")}
    return {**result, "isLocked": True} if wanted.get("isLocked") else result


def _without_empty(bucket: Tree) -> Tree:
    if not member(bucket, "lifecycle.rule"):
        bucket.pop("lifecycle", None)
    return {name: value for name, value in bucket.items() if name not in _EMPTY_MEANS_ABSENT or value}
