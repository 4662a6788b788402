"""The fleet: settled buckets in many projects, and a store that makes the record of each when it is read.

The store holds no more than what was changed, so that the memory of the process is that of its controllers.
"""

import os
from collections.abc import AsyncIterator, Iterator, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.buckets import SMALL, body_of, manifest_of, name_of
from benchmarks.growth.simulated_service import PROJECT_SIZE, SimulatedStorage, number_of, project_of
from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.canonical import digest, sha256_hex
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import EVERYTHING, Clock, EventRecord, Lease, ResourceList, ResourceQuery, Store
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.kind import GROUP
from setpoint.kinds.gcp.storage_bucket.live import read_bucket
from setpoint.stores.journal import JournaledChange, StoreLimits
from setpoint.stores.lease_rules import unix_seconds
from setpoint.stores.memory import MemoryStore
from setpoint.stores.records import ResourceRecord, to_resource

_DIGEST_BYTES: Final = 32
# A watch may fall behind by as much as an API server keeps of a busy fleet.
_LIMITS: Final = StoreLimits(changes=200_000)
# Higher than that of any record that a step has settled.
_FIRST_REVISION: Final = 1000


def ref_of(number: int) -> ResourceRef:
    """The bucket with that number. Numbers have the order of refs."""
    return ResourceRef(GROUP, "StorageBucket", project_of(number), name_of(number))


def engine_context(store: Store, google: GoogleClient, clock: Clock) -> EngineContext:
    """An engine with the kind of buckets alone."""
    kind: AnyKind = StorageBucketKind(google)
    return EngineContext(store, clock, {(kind.group, kind.name): kind})


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def manifest_of_fleet(number: int) -> JsonObject:
    """The manifest of a bucket, in the namespace of its project."""
    manifest, project = manifest_of(number, SMALL), project_of(number)
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    annotations: JsonObject = {"cnrm.cloud.google.com/project-id": project}
    return {**manifest, "metadata": {**metadata, "namespace": project, "annotations": annotations}}


# --- Digests ----------------------------------------------------------------------------------------------------------


def write_digests(path: Path, numbers: range) -> None:
    """Appends to a file what takes longest to make of a bucket: the digests of its live state and of its body."""
    with path.open("ab") as file:
        for number in numbers:
            body = body_of(name_of(number), SMALL)
            live = digest(read_bucket(body, name_of(number)).bucket)
            file.write(bytes.fromhex(live) + bytes.fromhex(sha256_hex(body)))


class FleetDigests:
    """The digests in such a file: read by position, so that they are no memory of this process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def of(self, number: int) -> tuple[bytes, bytes]:
        """Those of the live state and of the body, as hexadecimal digits."""
        found = os.pread(self._file, 2 * _DIGEST_BYTES, number * 2 * _DIGEST_BYTES)
        return found[:_DIGEST_BYTES].hex().encode(), found[_DIGEST_BYTES:].hex().encode()


# --- The store --------------------------------------------------------------------------------------------------------


class SettledRecords(MutableMapping[ResourceRef, ResourceRecord]):
    """The record of every bucket, after the step that settled it; those that were written since are kept."""

    def __init__(self, count: int, digests: FleetDigests) -> None:
        self._count = count
        self._digests = digests
        # By project: the record of its first bucket, which a step has settled.
        self._first: dict[str, ResourceRecord] = {}
        self._written: dict[ResourceRef, ResourceRecord] = {}

    async def settle(self, clock: Clock) -> None:
        """Settles the first bucket of every project."""
        google = SimulatedStorage(latency=0.0)
        client = google.client()
        for number in range(0, self._count, PROJECT_SIZE):
            store = MemoryStore(clock, partial(_uid, number))
            await store.apply(manifest_of_fleet(number))
            outcome = await step(ref_of(number), engine_context(store, client, clock))
            assert isinstance(outcome, Settled), outcome
            assert outcome.ready.status == "True", outcome
            self._first[project_of(number)] = store._records[ref_of(number)]

    def __getitem__(self, ref: ResourceRef) -> ResourceRecord:
        found = self._written.get(ref)
        return self._made(number_of(ref.name)) if found is None else found

    def __setitem__(self, ref: ResourceRef, record: ResourceRecord) -> None:
        self._written[ref] = record

    def __delitem__(self, ref: ResourceRef) -> None:
        raise NotImplementedError("no bucket of the fleet is deleted")

    def __iter__(self) -> Iterator[ResourceRef]:
        return map(ref_of, range(self._count))

    def __len__(self) -> int:
        return self._count

    def _made(self, number: int) -> ResourceRecord:
        first = self._first[project_of(number)]
        number_of_first = number - number % PROJECT_SIZE
        if number == number_of_first:
            return first
        metadata, status = first.metadata, first.status
        for before, after in zip(self._parts(number_of_first), self._parts(number), strict=True):
            metadata, status = metadata.replace(before, after), status.replace(before, after)
        return replace(first, ref=ref_of(number), uid=_uid(number), metadata=metadata, status=status)

    def _parts(self, number: int) -> tuple[bytes, ...]:
        """What differs between the records of a project."""
        return name_of(number).encode(), _uid(number).encode(), *self._digests.of(number)


class SimulatedStore(MemoryStore):
    """The store of the fleet as one replica sees it. `others` are the leases that the other replicas hold."""

    def __init__(self, clock: Clock, records: SettledRecords, others: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(clock, lambda: _uid(0), _LIMITS)
        self._records = records
        self._others = others
        self._last = _FIRST_REVISION
        self.writes = self.events_recorded = 0

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        """See Store: in the order of numbers."""
        revision = Revision(str(self._last))
        for start in range(0, len(self._records), size):
            numbers = range(start, min(start + size, len(self._records)))
            yield ResourceList(tuple(to_resource(self._records[ref_of(one)]) for one in numbers), revision)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """See Store: with those of the other replicas, which renew them all the time."""
        expires = unix_seconds(self._clock) + 15.0
        others = (Lease(name, holder, 1, expires) for name, holder in self._others if name.startswith(prefix))
        return tuple(sorted((*await super().leases(prefix), *others), key=lambda one: one.name))

    async def written_elsewhere(self, ref: ResourceRef) -> None:
        """Another replica writes the status of `ref`."""
        await self._commit([(ref, lambda before: None if before is None else replace(before))])

    def _record_event(self, event: EventRecord) -> None:
        self.events_recorded += event.count

    def _keep(self, journaled: Sequence[JournaledChange]) -> None:
        self.writes += len(journaled)
        super()._keep(journaled)
