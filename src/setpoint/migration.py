"""Migration from Config Connector: what adopting its resources would write, and the hand-over of one namespace.

Its resources are ours by group, kind and meaning; its cookies are not trusted. Its controller stops first, ours
starts second; never both. Once it is uninstalled, none of its finalizers are left.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import Final

from setpoint.app import AppSettings, StoreAccess, is_shared_store, open_engine
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.config_connector import ConfigConnector, ConfigConnectorMode
from setpoint.clients.kubernetes.contexts import connection_from_environment
from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.core.plan import Action, Plan
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED, Rule
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import DELETION_DEFENDER, DELETION_POLICY, FINALIZER, EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import COOKIE_ANNOTATION
from setpoint.engine.step.preview import (
    PreviewFinding,
    PreviewResult,
    preview_with_and_without_cookie,
    with_cookie,
)
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.engine.transfer.export_format import manifest_of
from setpoint.engine.transfer.exporter import gather_export, resume_after_export
from setpoint.errors import SetpointError, UserError
from setpoint.preview import open_preview
from setpoint.replay.preview_report import MAX_CONCURRENT, managed_refs
from setpoint.stores.kubernetes.crds import plural_of


@dataclass(frozen=True, slots=True)
class ResourceAdoption:
    """The adoption of one resource: its preview, and annotations with which nothing would be written, if any.

    `warnings` are about annotations of Config Connector that have no effect here.
    """

    found: PreviewResult
    keeps: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def writes_nothing(self) -> bool:
        """Whether it can be adopted without a write."""
        return self.found.writes_nothing

    def to_data(self) -> dict[str, Json]:
        """All of it as plain JSON."""
        return {**self.found.to_data(), "keep": dict(self.keeps), "warnings": list(self.warnings)}


async def preview_adoption(ref: ResourceRef, engine: EngineContext) -> ResourceAdoption:
    """What adopting `ref` would write; nothing is written."""
    resource = await engine.store.get(ref)
    if resource is None:
        return ResourceAdoption(PreviewResult(ref, PreviewFinding.FAILED, trouble=f"{ref} is gone"))
    theirs = without_cookies(resource)
    warnings = tuple(str(one.message) for one in engine.annotation_warnings(theirs))
    found = await preview_with_and_without_cookie(ref, _overlaid(theirs, engine))
    if found.finding is not PreviewFinding.WRITES or found.plan is None:
        return ResourceAdoption(found, warnings=warnings)
    return ResourceAdoption(found, await _annotations_without_writes(found.plan, theirs, engine), warnings)


def without_cookies(resource: Resource) -> Resource:
    """The resource without the cookies of the controller that managed it before."""
    bare = with_cookie(resource, None).document
    metadata = bare["metadata"]
    assert isinstance(metadata, Mapping)
    annotations = {name: text for name, text in resource.annotations.items() if name != COOKIE_ANNOTATION}
    return Resource({**bare, "metadata": {**metadata, "annotations": annotations}})


async def _annotations_without_writes(plan: Plan, resource: Resource, engine: EngineContext) -> Mapping[str, str]:
    """The narrowest annotations with which nothing would be written; empty when there are none."""
    for annotations in _candidates(plan, resource):
        try:
            left = await preview(resource.ref, _overlaid(with_annotations(resource, annotations), engine))
        except SetpointError:
            # Not every field can be named in an annotation.
            continue
        if not left.writes:
            return annotations
    return {}


def _candidates(plan: Plan, resource: Resource) -> Iterator[Mapping[str, str]]:
    if any(write.action in (Action.CREATE, Action.DELETE) for write in plan.writes):
        return
    specified = [str(change.path) for change in plan.changes if change.rule is Rule.SPEC]
    unspecified = [str(change.path) for change in plan.changes if change.rule is not Rule.SPEC]
    unmanaged = {UNMANAGED: _joined(resource, UNMANAGED, specified)} if specified else {}
    if unspecified:
        yield {**unmanaged, DEFAULT_TO_GCP: _joined(resource, DEFAULT_TO_GCP, unspecified)}
        yield {**unmanaged, IGNORE_UNSPECIFIED: "true"}
    elif unmanaged:
        yield unmanaged


def _joined(resource: Resource, name: str, paths: Sequence[str]) -> str:
    before = resource.annotations.get(name)
    return ",".join([before, *paths] if before else paths)


def with_annotations(resource: Resource, annotations: Mapping[str, str]) -> Resource:
    """The resource with these annotations as well."""
    metadata = resource.document["metadata"]
    assert isinstance(metadata, Mapping)
    return Resource(
        {**resource.document, "metadata": {**metadata, "annotations": {**resource.annotations, **annotations}}}
    )


def _overlaid(resource: Resource, engine: EngineContext) -> EngineContext:
    return replace(engine, store=OverlayStore(engine.store, {resource.ref: resource}))


_GROUPS: Final = ".cnrm.cloud.google.com"
_ABANDON: Final = "abandon"
# Marks the deletion policy as set by the migration, not by the author.
_MARK: Final = known_annotations.ABANDONED_BY_MIGRATION


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """Where Config Connector runs: a cluster, and one namespace of it or all."""

    context: str | None
    namespace: str | None

    def settings(self, settings: AppSettings) -> AppSettings:
        """The same settings with its cluster as the store."""
        where = "kubernetes" if self.context is None else f"kubernetes://{self.context}"
        return replace(settings, store=where if self.namespace is None else f"{where}?namespace={self.namespace}")


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """The adoption of each resource, and the writes that were blocked during the preview."""

    each: tuple[ResourceAdoption, ...]
    blocked: tuple[str, ...] = ()

    @property
    def loud(self) -> tuple[ResourceAdoption, ...]:
        """Those that cannot be adopted without a write."""
        return tuple(one for one in self.each if not one.writes_nothing)


async def preview_migration(
    source: MigrationSource, settings: AppSettings, listener: Callable[[PreviewResult], None]
) -> AdoptionReport:
    """What adopting everything in `source` would write; nothing is written."""
    async with open_preview(source.settings(settings)) as session:
        slots = asyncio.Semaphore(MAX_CONCURRENT)

        async def adopt(ref: ResourceRef) -> ResourceAdoption:
            async with slots:
                with on_behalf_of(ref, failed=False):
                    found = await preview_adoption(ref, session.engine)
            listener(found.found)
            return found

        refs = [ref for ref in await managed_refs(session.engine) if _is_config_connectors(ref)]
        each = await asyncio.gather(*map(adopt, refs))
        return AdoptionReport(tuple(each), tuple(sorted(set(map(str, session.blocked_writes.writes)))))


@asynccontextmanager
async def _config_connector(source: MigrationSource, settings: AppSettings) -> AsyncIterator[ConfigConnector]:
    client = KubernetesClient(connection_from_environment(settings.environment, source.context))
    try:
        yield ConfigConnector(client)
    finally:
        await client.close()


async def config_connector_state(source: MigrationSource, settings: AppSettings) -> ConfigConnectorMode:
    """Whether Config Connector's controller runs in the namespace."""
    assert source.namespace is not None
    async with _config_connector(source, settings) as theirs:
        return await theirs.controller(source.namespace)


