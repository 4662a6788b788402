"""What people declare who run many buckets and databases: of one make, and no two alike."""

from random import Random
from typing import Any, Final

from benchmarks import buckets
from setpoint.core.values.json_types import JsonObject

_TEAMS: Final = ("orders", "billing", "search", "warehouse", "accounts", "shipping", "analytics", "identity")
_ENVIRONMENTS: Final = ("production", "staging", "development")
_PLACES: Final = ("exports", "imports", "backups", "logs", "reports", "uploads", "media", "archive")
_REGIONS: Final = ("europe-west1", "europe-west4", "us-central1", "us-east4", "asia-northeast1")
_FLAGS: Final = {
    "max_connections": ("200", "500", "1000"),
    "log_min_duration_statement": ("100", "250", "1000"),
    "log_checkpoints": ("on", "off"),
    "log_lock_waits": ("on", "off"),
    "autovacuum_naptime": ("15", "30", "120"),
    "work_mem": ("8192", "16384", "65536"),
}


def bucket(number: int) -> JsonObject:
    """A bucket with some rules about what becomes of old objects."""
    draw = Random(number)
    spec: dict[str, Any] = {
        "location": draw.choice(("EU", "US", "ASIA")),
        "storageClass": draw.choice(("STANDARD", "NEARLINE")),
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": draw.choice(("enforced", "inherited")),
        "versioning": {"enabled": draw.random() < 0.7},
        "softDeletePolicy": {"retentionDurationSeconds": 86400 * draw.randint(7, 30)},
        "lifecycleRule": [_rule(draw) for _ in range(draw.randint(1, 6))],
    }
    if draw.random() < 0.3:
        spec["logging"] = {"logBucket": f"{draw.choice(_TEAMS)}-access-logs", "logObjectPrefix": draw.choice(_PLACES)}
    return _manifest("storage.cnrm.cloud.google.com/v1beta1", "StorageBucket", number, spec)


def _rule(draw: Random) -> dict[str, Any]:
    condition = {"age": draw.randint(1, 400), "matchesPrefix": [f"{draw.choice(_PLACES)}/{draw.randrange(10**6)}/"]}
    if draw.random() < 0.5:
        return {"action": {"type": "Delete"}, "condition": condition | {"numNewerVersions": draw.randint(1, 9)}}
    colder = draw.choice(("NEARLINE", "COLDLINE", "ARCHIVE"))
    return {"action": {"type": "SetStorageClass", "storageClass": colder}, "condition": condition}


def instance(number: int) -> JsonObject:
    """A database as people set one up who mean it."""
    draw = Random(number)
    cores = draw.choice((1, 2, 4, 8))
    settings: dict[str, Any] = {
        "tier": f"db-custom-{cores}-{cores * 3840}",
        "availabilityType": draw.choice(("REGIONAL", "ZONAL")),
        "diskSize": draw.randrange(10, 2000),
        "deletionProtectionEnabled": draw.random() < 0.8,
        "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
        "ipConfiguration": {"authorizedNetworks": [_network(draw, one) for one in range(draw.randrange(4))]},
        "databaseFlags": [
            {"name": name, "value": draw.choice(_FLAGS[name])}
            for name in draw.sample(sorted(_FLAGS), draw.randint(1, len(_FLAGS)))
        ],
        "maintenanceWindow": {"day": draw.randint(1, 7), "hour": draw.randrange(24), "updateTrack": "stable"},
        "insightsConfig": {"queryInsightsEnabled": draw.random() < 0.5},
    }
    version = draw.choice(("POSTGRES_14", "POSTGRES_15", "POSTGRES_16"))
    spec = {"region": draw.choice(_REGIONS), "databaseVersion": version, "settings": settings}
    return _manifest("sql.cnrm.cloud.google.com/v1beta1", "SQLInstance", number, spec)


def _network(draw: Random, number: int) -> dict[str, Any]:
    address = ".".join(str(draw.randrange(1, 255)) for _ in range(3))
    return {"name": f"{draw.choice(_TEAMS)}-office-{number}", "value": f"{address}.0/24"}


def _manifest(api_version: str, kind: str, number: int, spec: dict[str, Any]) -> JsonObject:
    draw = Random(-number)
    labels = {
        "team": draw.choice(_TEAMS),
        "environment": draw.choice(_ENVIRONMENTS),
        "cost-centre": str(draw.randrange(1000, 9999)),
    }
    metadata: dict[str, Any] = {
        "name": buckets.name_of(number),
        "namespace": buckets.NAMESPACE,
        "labels": labels,
        "annotations": {"cnrm.cloud.google.com/project-id": f"{draw.choice(_TEAMS)}-production"},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
