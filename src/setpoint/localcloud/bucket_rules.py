"""What Cloud Storage will not do: buckets that cannot be, and changes that cannot be made."""

import ipaddress
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from setpoint.localcloud import refusals
from setpoint.localcloud.labels import check_labels
from setpoint.localcloud.refusals import bad_bucket
from setpoint.localcloud.trees import Tree, member

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*[a-z0-9]")
_LOCATION: Final = re.compile(r"[A-Z]+[0-9]*|[A-Z]+-[A-Z]+[0-9]+")
_DAY: Final = 86400
_LONGEST_RETENTION: Final = 3_155_760_000

_FIXED: Final = {
    "name": "The name of a bucket",
    "location": "The location of a bucket",
    "customPlacementConfig": "The placement of a bucket",
    "hierarchicalNamespace": "The hierarchical namespace of a bucket",
}


def check_name(name: str) -> None:
    """Refuses a name that a bucket cannot have."""
    parts = name.split(".")
    fits = 3 <= len(name) <= (222 if len(parts) > 1 else 63) and all(1 <= len(part) <= 63 for part in parts)
    if not fits or not _NAME.fullmatch(name) or _is_address(name):
        raise bad_bucket(f"Invalid bucket name: '{name}'")
    if name.startswith("goog") or "google" in name:
        raise bad_bucket(f"Invalid bucket name: '{name}'. Google keeps its own name for itself")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_bucket(bucket: Tree) -> None:
    """Refuses a bucket, complete with its defaults, that Cloud Storage would not keep."""
    for field in ("acl", "defaultObjectAcl"):
        if field in bucket:
            raise bad_bucket(f"The local cloud keeps no access control lists: leave out {field}")
    if not _LOCATION.fullmatch(bucket["location"]):
        raise bad_bucket(f"The specified location constraint is not valid: '{bucket['location']}'")
    check_placement(bucket)
    check_periods(bucket)
    check_lifecycle(member(bucket, "lifecycle.rule"))
    check_labels(bucket.get("labels", {}), bad_bucket)
    if bucket.get("rpo") == "ASYNC_TURBO" and bucket["locationType"] != "dual-region":
        raise bad_bucket("Turbo replication needs a dual-region bucket")
    if member(bucket, "logging.logObjectPrefix") and not member(bucket, "logging.logBucket"):
        raise bad_bucket("logging needs a logBucket")


def check_placement(bucket: Tree) -> None:
    """Refuses a custom dual region that is not two regions."""
    if "customPlacementConfig" in bucket:
        places = bucket["customPlacementConfig"].get("dataLocations", [])
        if len(set(places)) != 2:
            raise bad_bucket("customPlacementConfig.dataLocations must name exactly two regions")


def check_periods(bucket: Tree) -> None:
    """Refuses retention for a time that is not offered."""
    soft = int(bucket["softDeletePolicy"]["retentionDurationSeconds"])
    if soft and not 7 * _DAY <= soft <= 90 * _DAY:
        raise bad_bucket(f"softDeletePolicy.retentionDurationSeconds ({soft}) must be 0, or from 604800 to 7776000")
    if "retentionPolicy" in bucket:
        period = int(bucket["retentionPolicy"]["retentionPeriod"])
        if not 1 <= period <= _LONGEST_RETENTION:
            raise bad_bucket(f"retentionPolicy.retentionPeriod ({period}) must be from 1 to {_LONGEST_RETENTION}")


def check_lifecycle(rules: object) -> None:
    """Refuses a rule that says nothing, or never when."""
    for rule in rules if isinstance(rules, list) else []:
        action = rule.get("action", {})
        if "type" not in action:
            raise bad_bucket("A lifecycle rule must have an action with a type")
        if (action["type"] == "SetStorageClass") != ("storageClass" in action):
            raise bad_bucket("A lifecycle action has a storageClass if and only if its type is SetStorageClass")
        if not rule.get("condition"):
            raise bad_bucket("A lifecycle rule must have at least one condition")


def check_change(before: Tree, after: Tree, now: datetime) -> None:
    """Refuses a change, between two complete buckets, that Cloud Storage cannot make."""
    for path, what in _FIXED.items():
        was, to = member(before, path), member(after, path)
        if was != to:
            raise bad_bucket(f"{what} cannot change from {was} to {to}")
    check_lock(before, after)
    check_uniform_access(before, after, now)


def check_lock(before: Tree, after: Tree) -> None:
    """Refuses to weaken a locked retention policy, and to lock one by any other way than its own method."""
    was_locked, is_locked = bool(member(before, "retentionPolicy.isLocked")), member(after, "retentionPolicy.isLocked")
    if not was_locked and is_locked:
        raise bad_bucket("A retention policy is locked with lockRetentionPolicy, not with a field")
    if not was_locked:
        return
    was, now = _period(before), _period(after)
    if not is_locked or now < was:
        raise refusals.retention_locked(str(before["name"]))


def check_uniform_access(before: Tree, after: Tree, now: datetime) -> None:
    """Refuses to turn uniform access off once it has been on for 90 days."""
    path = "iamConfiguration.uniformBucketLevelAccess"
    until = member(before, f"{path}.lockedTime")
    if isinstance(until, str) and not member(after, f"{path}.enabled") and now > datetime.fromisoformat(until):
        raise bad_bucket("Uniform bucket-level access has been on for 90 days: it can no longer be turned off")


def check_autoclass(bucket: Tree) -> None:
    """Refuses a storage class that the service itself is to choose."""
    if member(bucket, "autoclass.enabled") and bucket["storageClass"] != "STANDARD":
        raise bad_bucket("The storage class of a bucket with Autoclass must be STANDARD")


def check_preconditions(metageneration: str, query: Mapping[str, str]) -> None:
    """Refuses a request that was made for another state of the bucket."""
    wanted, unwanted = query.get("ifMetagenerationMatch"), query.get("ifMetagenerationNotMatch")
    if wanted is not None and wanted != metageneration:
        raise refusals.condition_not_met("ifMetagenerationMatch")
    if unwanted is not None and unwanted == metageneration:
        raise refusals.condition_not_met("ifMetagenerationNotMatch")


def _period(bucket: Tree) -> int:
    found = member(bucket, "retentionPolicy.retentionPeriod")
    return int(found) if isinstance(found, str) else 0
