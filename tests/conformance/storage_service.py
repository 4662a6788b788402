"""Cloud Storage as in the recordings: buckets with the defaults of the service, without objects."""

from typing import Any, Final

from tests.conformance.wire import ABSENT, WireRequest, WireResponse

Body = dict[str, Any]
_INHERITED: Final = {"publicAccessPrevention": "inherited"}


class StorageService:
    """The buckets."""

    def __init__(self) -> None:
        self.buckets: dict[str, Body] = {}

    def answer(self, request: WireRequest) -> WireResponse:
        """The response to one request; the path starts after the version."""
        match request.steps:
            case ("b",):
                name = request.body["name"]
                self.buckets[name] = _completed(request.body, 1)
                return 200, self.buckets[name]
            case ("b", name, "o") if name in self.buckets:
                return 200, {"kind": "storage#objects"}
            case ("b", name) if name in self.buckets:
                return self._bucket(name, request)
            case _:
                return ABSENT

    def _bucket(self, name: str, request: WireRequest) -> WireResponse:
        if request.method == "DELETE":
            del self.buckets[name]
            return 204, None
        if request.method == "PATCH":
            live = self.buckets[name]
            self.buckets[name] = _completed(_merged(live, request.body), int(live["metageneration"]) + 1)
        return 200, self.buckets[name]


def _completed(body: Body, metageneration: int) -> Body:
    # The storage class is always this one.
    bucket = {"kind": "storage#bucket", "softDeletePolicy": {"retentionDurationSeconds": "604800"}, **body}
    location = body.get("location", "US").upper()
    bucket |= {"location": location, "storageClass": "STANDARD", "metageneration": str(metageneration)}
    own = {"uniformBucketLevelAccess": {"enabled": False}}
    bucket["iamConfiguration"] = {**_INHERITED, **own, **body.get("iamConfiguration", {})}
    if not bucket.get("lifecycle", {}).get("rule"):
        bucket.pop("lifecycle", None)
    if bucket.get("autoclass", {}).get("enabled"):
        bucket["autoclass"] = {"terminalStorageClass": "NEARLINE", **bucket["autoclass"]}
    return bucket


def _merged(before: Body, patch: Body) -> Body:
    """A JSON merge patch."""
    after = {name: value for name, value in before.items() if name not in patch}
    for name, value in patch.items():
        if isinstance(value, dict):
            after[name] = _merged(before.get(name) or {}, value)
        elif value is not None:
            after[name] = value
    return after
