"""Buckets in two sizes, as their author declares them and as the service reports them, and that service in memory."""

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
    """How large a bucket is: by its lifecycle rules."""

    label: str
    rules: int


SMALL: Final = Size("1 KB", 1)
USUAL: Final = Size("6 KB", 35)


def name_of(number: int) -> str:
    """All names are of one length."""
    return f"orders-{number:07d}"


def ref_of(number: int) -> ResourceRef:
    """The resource with that number."""
    return ResourceRef(GROUP, "StorageBucket", NAMESPACE, name_of(number))


def manifest_of(number: int, size: Size, *, versioning: bool = True) -> JsonObject:
    """What its author declares."""
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
    """What the service reports: nothing is left to do."""
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


class Service(GoogleClient):
    """Cloud Storage without a network: `find` gives the bytes of the bucket with that name. Nobody may list them.

    `written` hears of every change before it is made.
    """

    def __init__(self, find: Callable[[str], bytes | None], written: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(HttpClient(), GoogleSettings())
        self._find = find
        self._written = written
        self._changed: dict[str, bytes] = {}

    async def get(self, call: GoogleCall) -> bytes | None:
        """The bucket."""
        if len(call.parts) == 1:
            raise RemoteRefused("403: nobody may list buckets here")
        name = call.parts[1]
        return self._changed.get(name) or self._find(name)

    async def patch(self, call: GoogleCall, body: Json) -> bytes:
        """The bucket after the change."""
        name = call.parts[1]
        self._written(name)
        before = self._changed.get(name) or self._find(name)
        assert before is not None
        after = self._changed[name] = orjson.dumps(_merged(orjson.loads(before), body))
        return after


def _merged(before: Json, patch: Json) -> Json:
    """JSON merge patch."""
    if not (isinstance(before, dict) and isinstance(patch, dict)):
        return patch
    merged = {**before, **{name: _merged(before.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in merged.items() if value is not None}