async def stop_config_connector(source: MigrationSource, settings: AppSettings) -> ConfigConnectorMode:
    """Pauses Config Connector in the namespace, and returns its mode of before; UserError when it cannot be paused.

    If the resources move to another store, they are abandoned first: deleting them there leaves their objects alone.
    """
    assert source.namespace is not None
    async with _config_connector(source, settings) as theirs:
        before = await theirs.controller(source.namespace)
        if before is ConfigConnectorMode.CLUSTER_WIDE:
            raise UserError(
                f"one controller of Config Connector works for the whole cluster, and cannot be paused for "
                f"{source.namespace} alone: switch it to namespaced mode first, then hand over"
            )
        if not is_same_store(source, settings):
            await _abandon(source, settings)
        if before is ConfigConnectorMode.WORKS:
            await theirs.pause(source.namespace)
            if await theirs.controller(source.namespace) is not ConfigConnectorMode.PAUSED:
                raise UserError(
                    f"Config Connector goes on in {source.namespace}, though it was told to pause: another writer puts "
                    "its ConfigConnectorContext back; pause it there, then hand over"
                )
        return before


def is_same_store(source: MigrationSource, settings: AppSettings) -> bool:
    """Whether the resources stay where they are: Config Connector's cluster is our store, too."""
    theirs = source.settings(settings).store.partition("?")[0]
    return is_shared_store(settings) and settings.store.partition("?")[0] == theirs


async def _abandon(source: MigrationSource, settings: AppSettings) -> None:
    """Sets the deletion policy of all resources: from now on their deletion leaves the objects alone."""
    async with open_engine(source.settings(settings), StoreAccess.WRITE) as engine:
        for one in await _resources(engine):
            if one.annotations.get(DELETION_POLICY) != _ABANDON:
                await engine.store.annotate(one, {DELETION_POLICY: _ABANDON, _MARK: "true"})


async def require_no_conflicts(source: MigrationSource, settings: AppSettings) -> None:
    """UserError for a resource that our store declares differently, or that is being deleted in either store.

    It is called before anything is paused: a paused controller would never finish a deletion.
    """
    async with open_engine(source.settings(settings), StoreAccess.READ) as engine:
        theirs = await _resources(engine)
    if is_same_store(source, settings):
        return
    async with open_engine(settings, StoreAccess.READ) as ours:
        for one in theirs:
            await _require_same(manifest_of(_without_migration_marks(one)), ours)


