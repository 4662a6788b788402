"""Cases of a three-way merge: a generated object that another writer edited, in three sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from setpoint.core.merge.threeway import EditableFields, EntryList, EntryMap, WholeValue
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path

TABLE: Final[EditableFields] = {
    Path.parse("deployment.replicas"): WholeValue(),
    Path.parse("environment"): EntryMap(),
    Path.parse("secretResources"): EntryList(),
    Path.parse("certificateCache.secrets"): EntryList("secretName"),
}


@dataclass(frozen=True, slots=True)
class MergeCase:
    """The three sides of a merge without conflicts, the fields that another writer edited, and the merged value."""

    size: str
    last: Json
    live: Json
    generated: Json
    edits: frozenset[str]
    merged: Json


def merge_cases() -> tuple[MergeCase, ...]:
    """One case for each size."""
    return tuple(_merge_case(size, entries) for size, entries in (("1 KB", 5), ("6 KB", 42), ("60 KB", 440)))


def _merge_case(size: str, entries: int) -> MergeCase:
    last, live, generated, merged = (orjson.loads(_config(entries)) for _ in range(4))
    for edited in (live, merged):
        edited["deployment"]["replicas"] = 3
        edited["environment"]["LOG_LEVEL_1"] = "trace"
        edited["secretResources"].append("added-by-hand")
    for changed in (generated, merged):
        changed["configMapName"] = "attestation-config-v2"
        changed["certificateCache"]["secrets"][entries // 2]["mountPath"] = "/var/cache/moved"
    edits = frozenset({"deployment.replicas", "environment.LOG_LEVEL_1", "secretResources.added-by-hand"})
    return MergeCase(size, last, live, generated, edits, merged)


def _config(entries: int) -> bytes:
    config: Mapping[str, Json] = {
        "configMapName": "attestation-config",
        "authSecretName": "attestation-auth",
        "serviceType": "ClusterIP",
        "deployment": {"replicas": 1, "type": "AllInOne", "image": "registry.example.com/trustee/kbs:v0.19.0"},
        "environment": {f"LOG_LEVEL_{n}": f"debug,module_{n}=info" for n in range(entries)},
        "secretResources": [f"attestation-status-{n}" for n in range(entries)],
        "certificateCache": {
            "secrets": [
                {"secretName": f"vcek-{n}", "mountPath": f"/opt/confidential/attestation/{n}"} for n in range(entries)
            ]
        },
        "policies": {"attestation": "policy-cpu", "resource": "policy-resource", "gpu": "policy-gpu"},
    }
    return orjson.dumps(config)
