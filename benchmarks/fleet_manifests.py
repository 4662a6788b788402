"""Manifests of buckets and database instances, each with random values that depend on its number alone."""

from random import Random
from typing import Any, Final

from benchmarks import buckets
from setpoint.core.values.json_types import JsonObject

_TEAMS: Final = ("orders", "billing", "search", "warehouse", "accounts", "shipping", "analytics", "identity")
_ENVIRONMENTS: Final = ("production", "staging", "development")
_PREFIXES: Final = ("exports", "imports", "backups", "logs", "reports", "uploads", "media", "archive")
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
    """A bucket with lifecycle rules."""
    random = Random(number)
    spec: dict[str, Any] = {
        "location": random.choice(("EU", "US", "ASIA")),
        "storageClass": random.choice(("STANDARD", "NEARLINE")),
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": random.choice(("enforced", "inherited")),
        "versioning": {"enabled": random.random() < 0.7},
        "softDeletePolicy": {"retentionDurationSeconds": 86400 * random.randint(7, 30)},
        "lifecycleRule": [_rule(random) for _ in range(random.randint(1, 6))],
    }
    if random.random() < 0.3:
        spec["logging"] = {
            "logBucket": f"{random.choice(_TEAMS)}-access-logs",
            "logObjectPrefix": random.choice(_PREFIXES),
        }
    return _manifest("storage.cnrm.cloud.google.com/v1beta1", "StorageBucket", number, spec)


def _rule(random: Random) -> dict[str, Any]:
    condition = {
        "age": random.randint(1, 400),
        "matchesPrefix": [f"{random.choice(_PREFIXES)}/{random.randrange(10**6)}/"],
    }
    if random.random() < 0.5:
        return {"action": {"type": "Delete"}, "condition": condition | {"numNewerVersions": random.randint(1, 9)}}
    storage_class = random.choice(("NEARLINE", "COLDLINE", "ARCHIVE"))
    return {"action": {"type": "SetStorageClass", "storageClass": storage_class}, "condition": condition}


def instance(number: int) -> JsonObject:
    """A database instance with the usual settings of a production database."""
    random = Random(number)
    cores = random.choice((1, 2, 4, 8))
    settings: dict[str, Any] = {
        "tier": f"db-custom-{cores}-{cores * 3840}",
        "availabilityType": random.choice(("REGIONAL", "ZONAL")),
        "diskSize": random.randrange(10, 2000),
        "deletionProtectionEnabled": random.random() < 0.8,
        "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
        "ipConfiguration": {
            "authorizedNetworks": [_network(random, network) for network in range(random.randrange(4))]
        },
        "databaseFlags": [
            {"name": name, "value": random.choice(_FLAGS[name])}
            for name in random.sample(sorted(_FLAGS), random.randint(1, len(_FLAGS)))
        ],
        "maintenanceWindow": {"day": random.randint(1, 7), "hour": random.randrange(24), "updateTrack": "stable"},
        "insightsConfig": {"queryInsightsEnabled": random.random() < 0.5},
    }
    version = random.choice(("POSTGRES_14", "POSTGRES_15", "POSTGRES_16"))
    spec = {"region": random.choice(_REGIONS), "databaseVersion": version, "settings": settings}
    return _manifest("sql.cnrm.cloud.google.com/v1beta1", "SQLInstance", number, spec)


def _network(random: Random, number: int) -> dict[str, Any]:
    address = ".".join(str(random.randrange(1, 255)) for _ in range(3))
    return {"name": f"{random.choice(_TEAMS)}-office-{number}", "value": f"{address}.0/24"}


def _manifest(api_version: str, kind: str, number: int, spec: dict[str, Any]) -> JsonObject:
    random = Random(-number)
    labels = {
        "team": random.choice(_TEAMS),
        "environment": random.choice(_ENVIRONMENTS),
        "cost-centre": str(random.randrange(1000, 9999)),
    }
    metadata: dict[str, Any] = {
        "name": buckets.name_of(number),
        "namespace": buckets.NAMESPACE,
        "labels": labels,
        "annotations": {"cnrm.cloud.google.com/project-id": f"{random.choice(_TEAMS)}-production"},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
