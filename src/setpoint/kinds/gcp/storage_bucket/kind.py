"""The kind StorageBucket: where a bucket is, how it reads, and the four verbs."""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import fields

from setpoint.clients.google import Call, GoogleClient, Service
from setpoint.clients.google_pages import name_in, pages_of
from setpoint.core.canonical import body_digest
from setpoint.core.overlay import Declared
from setpoint.core.paths import Path
from setpoint.core.plan import Sending, Stage, Write
from setpoint.core.values import Json
from setpoint.engine.kind import (
    Absent,
    Definition,
    Intent,
    Location,
    Need,
    Operation,
    Present,
    Reconciliation,
    Resolved,
    Unmoved,
    look_at,
)
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.shelf import Shelf
from setpoint.errors import RemoteConflict
from setpoint.kinds.config_connector import PROJECT, definition_for, google_labels, project_of, resource_id
from setpoint.kinds.gcp.storage_bucket.bodies import comes_from_a_look, insert_body, patch_body
from setpoint.kinds.gcp.storage_bucket.contents import FORCE_DESTROY, empty_first
from setpoint.kinds.gcp.storage_bucket.declared import bucket_needs, check_bucket, declared_bucket
from setpoint.kinds.gcp.storage_bucket.live import Aside, Bucket, read_bucket
from setpoint.kinds.gcp.storage_bucket.lock import LOCKED, require_lock
from setpoint.kinds.gcp.storage_bucket.spec import StorageBucketSpec, StorageBucketTree, fitted_bucket
from setpoint.kinds.gcp.storage_bucket.status import StorageBucketStatus
from setpoint.kinds.gcp.storage_bucket.view import bucket_view
from setpoint.kinds.taken_names import conflict_or_refusal

GROUP: Final = "storage.cnrm.cloud.google.com"
_LOCATION: Final = re.compile(r"projects/([^/]+)/buckets/([^/]+)")
_LOCK: Final = "lock"
# A policy is locked when it is as it should be: the lock cannot be undone.
_SENDING: Final = Sending(
    (
        Stage(
            "update",
            (
                Path(("metadata",)),
                *(Path(("spec", one.name)) for one in fields(StorageBucketSpec) if one.name != "retentionPolicy"),
                Path(("spec", "retentionPolicy", "retentionPeriod")),
            ),
        ),
        Stage(_LOCK, (LOCKED,)),
    )
)
_DEFINITION: Final = definition_for("StorageBucket", StorageBucketStatus, "A bucket of Cloud Storage.")


