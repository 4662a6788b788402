"""The writes of a Store on resources, over the one thing that stores do differently: carrying out a rule."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.stores.documents import (
    Rule,
    applied,
    created,
    deleted,
    replaced,
    with_annotations,
    with_finalizers,
    with_status,
)
from setpoint.stores.manifests import kept_at, read_manifest, require_same
from setpoint.stores.records import Record, to_resource


class ResourceWrites(ABC):
    """All writes of a Store on resources."""

    def __init__(self, clock: Clock, new_uid: Callable[[], str]) -> None:
        self._clock = clock
        self._new_uid = new_uid

    @property
    def collects(self) -> bool:
        return False

    async def apply(self, manifest: Tree) -> Resource:
        authored = read_manifest(manifest)
        return await self._kept(authored.ref, applied(authored, self._clock.now(), self._new_uid))

    async def create(self, document: Tree) -> Resource:
        authored = read_manifest(document)
        return await self._kept(authored.ref, created(authored, self._clock.now(), self._new_uid))

    async def replace(self, seen: Resource, document: Tree) -> Resource:
        authored = read_manifest(document)
        require_same(seen.ref, authored.ref)
        return await self._kept(seen.ref, replaced(seen, authored))

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
        return await self._kept(resource.ref, with_status(resource, status))

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        record = await self._change(resource.ref, with_finalizers(resource, finalizers))
        return None if record is None else to_resource(record)

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        return await self._kept(resource.ref, with_annotations(resource, annotations))

    async def delete(self, ref: ResourceRef) -> Resource | None:
        record = await self._change(kept_at(ref), deleted(self._clock.now()))
        return None if record is None else to_resource(record)

    @abstractmethod
    async def _change(self, ref: ResourceRef, rule: Rule) -> Record | None:
        """The record after `rule`, on record for good; nothing happens when the rule gives back what it was given."""

    async def _kept(self, ref: ResourceRef, rule: Rule) -> Resource:
        record = await self._change(ref, rule)
        assert record is not None, f"{ref} went away in a write that keeps it"
        return to_resource(record)
