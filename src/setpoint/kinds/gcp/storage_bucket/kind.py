"""The kind StorageBucket: location, comparison, and the verbs observe, create, update and delete."""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import fields

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, item_name, list_pages
from setpoint.core.overlay import Declared
from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    match_location,
    observe_decoded,
)
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteConflict
from setpoint.kinds.gcp.shared.config_connector import (
    BUCKET_NAME,
    PROJECT_ANNOTATION,
    definition_for,
    google_labels,
    name_taken_error,
    project_of,
    resource_id,
)
from setpoint.kinds.gcp.storage_bucket.contents import FORCE_DESTROY, empty_bucket
from setpoint.kinds.gcp.storage_bucket.declared import (
    LOCKED,
    bucket_dependencies,
    check_bucket,
    declared_bucket,
    require_lock,
)
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket, StorageBucketOutputs, read_bucket
from setpoint.kinds.gcp.storage_bucket.live_view import bucket_view
from setpoint.kinds.gcp.storage_bucket.requests import depends_on_live, insert_body, patch_body
from setpoint.kinds.gcp.storage_bucket.spec import (
    StorageBucketSpec,
    StorageBucketStatus,
    StorageBucketTree,
    fit_bucket_to_live,
)

GROUP: Final = "storage.cnrm.cloud.google.com"
_LOCATION: Final = re.compile(r"projects/([^/]+)/buckets/([^/]+)")
_LOCK: Final = "lock"
# The lock cannot be undone: it follows when the policy itself is as declared.
_SENDING: Final = PlanOptions(
    (
        WriteStage(
            "update",
            (
                Path(("metadata",)),
                *(Path(("spec", one.name)) for one in fields(StorageBucketSpec) if one.name != "retentionPolicy"),
                Path(("spec", "retentionPolicy", "retentionPeriod")),
            ),
        ),
        WriteStage(_LOCK, (LOCKED,)),
    )
)
_DEFINITION: Final = definition_for("StorageBucket", StorageBucketStatus, "A bucket of Cloud Storage.")


@dataclass(slots=True)
class StorageBucketKind:
    """The kind StorageBucket."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "StorageBucket"
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT_ANNOTATION, FORCE_DESTROY)
    live_type: type[StorageBucket] = StorageBucket
    tree_type: type[Struct] = StorageBucketTree
    definition: CrdDetails = _DEFINITION

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        check_bucket(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The key and the networks that are referred to as resources."""
        return bucket_dependencies(resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/buckets/b`."""
        return Location(f"projects/{project_of(resource)}/buckets/{resource_id(resource, BUCKET_NAME)}")

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The spec, and the labels to send."""
        return {"spec": declared_bucket(resource, resolved), "metadata": {"labels": google_labels(resource)}}

    def view(self, live: StorageBucket) -> JsonObject:
        """The live bucket in the terms of the spec."""
        return bucket_view(live)

    def fit_to_live(self, declared: Declared, live: JsonObject) -> Declared:
        """With the constraints of the live bucket; ImmutableFieldChanged when a locked policy would be unlocked."""
        require_lock(declared, live)
        return fit_bucket_to_live(declared, live)

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    def sending(self, intent: Intent) -> PlanOptions:
        """One patch, then the lock of the retention policy in a request of its own."""
        return _SENDING

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[StorageBucket] | Unchanged:
        """Reads the bucket."""
        body = await self.google.get(_call(location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        if digest == known:
            return Unchanged()
        return _present(body, location, digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the bucket. The lock of its retention policy follows as an update."""
        project, name = _parts(intent.location)
        call = GoogleCall(GoogleService.STORAGE, ("b",), {"project": project})
        try:
            await self.google.post(call, insert_body(intent, wanted, name))
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error
        return None

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[StorageBucket]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        if write.name == _LOCK:
            await self._lock(intent.location, before)
            return None
        view = self.view(before.live)
        guard = before.version if depends_on_live(self.fit_to_live(intent.declared, view), wanted, write) else None
        body = patch_body(intent, wanted, write, view)
        await self.google.patch(_call(intent.location, guard), body)
        return None

    async def _lock(self, location: Location, before: Present[StorageBucket]) -> None:
        _, name = _parts(location)
        query = {"ifMetagenerationMatch": before.version or ""}
        await self.google.post(GoogleCall(GoogleService.STORAGE, ("b", name, "lockRetentionPolicy"), query))

    async def delete(
        self, location: Location, before: Present[StorageBucket], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the bucket, and its objects if force-destroy is set."""
        _, name = _parts(location)
        await empty_bucket(name, resource, self.google)
        await self.google.delete(_call(location))
        return None

    async def poll(self, operation: RemoteOperation) -> bool:
        """Always done: buckets have no operations."""
        return True

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The project."""
        found = _LOCATION.fullmatch(location)
        return None if found is None else ListScope(found[1])

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """The buckets of the project."""
        call = GoogleCall(GoogleService.STORAGE, ("b",), {"project": list_scope})
        return list_pages(self.google, call, f"the buckets of project {list_scope}")

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """`projects/p/buckets/b`."""
        return Location(f"projects/{list_scope}/buckets/{item_name(item, list_scope)}")

    def read_item(self, item: bytes, location: Location) -> Present[StorageBucket] | None:
        """The bucket; None for one with an IP filter, of which a list shows only that it exists."""
        found = _present(item, location)
        return None if found.live.ipFilter else found


def _present(body: bytes, location: Location, digest: str | None = None) -> Present[StorageBucket]:
    found = read_bucket(body, location)
    return Present(found.bucket, digest, found.outputs.metageneration, _status(found.bucket, found.outputs))


def _status(live: StorageBucket, reported: StorageBucketOutputs) -> JsonObject:
    observed: dict[str, Json] = {}
    if live.softDeletePolicy:
        seconds = live.softDeletePolicy.retentionDurationSeconds
        policy: dict[str, Json] = {"retentionDurationSeconds": seconds} if isinstance(seconds, int) else {}
        if reported.softDeletePolicy and reported.softDeletePolicy.effectiveTime:
            policy["effectiveTime"] = reported.softDeletePolicy.effectiveTime
        observed["softDeletePolicy"] = policy
    if live.storageClass:
        observed["storageClass"] = live.storageClass
    shown: dict[str, Json] = {"observedState": observed, "url": f"gs://{live.name}"}
    return {**shown, "selfLink": reported.selfLink} if reported.selfLink else shown


def _parts(location: Location) -> tuple[str, str]:
    """Project and bucket."""
    found = match_location(_LOCATION, location)
    return found[1], found[2]


def _call(location: Location, metageneration: str | None = None) -> GoogleCall:
    _, name = _parts(location)
    query = {} if metageneration is None else {"ifMetagenerationMatch": metageneration}
    return GoogleCall(GoogleService.STORAGE, ("b", name), query)
