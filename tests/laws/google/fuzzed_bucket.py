"""StorageBucket under fuzz."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.storage_bucket import StorageBucket, StorageBucketSpec, StorageBucketTree
from setpoint.localcloud.storage.bucket_model import BUCKET
from tests.laws.google.cloud_harness import KEY, NETWORK, PROJECT, CloudHarness
from tests.laws.google.from_schema import Vocabulary
from tests.laws.google.from_types import Words
from tests.laws.google.fuzzed_kind import FuzzedKind, Spec

_NAME: Final = "some-bucket"
_STORAGE_CLASS: Final = Path(("spec", "storageClass"))
_AUTOCLASS: Final = Path(("spec", "autoclass"))
_CLASSES: Final = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE")
_DATES: Final = ("2026-01-01", "2027-06-30")
_RANGES: Final[list[Json]] = [["10.0.0.0/8"], ["192.0.2.0/24", "10.0.0.0/8"], []]
_NETWORKS: Final[list[Json]] = [
    {"external": NETWORK},
    {"external": f"https://www.googleapis.com/compute/v1/{NETWORK}"},
    {"name": "net"},
    {"name": "net", "namespace": "team"},
]
_METHODS: Final[list[Json]] = [["GET"], ["GET", "PUT"]]


class FuzzedBucket(FuzzedKind):
    """A bucket."""

    kind = "StorageBucket"
    group = "storage.cnrm.cloud.google.com"
    name = _NAME
    spec_type = StorageBucketSpec
    tree_type = StorageBucketTree
    live_type = StorageBucket
    schema = BUCKET
    location = Location(f"projects/{PROJECT}/buckets/{_NAME}")
    path = f"/storage/v1/b/{_NAME}"
    # The older name of uniform access.
    aliases = ("iamConfiguration.bucketPolicyOnly.enabled",)
    listable = ("metadata.labels.team", "metadata.labels.managed-by-cnrm")
    switches = MappingProxyType({_AUTOCLASS / "terminalStorageClass": _AUTOCLASS / "enabled"})
    words: ClassVar[Words] = {
        "resourceID": (_NAME,),
        "location": ("US", "us", "EU", "europe-west1"),
        "customPlacementConfig.dataLocations": (["US-EAST1", "US-WEST1"], ["us-west1", "us-east1"], ["US-EAST1"]),
        "storageClass": _CLASSES,
        "autoclass.terminalStorageClass": ("NEARLINE", "ARCHIVE"),
        "publicAccessPrevention": ("inherited", "enforced"),
        "lifecycleRule[].action": (
            *({"type": "Delete"}, {"type": "AbortIncompleteMultipartUpload"}),
            {"type": "SetStorageClass", "storageClass": "NEARLINE"},
        ),
        **{f"lifecycleRule[].condition.{name}": _DATES for name in ("createdBefore", "customTimeBefore")},
        "lifecycleRule[].condition.noncurrentTimeBefore": _DATES,
        "lifecycleRule[].condition.matchesStorageClass": (["STANDARD"], ["NEARLINE", "ARCHIVE"], []),
        "softDeletePolicy.retentionDurationSeconds": (0, 604800, 864000, 7776000),
        "retentionPolicy.retentionPeriod": (1, 3600, 86400),
        "encryption.kmsKeyRef": ({"external": KEY}, {"name": "key"}, {"name": "key", "namespace": "team"}),
        "cors[].method": _METHODS,
        "logging.logBucket": ("logs", "other-logs"),
        "logging.logObjectPrefix": ("prefix", _NAME, ""),
        "website.mainPageSuffix": ("index.html", ""),
        "website.notFoundPage": ("404.html", ""),
        "ipFilter.publicNetworkSource.allowedIpCidrRanges": tuple(_RANGES),
        "ipFilter.vpcNetworkSources[].networkRef": tuple(_NETWORKS),
        "ipFilter.vpcNetworkSources[].allowedIpCidrRanges": tuple(_RANGES),
    }
    live_words = Vocabulary(
        {
            "storageClass": _CLASSES,
            "retentionPolicy.retentionPeriod": ("1", "3600", "86400"),
            "softDeletePolicy.retentionDurationSeconds": ("0", "604800", "864000", "7776000"),
            "encryption.defaultKmsKeyName": (KEY, f"{KEY}2"),
            "lifecycle.rule[].action": (
                {"type": "Delete"},
                {"type": "AbortIncompleteMultipartUpload"},
                {"type": "SetStorageClass", "storageClass": "ARCHIVE"},
            ),
            "lifecycle.rule[].condition.age": (0, 1, 30),
            **{f"lifecycle.rule[].condition.{name}": _DATES for name in ("createdBefore", "customTimeBefore")},
            "lifecycle.rule[].condition.noncurrentTimeBefore": _DATES,
            "lifecycle.rule[].condition.matchesStorageClass[]": _CLASSES,
            "cors[].method[]": ("GET", "PUT"),
            "logging.logBucket": ("logs", "other-logs"),
            "ipFilter.vpcNetworkSources[].network": (NETWORK, f"{NETWORK}2"),
            "ipFilter.vpcNetworkSources[].allowedIpCidrRanges[]": ("10.0.0.0/8",),
            "ipFilter.publicNetworkSource.allowedIpCidrRanges[]": ("10.0.0.0/8",),
        },
        frozenset({"lifecycle.rule[].action", "lifecycle.rule[].condition", "ipFilter.vpcNetworkSources[].network"}),
        (
            *({"storageClass": "STANDARD", "autoclass": {"enabled": is_on}} for is_on in (True, False)),
            {"storageClass": "STANDARD", "autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
            {"autoclass": {"enabled": False}, "storageClass": "NEARLINE"},
        ),
    )

    def surroundings(self, draw: st.DrawFn, harness: CloudHarness) -> str:
        return "MYSQL_8_0"

    def make(self, draw: st.DrawFn, harness: CloudHarness, database_version: str) -> None:
        place: Spec = draw(
            st.sampled_from(
                (
                    *({"location": "US"}, {"location": "EU"}, {"location": "EUROPE-WEST1"}),
                    {"location": "US", "customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}},
                    {"location": "US", "hierarchicalNamespace": {"enabled": True}},
                    {"location": "US", "storageClass": "NEARLINE"},
                )
            )
        )
        body: Spec = {"name": self.name, "labels": {"managed-by-cnrm": "true"}, **place}
        assert harness.ask("POST", f"/storage/v1/b?project={PROJECT}", body)
        self.edit_live(draw, harness)
        if draw(st.sampled_from((False, False, False, True))):
            version = (harness.found(self.path) or {})["metageneration"]
            harness.ask("POST", f"{self.path}/lockRetentionPolicy?ifMetagenerationMatch={version}")

    def follows(self, spec: Spec, path: Path) -> bool:
        """With Autoclass the service chooses the class."""
        return path == _STORAGE_CLASS and bool((spec.get("autoclass") or {}).get("enabled"))

    def declared(self, manifest: Mapping[str, Any]) -> Mapping[str, Json]:
        spec = dict(manifest["spec"])
        older = spec.pop("bucketPolicyOnly", None)
        if older is not None and spec.get("uniformBucketLevelAccess") is None:
            spec["uniformBucketLevelAccess"] = older
        return super().declared({**manifest, "spec": spec})
