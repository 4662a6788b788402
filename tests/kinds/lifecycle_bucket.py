"""The lifecycle fixture of StorageBucket."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import MISSING, Json
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.testing import (
    ImmutableChange,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, GoogleFixture

NAME: Final = "some-bucket"
BUCKETS: Final = "/storage/v1/b"
MINIMAL: Final[Spec] = {"location": "EU", "storageClass": "NEARLINE"}
KEY: Final = "projects/some-project/locations/eu/keyRings/ring/cryptoKeys/key"
_AT_ONCE: Final = "Cloud Storage answers when it is done: there are no operations"


class BucketFixture(GoogleFixture):
    """A bucket."""

    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.OPERATIONS: _AT_ONCE,
        Part.OWN_ABANDON: "the spec of a bucket does not speak of deletion",
        Part.SECRET: "nothing in a bucket is secret",
        Part.SLOW_CREATE: _AT_ONCE,
        Part.STATELESS: "it keeps a cookie",
    }
    path = f"{BUCKETS}/{NAME}"
    api_kind = "storage#bucket"
    ref = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", NAMESPACE, NAME)
    field = SpecifiedField("spec.storageClass", "NEARLINE", "COLDLINE", "ARCHIVE")
    minimal: ClassVar[Spec] = MINIMAL
    labels_member = "labels"
    moved = MovedObject({**MINIMAL, "resourceID": "another-bucket"}, "another-bucket")
    unspecified = UnspecifiedField("spec.website", {"mainPageSuffix": "index.html"})
    unlisted = UnspecifiedField("spec.defaultEventBasedHold", theirs=True, pruned=False)
    referring = ReferringSpec(
        {**MINIMAL, "encryption": {"kmsKeyRef": {"name": "key"}}},
        {
            "apiVersion": "kms.cnrm.cloud.google.com/v1beta1",
            "kind": "KMSCryptoKey",
            "metadata": {"name": "key", "namespace": NAMESPACE},
            "spec": {},
        },
        "reference KMSCryptoKey team/key",
        {"selfLink": KEY},
    )
    outputs: ClassVar[Mapping[str, Json]] = {
        "url": "gs://some-bucket",
        "selfLink": "https://www.googleapis.com/storage/v1/b/some-bucket",
    }
    immutable = ImmutableChange(MINIMAL, {**MINIMAL, "location": "US"}, 'spec.location cannot change from "EU" to "US"')
    protections = (
        ProtectedField(
            {**MINIMAL, "publicAccessPrevention": "enforced"},
            {**MINIMAL, "storageClass": "COLDLINE"},
            {**MINIMAL, "publicAccessPrevention": "inherited"},
            "iamConfiguration.publicAccessPrevention",
            "enforced",
            "inherited",
        ),
        ProtectedField(
            {**MINIMAL, "uniformBucketLevelAccess": True},
            {**MINIMAL, "storageClass": "COLDLINE"},
            {**MINIMAL, "uniformBucketLevelAccess": False},
            "iamConfiguration.uniformBucketLevelAccess.enabled",
            kept=True,
            given_up=False,
        ),
        ProtectedField(
            {**MINIMAL, "retentionPolicy": {"retentionPeriod": 3600}},
            {**MINIMAL, "storageClass": "COLDLINE"},
            {**MINIMAL, "retentionPolicy": None},
            "retentionPolicy.retentionPeriod",
            "3600",
            MISSING,
        ),
        ProtectedField(
            {**MINIMAL, "softDeletePolicy": {"retentionDurationSeconds": 864000}},
            {**MINIMAL, "storageClass": "COLDLINE"},
            {**MINIMAL, "softDeletePolicy": {"retentionDurationSeconds": 0}},
            "softDeletePolicy.retentionDurationSeconds",
            "864000",
            "0",
        ),
    )

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return StorageBucketKind(client)

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.storage.state.buckets.get(NAME)
        return None if found is None else found.resource

    def objects(self) -> list[str]:
        return list(self.cloud.storage.state.buckets)

    def create_outside(self, value: Json) -> None:
        body = {"name": NAME, "location": "EU", "storageClass": value, "labels": {"managed-by-cnrm": "true"}}
        assert self.cloud.call("POST", f"{BUCKETS}?project={PROJECT}", body).status == 200
        self.cloud.journal.clear()

    def delete_outside(self) -> None:
        del self.cloud.storage.state.buckets[NAME]

    def move_output(self) -> Mapping[str, Json]:
        self.drift("softDeletePolicy.effectiveTime", "2026-02-02T00:00:00.000Z")
        policy: Json = {"retentionDurationSeconds": 604800, "effectiveTime": "2026-02-02T00:00:00.000Z"}
        return {"observedState": {"softDeletePolicy": policy, "storageClass": "NEARLINE"}}
