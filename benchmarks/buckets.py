"""Buckets in two sizes: their manifests, the responses of Cloud Storage, and an in-memory Cloud Storage."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

import orjson

from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.resource import ResourceRef
from setpoint.errors import RemoteRefused
from setpoint.kinds.gcp.storage_bucket.kind import GROUP

NAMESPACE: Final = "team-orders"
_NAME: Final = "orders-0000000"
_TIME: Final = "2025-03-01T09:30:00.000Z"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a bucket: its number of lifecycle rules."""

    label: str
    rules: int


SMALL: Final = Size("1 KB", 1)
USUAL: Final = Size("6 KB", 35)


def name_of(number: int) -> str:
    """The name of a bucket. All names have the same length."""
    return f"orders-{number:07d}"


def ref_of(number: int) -> ResourceRef:
    """The reference to the bucket with that number."""
    return ResourceRef(GROUP, "StorageBucket", NAMESPACE, name_of(number))


def manifest_of(number: int, size: Size, *, versioning: bool = True) -> JsonObject:
    """The manifest of a bucket."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "StorageBucket",
        "metadata": {
            "name": name_of(number),
            "namespace": NAMESPACE,
            "labels": _labels(),
            "annotations": {"cnrm.cloud.google.com/project-id": "orders-production"},
        },
        "spec": {
            "location": "EU",
            "storageClass": "STANDARD",
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
            "versioning": {"enabled": versioning},
            "softDeletePolicy": {"retentionDurationSeconds": 604800},
            "lifecycleRule": _rules(size),
        },
    }


def body_of(name: str, size: Size) -> bytes:
    """The response to a GET of the bucket, in sync with its manifest."""
    return _body(size).replace(_NAME.encode(), name.encode())


@cache
def _body(size: Size) -> bytes:
    uniform = {"enabled": True, "lockedTime": "2025-05-30T09:30:00.000Z"}
    bucket = {
        "kind": "storage#bucket",
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{_NAME}",
        "id": _NAME,
        "name": _NAME,
        "projectNumber": "123456789012",
        "generation": "1740821400000000000",
        "metageneration": "4",
        "location": "EU",
        "storageClass": "STANDARD",
        "etag": "CAQ=",
        "timeCreated": _TIME,
        "updated": _TIME,
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": _TIME},
        "iamConfiguration": {
            "bucketPolicyOnly": uniform,
            "uniformBucketLevelAccess": uniform,
            "publicAccessPrevention": "enforced",
        },
        "locationType": "multi-region",
        "rpo": "DEFAULT",
        "labels": {**_labels(), "managed-by-cnrm": "true"},
        "versioning": {"enabled": True},
        "lifecycle": {"rule": _rules(size)},
    }
    return orjson.dumps(bucket)


def _labels() -> dict[str, Json]:
    return {"team": "orders", "environment": "production", "cost-centre": "4711"}


def _rules(size: Size) -> list[Json]:
    return [
        {
            "action": {"type": "SetStorageClass", "storageClass": "NEARLINE"},
            "condition": {
                "age": 30 + number,
                "matchesPrefix": [f"exports/region-{number:02d}/"],
                "numNewerVersions": 3,
            },
        }
        for number in range(size.rules)
    ]


class InMemoryStorage(GoogleClient):
    """Cloud Storage without a network: `find_body` returns the bytes of a bucket by its name. Lists are refused.

    `on_write` is called with the name of the bucket before every change.
    """

    def __init__(
        self, find_body: Callable[[str], bytes | None], on_write: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(HttpClient(), GoogleSettings())
        # Of the stand-in for the service, which is no part of what is measured.
        self.cpu_seconds = 0.0
        self._find_body = find_body
        self._on_write = on_write
        self._patched: dict[str, bytes] = {}

    async def get(self, call: GoogleCall) -> bytes | None:
        """The bucket."""
        if len(call.parts) == 1:
            raise RemoteRefused("403: listing buckets is not allowed")
        name = call.parts[1]
        return self._patched.get(name) or self._find_body(name)

    async def patch(self, call: GoogleCall, body: Json) -> bytes:
        """The bucket after the change."""
        name, started = call.parts[1], time.thread_time()
        self._on_write(name)
        before = self._patched.get(name) or self._find_body(name)
        assert before is not None
        after = self._patched[name] = orjson.dumps(_merged(orjson.loads(before), body))
        self.cpu_seconds += time.thread_time() - started
        return after


def _merged(before: Json, patch: Json) -> Json:
    """JSON merge patch."""
    if not (isinstance(before, dict) and isinstance(patch, dict)):
        return patch
    merged = {**before, **{name: _merged(before.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in merged.items() if value is not None}