@dataclass(slots=True)
class StorageBucketKind:
    """The kind."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "StorageBucket"
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT, FORCE_DESTROY)
    live_type: type[Bucket] = Bucket
    tree_type: type[Struct] = StorageBucketTree
    definition: Definition = _DEFINITION

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no bucket can have."""
        check_bucket(resource)

    def needs(self, resource: Resource) -> Sequence[Need]:
        """The key and the networks that are named as resources."""
        return bucket_needs(resource)

    def locate(self, resource: Resource, resolved: Resolved) -> Location:
        """`projects/p/buckets/b`."""
        return Location(f"projects/{project_of(resource)}/buckets/{resource_id(resource)}")

    def declare(self, resource: Resource, resolved: Resolved) -> Tree:
        """The spec, and the labels to send."""
        return {"spec": declared_bucket(resource, resolved), "metadata": {"labels": google_labels(resource)}}

    def view(self, live: Bucket) -> Tree:
        """The live bucket in the same terms."""
        return bucket_view(live)

    def fitted(self, declared: Declared, live: Tree) -> Declared:
        """With what the service decides; ImmutableFieldChanged when nothing but an open lock would do."""
        require_lock(declared, live)
        return fitted_bucket(declared, live)

    def abandons(self, resource: Resource) -> bool:
        """Never by its spec."""
        return False

    def sending(self, intent: Intent) -> Sending:
        """One patch, and the lock of the retention policy as a write of its own."""
        return _SENDING

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Bucket] | Unmoved:
        """A look."""
        body = await self.google.get(_call(location))
        if body is None:
            return Absent()
        mark = body_digest(body)
        if mark == known:
            return Unmoved()
        return _present(body, location, mark)

    async def create(self, intent: Intent, wanted: Tree) -> Operation | None:
        """Makes the bucket. A lock on its retention policy follows as a change."""
        project, name = _parts(intent.location)
        call = Call(Service.STORAGE, ("b",), {"project": project})
        try:
            await self.google.post(call, insert_body(intent, wanted, name))
        except RemoteConflict as error:
            raise await conflict_or_refusal(error, look_at(intent.location, self)) from error
        return None

    async def update(self, intent: Intent, wanted: Tree, write: Write, before: Present[Bucket]) -> Operation | None:
        """Sends one write of the plan."""
        if write.name == _LOCK:
            await self._lock(intent.location, before)
            return None
        view = self.view(before.live)
        guard = before.version if comes_from_a_look(self.fitted(intent.declared, view), wanted, write) else None
        body = patch_body(intent, wanted, write, view)
        await self.google.patch(_call(intent.location, guard), body)
        return None

    async def _lock(self, location: Location, before: Present[Bucket]) -> None:
        _, name = _parts(location)
        query = {"ifMetagenerationMatch": before.version or ""}
        await self.google.post(Call(Service.STORAGE, ("b", name, "lockRetentionPolicy"), query))

    async def delete(self, location: Location, before: Present[Bucket], resource: Resource) -> Operation | None:
        """Removes the bucket; what is in it only if the author says so."""
        _, name = _parts(location)
        await empty_first(name, resource, self.google)
        await self.google.delete(_call(location))
        return None

    async def poll(self, operation: Operation) -> bool:
        """Buckets are done at once: there is nothing to wait for."""
        return True

    def shelf_of(self, location: Location) -> Shelf | None:
        """The project."""
        found = _LOCATION.fullmatch(location)
        return None if found is None else Shelf(found[1])

    def pages(self, shelf: Shelf) -> AsyncGenerator[Sequence[bytes], None]:
        """The buckets of the project."""
        call = Call(Service.STORAGE, ("b",), {"project": shelf})
        return pages_of(self.google, call, f"the buckets of project {shelf}")

    def location_of(self, item: bytes, shelf: Shelf) -> Location:
        """`projects/p/buckets/b`."""
        return Location(f"projects/{shelf}/buckets/{name_in(item, shelf)}")

    def read_item(self, item: bytes, location: Location) -> Present[Bucket] | None:
        """The bucket, unless requests to it are filtered: of the filter, a list shows no more than that it is there."""
        found = _present(item, location)
        return None if found.live.ipFilter else found


def _present(body: bytes, location: Location, mark: str | None = None) -> Present[Bucket]:
    found = read_bucket(body, location)
    return Present(found.bucket, mark, found.aside.metageneration, _outputs(found.bucket, found.aside))


def _outputs(live: Bucket, aside: Aside) -> Tree:
    observed: dict[str, Json] = {}
    if live.softDeletePolicy:
        seconds = live.softDeletePolicy.retentionDurationSeconds
        policy: dict[str, Json] = {"retentionDurationSeconds": seconds} if isinstance(seconds, int) else {}
        if aside.softDeletePolicy and aside.softDeletePolicy.effectiveTime:
            policy["effectiveTime"] = aside.softDeletePolicy.effectiveTime
        observed["softDeletePolicy"] = policy
    if live.storageClass:
        observed["storageClass"] = live.storageClass
    shown: dict[str, Json] = {"observedState": observed, "url": f"gs://{live.name}"}
    return {**shown, "selfLink": aside.selfLink} if aside.selfLink else shown


def _parts(location: Location) -> tuple[str, str]:
    """Project and bucket."""
    found = _LOCATION.fullmatch(location)
    assert found is not None, location
    return found[1], found[2]


def _call(location: Location, metageneration: str | None = None) -> Call:
    _, name = _parts(location)
    query = {} if metageneration is None else {"ifMetagenerationMatch": metageneration}
    return Call(Service.STORAGE, ("b", name), query)
