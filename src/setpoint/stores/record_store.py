"""The base of stores that keep records: each write is a mutation, which the store commits."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ChildWrite, Clock, DerivedStoreOperations, EventRecord, ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.resource_set import SetDeclaration, SetRecord
from setpoint.engine.step.reports import HistoryEntry
from setpoint.stores.manifest_types import ANY_TYPE, ManifestTypes
from setpoint.stores.manifests import read_manifest, require_same_ref, stored_ref
from setpoint.stores.mutations import (
    Mutation,
    applied,
    child_refusals,
    created,
    deleted,
    joined,
    left,
    refusing_as_child,
    replaced,
    updated,
)
from setpoint.stores.records import ResourceRecord, to_resource


class RecordStore(DerivedStoreOperations):
    """The writes of a Store that keeps records: each is a mutation that the store commits."""

    def __init__(
        self,
        clock: Clock,
        new_uid: Callable[[], str],
        secrets: SecretFields | None = None,
        types: ManifestTypes = ANY_TYPE,
    ) -> None:
        self._clock = clock
        self._new_uid = new_uid
        # None for a store that does not encrypt.
        self._secrets = secrets
        self._types = types

    @property
    def collects(self) -> bool:
        return False

    async def apply(self, manifest: JsonObject) -> Resource:
        authored = read_manifest(manifest, self._secrets, self._types)
        (record,) = await self._commit([(authored.ref, applied(authored, self._clock.now(), self._new_uid))])
        return _kept(record)

    async def declare(self, declaration: SetDeclaration) -> tuple[Resource, ...]:
        """See SetStore."""
        now, changes = self._clock.now(), list[tuple[ResourceRef, Mutation]]()
        for member in declaration.members:
            authored = read_manifest(member.manifest, self._secrets, self._types)
            changes.append((authored.ref, joined(authored, member, now, self._new_uid)))
        changes += [(stored_ref(ref), left(name, is_pruned=True)) for ref, name in declaration.leaving]
        changes += [(stored_ref(ref), left(name, is_pruned=False)) for ref, name in declaration.released]
        records = await self._commit(changes, sets=declaration.records)
        return tuple(map(_kept, records[: len(declaration.members)]))

    async def prune(self, ref: ResourceRef, set_name: str) -> Resource | None:
        """See SetStore."""
        (record,) = await self._commit([(stored_ref(ref), deleted(self._clock.now(), set_name))])
        return None if record is None else to_resource(record)

    async def keep_set(self, record: SetRecord) -> None:
        """See SetStore."""
        if record not in await self.sets():
            await self._commit((), sets=(record,))

    @abstractmethod
    async def sets(self) -> tuple[SetRecord, ...]:
        """See SetStore."""

    async def create(self, document: JsonObject) -> Resource:
        return await self._write_child(ChildWrite(document))

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        return await self._write_child(ChildWrite(document, seen))

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        changes: list[tuple[ResourceRef, Mutation]] = []
        for index, write in enumerate(writes):
            with child_refusals(index):
                ref, mutation = self._child_change(write)
            changes.append((ref, refusing_as_child(index, mutation)))
        return tuple(map(_kept, await self._commit(changes))) if changes else ()

    async def _write_child(self, write: ChildWrite) -> Resource:
        (child,) = await self._commit([self._child_change(write)])
        return _kept(child)

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        (record,) = await self._commit([(resource.ref, updated(resource, update))], update.events, update.history)
        return None if record is None else to_resource(record)

    async def delete(self, ref: ResourceRef) -> Resource | None:
        (record,) = await self._commit([(stored_ref(ref), deleted(self._clock.now()))])
        return None if record is None else to_resource(record)

    @abstractmethod
    async def _commit(
        self,
        changes: Sequence[tuple[ResourceRef, Mutation]],
        events: Sequence[EventRecord] = (),
        history: Sequence[HistoryEntry] = (),
        *,
        sets: Sequence[SetRecord] = (),
    ) -> tuple[ResourceRecord | None, ...]:
        """The records after these mutations, in order, once they, the events and the sets are committed: all, or none.

        A mutation that returns the record it was given changes nothing. `history` is of the first resource.
        """

    def _child_change(self, write: ChildWrite) -> tuple[ResourceRef, Mutation]:
        authored = read_manifest(write.document, self._secrets)
        if write.seen is None:
            return authored.ref, created(authored, self._clock.now(), self._new_uid)
        require_same_ref(write.seen.ref, authored.ref)
        return write.seen.ref, replaced(write.seen, authored)


def _kept(record: ResourceRecord | None) -> Resource:
    assert record is not None, "only a deletion and an update of finalizers can remove a resource"
    return to_resource(record)
