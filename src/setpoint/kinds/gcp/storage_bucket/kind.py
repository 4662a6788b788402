"""The kind StorageBucket: location, comparison, and the verbs observe, create, update and delete."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from typing import ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, item_name, list_pages
from setpoint.clients.response_bodies import decode_response
from setpoint.core.overlay import Declared, EffectiveState
from setpoint.core.plan import PlannedWrite, PlanOptions, ResolvedProject, WriteStage
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.capabilities import ImportPlace, ListScope, LiveIdentity
from setpoint.engine.claims.object_claims import ClaimKey
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
from setpoint.engine.management import MANAGED_LABELS
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ProjectRefused, RemoteConflict
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    BUCKET_NAME,
    PROJECT_ANNOTATION,
    TenantProjects,
    definition_for,
    google_labels,
    name_taken_error,
    resource_id,
)
from setpoint.kinds.gcp.storage_bucket.contents import FORCE_DESTROY, empty_bucket
from setpoint.kinds.gcp.storage_bucket.declared import (
    bucket_dependencies,
    check_bucket,
    declared_bucket,
)
from setpoint.kinds.gcp.storage_bucket.effective import LOCKED, effective_bucket, effective_bucket_tree
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket, StorageBucketOutputs, read_bucket
from setpoint.kinds.gcp.storage_bucket.live_view import bucket_view
from setpoint.kinds.gcp.storage_bucket.requests import depends_on_live, insert_body, patch_body
from setpoint.kinds.gcp.storage_bucket.spec import (
    StorageBucketSpec,
    StorageBucketStatus,
    StorageBucketTree,
)

GROUP: Final = "storage.cnrm.cloud.google.com"
_STORAGE: Final = GoogleService.STORAGE
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
    ),
    after_creation=(LOCKED,),
)
_DEFINITION: Final = definition_for("StorageBucket", StorageBucketStatus, "A bucket of Cloud Storage.")


class _OwnedBucket(Struct, frozen=True):
    """A bucket, and the number of the project that it is in."""

    name: str = ""
    projectNumber: str = ""


_owner: Final = msgspec.json.Decoder(_OwnedBucket)


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
    projects: TenantProjects = ANY_PROJECT
    # The number of each project that is known to have a bucket; shared by all tenants.
    numbers: dict[str, str] = field(default_factory=dict)

    def for_tenant(self, tenant: Tenant) -> "StorageBucketKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        check_bucket(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The key and the networks that are referred to as resources."""
        return bucket_dependencies(resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/buckets/b`."""
        return Location(f"projects/{self.projects.of(resource)}/buckets/{resource_id(resource, BUCKET_NAME)}")

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects."""
        return self.projects.resolve(resource)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The spec, and the labels to send."""
        return {
            "spec": declared_bucket(resource, resolved, self.projects),
            "metadata": {"labels": google_labels(resource)},
        }

    def view(self, live: StorageBucket) -> JsonObject:
        """The live bucket in the terms of the spec."""
        return bucket_view(live)

    def effective(
        self, spec: StorageBucketTree, live: StorageBucketTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[StorageBucketTree]:
        """See `effective_bucket`."""
        return effective_bucket(spec, live, policy)

    def effective_tree(self, declared: Declared, live: JsonObject | Missing) -> EffectiveState[StorageBucketTree]:
        """See `effective_bucket`."""
        return effective_bucket_tree(declared, live)

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
        body = await self.google.get(self._call(location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        if digest == known:
            return Unchanged()
        await self._require_own(location, body)
        return _present(body, location, digest)

    async def _require_own(self, location: Location, body: bytes) -> None:
        """ProjectRefused for a bucket that is not in the project of the tenant: the name of a bucket says nothing.

        Each answer has the number of the bucket's project. Which number is the tenant's, its list of buckets says once.
        """
        tenant = self.projects.tenant
        if tenant is None or tenant.project is None:
            return
        project, name = self._parts(location)
        if project not in self.numbers:
            await self._learn_number(project, name)
        number = decode_response(_owner, body, location).projectNumber
        if not number or self.numbers.get(project) != number:
            raise ProjectRefused(
                f"the bucket {name} belongs to another project than {project!r}, which is that of the namespace "
                f"{tenant.namespace}: choose another spec.resourceID; or an administrator has it kept in the namespace "
                "of its project"
            )

    async def _learn_number(self, project: str, bucket: str) -> None:
        """Finds the number of the project in its own list, if that has the bucket."""
        call = GoogleCall(GoogleService.STORAGE, ("b",), {"project": project, "prefix": bucket})
        async with aclosing(list_pages(self.google, call, f"the buckets of project {project}")) as pages:
            async for page in pages:
                found = (decode_response(_owner, item, "a bucket") for item in page)
                number = next((one.projectNumber for one in found if one.name == bucket), "")
                if number:
                    self.numbers[project] = number
                    return

    def _parts(self, location: Location) -> tuple[str, str]:
        """Project and bucket; ProjectRefused for a location on record that is in another project than the tenant's.

        Requests for a bucket do not name its project: nothing else would notice.
        """
        project, name = _parts(location)
        self.projects.require_recorded(project)
        return project, name

    def _call(self, location: Location, metageneration: str | None = None) -> GoogleCall:
        query = {} if metageneration is None else {"ifMetagenerationMatch": metageneration}
        return GoogleCall(_STORAGE, ("b", self._parts(location)[1]), query)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the bucket. The lock of its retention policy follows as an update."""
        project, name = self._parts(intent.location)
        call = GoogleCall(GoogleService.STORAGE, ("b",), {"project": project})
        try:
            answer = await self.google.post(call, insert_body(intent, wanted, name))
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error
        if self.projects.tenant is not None:
            # What was created in the project has its number.
            number = decode_response(_owner, answer, intent.location).projectNumber
            self.numbers.update({project: number} if number else {})
        return None

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[StorageBucket]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        if write.name == _LOCK:
            await self._lock(intent.location, before)
            return None
        effective = intent.effective.over(before, self)
        assert not isinstance(effective.live, Missing)
        guard = before.version if depends_on_live(effective.declared, wanted, write) else None
        body = patch_body(intent, wanted, write, effective.live)
        await self.google.patch(self._call(intent.location, guard), body)
        return None

    async def _lock(self, location: Location, before: Present[StorageBucket]) -> None:
        _, name = self._parts(location)
        query = {"ifMetagenerationMatch": before.version or ""}
        await self.google.post(GoogleCall(GoogleService.STORAGE, ("b", name, "lockRetentionPolicy"), query))

    async def delete(
        self, location: Location, before: Present[StorageBucket], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the bucket, and its objects if force-destroy is set."""
        _, name = self._parts(location)
        await empty_bucket(name, resource, self.google)
        await self.google.delete(self._call(location))
        return None

    def claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """See SupportsClaimKeys. The name of a bucket is unique in the world, whichever project a location has."""
        found = _LOCATION.fullmatch(location)
        return (ClaimKey(GROUP, location if found is None else found[2]),)

    def seen_claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """None beside the name."""
        return ()

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

    def parent_kinds(self) -> Sequence[GroupKind]:
        """See SupportsImport."""
        return ()

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The project."""
        return (ListScope(place.in_project),)

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[StorageBucket]], None]:
        """The buckets of a project."""
        from setpoint.engine.importing.live_lists import listed_objects

        return listed_objects(self, list_scope)

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        project, name = _parts(location)
        return LiveIdentity(name, {}, {PROJECT_ANNOTATION: project}, MANAGED_LABELS)


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