async def take_over(source: MigrationSource, settings: AppSettings) -> Sequence[ResourceRef]:
    """Declares the resources in our store, with the Secrets that they refer to; idempotent.

    Resources that an earlier export paused are resumed.
    """
    if is_same_store(source, settings):
        async with open_engine(source.settings(settings), StoreAccess.WRITE) as engine:
            found = await _resources(engine)
            for one in found:
                await resume_after_export(one, engine.store)
            return [one.ref for one in found]
    async with open_engine(source.settings(settings), StoreAccess.READ) as engine:
        objects, resources = await gather_export(await _resources(engine), engine)
    async with open_engine(settings, StoreAccess.WRITE) as ours:
        for one in (*(item.resource for item in objects), *(item.resource for item in resources)):
            await _declare(one, ours)
    return [item.ref for item in resources]


async def finish_migration(source: MigrationSource, settings: AppSettings) -> Sequence[ResourceRef]:
    """Removes Config Connector's finalizers in the namespace, once it is uninstalled; idempotent.

    If the resources are in another store by now, those in the cluster are deleted; their objects stay.
    """
    assert source.namespace is not None
    async with (
        _config_connector(source, settings) as theirs,
        open_engine(source.settings(settings), StoreAccess.WRITE) as engine,
    ):
        if await theirs.controller(source.namespace) is not ConfigConnectorMode.ABSENT:
            raise UserError(
                f"Config Connector is still there for {source.namespace}: uninstall it first, and keep its "
                "CustomResourceDefinitions, for they are ours by now; then finish"
            )
        held = [one for one in await _all_resources(engine) if {DELETION_DEFENDER, FINALIZER} & set(one.finalizers)]
        await _require_kinds(held, theirs, engine)
        if is_same_store(source, settings):
            return await _remove_defenders(held, engine)
        async with open_engine(settings, StoreAccess.READ) as ours:
            await _require_declared(held, ours)
        return await _delete_resources(held, engine)


async def _require_kinds(held: Sequence[Resource], theirs: ConfigConnector, engine: EngineContext) -> None:
    """UserError while a CustomResourceDefinition is being deleted: only finalizers save the objects then."""
    for key in sorted({(one.ref.group, one.ref.kind) for one in held}):
        definition = f"{plural_of(engine.kinds[key])}.{key[0]}"
        if await theirs.is_being_deleted(definition):
            raise UserError(
                f"the CustomResourceDefinition {definition} is being deleted, and with it every {key[1]}. So that no "
                f"object is deleted, annotate them with {DELETION_POLICY}: {_ABANDON}; then take "
                f"{DELETION_DEFENDER} off by hand"
            )


async def _require_declared(held: Sequence[Resource], ours: EngineContext) -> None:
    for one in held:
        if await ours.store.get(one.ref) is None:
            raise UserError(f"{one.ref} is not declared in our store: hand over first, then finish")


async def _remove_defenders(held: Sequence[Resource], engine: EngineContext) -> Sequence[ResourceRef]:
    defended = [one for one in held if DELETION_DEFENDER in one.finalizers]
    for one in defended:
        await engine.store.set_finalizers(one, tuple(name for name in one.finalizers if name != DELETION_DEFENDER))
    return [one.ref for one in defended]


async def _delete_resources(held: Sequence[Resource], engine: EngineContext) -> Sequence[ResourceRef]:
    for one in held:
        # No controller is left there that would remove the finalizers.
        rest = tuple(name for name in one.finalizers if name not in (DELETION_DEFENDER, FINALIZER))
        if await engine.store.set_finalizers(one, rest) is not None:
            await engine.store.delete(one.ref)
    return [one.ref for one in held]


async def _declare(resource: Resource, ours: EngineContext) -> None:
    manifest = manifest_of(_without_migration_marks(resource))
    await _require_same(manifest, ours)
    await resume_after_export(await ours.store.apply(manifest), ours.store)


async def _require_same(manifest: JsonObject, ours: EngineContext) -> None:
    new = Resource(manifest)
    there = await ours.store.get(new.ref)
    if there is not None and there.is_deleting:
        raise UserError(f"{new.ref} is being deleted here: wait until it is gone, or name a store, then hand over")
    if there is not None and there.author_digest != new.author_digest:
        raise UserError(f"{new.ref} is declared here already, and otherwise: delete one of the two, or name a store")


def _without_migration_marks(resource: Resource) -> Resource:
    """The resource without the deletion policy that the migration set."""
    metadata = resource.document["metadata"]
    assert isinstance(metadata, dict)
    ours = (_MARK, DELETION_POLICY) if _MARK in resource.annotations else ()
    annotations = {name: text for name, text in resource.annotations.items() if name not in ours}
    return Resource({**resource.document, "metadata": {**metadata, "annotations": annotations}})


async def _all_resources(engine: EngineContext) -> list[Resource]:
    listing = await engine.store.list()
    return [
        one
        for one in listing.resources
        if _is_config_connectors(one.ref) and (one.ref.group, one.ref.kind) in engine.kinds
    ]


def _is_config_connectors(ref: ResourceRef) -> bool:
    return ref.group.endswith(_GROUPS)


async def _resources(engine: EngineContext) -> list[Resource]:
    found = await _all_resources(engine)
    going = [str(one.ref) for one in found if one.is_deleting]
    if going:
        raise UserError(f"{going[0]} is being deleted there: wait until it is gone, then hand over")
    return found
