"""The Kubernetes store: resources are custom resources of a cluster.

Authors own their fields by server-side apply. The engine writes the status through its subresource, and finalizers
and its own annotations by patches with optimistic concurrency. The only specs it writes are those of objects that an
owner generates: each is created, or replaced as a whole over the revision that was read.

A controller acts for tenants: objects that are not of our kinds are read, and all objects of owners written, as a
ServiceAccount of the namespace that they are in.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import Discovery
from setpoint.clients.kubernetes.requests import ApiWriteOptions, PatchType, Representation
from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients, ServiceAccountName
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.ports import (
    EVERYTHING,
    ChildWrite,
    Clock,
    DerivedStoreOperations,
    EventRecord,
    Lease,
    ResourceChange,
    ResourceList,
    ResourceQuery,
    ResourceUpdate,
)
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.reports import HistoryEntry
from setpoint.engine.tenancy.tenants import DEFAULT_SERVICE_ACCOUNT, NAMESPACE
from setpoint.errors import KindNotServed, ManifestInvalid, RemoteConflict, StoreError, WriteConflict
from setpoint.stores.kubernetes.bookmarks import from_revision
from setpoint.stores.kubernetes.cache import ObjectCache, OwnWrites
from setpoint.stores.kubernetes.errors import author_errors, object_errors, other_conflict, store_errors, tenant_errors
from setpoint.stores.kubernetes.events import EventRecorder
from setpoint.stores.kubernetes.leases import LeaseClient, LeaseNotes, leases_of
from setpoint.stores.kubernetes.list_watch import CLOSED, MultiKindLister, MultiKindWatch, decode_written
from setpoint.stores.kubernetes.objects import ClusterResource, ObjectState, decode_object, uid_of_deleted
from setpoint.stores.kubernetes.served_definitions import ServedDefinitions
from setpoint.stores.kubernetes.served_kinds import ClusterKinds, ClusterScope, ServedKind, UnservedKinds
from setpoint.stores.kubernetes.write_bodies import (
    AUTHOR_WRITE,
    ENGINE_WRITE,
    STATUS_WRITE,
    apply_body,
    authored_version,
    last_manager_of,
    metadata_changes,
    metadata_patch,
    read_applicable,
    replacement_body,
    require_may_apply,
    status_patch,
)
from setpoint.stores.mutations import already_exists, changed_since_read, child_refusals


class KubernetesStore(DerivedStoreOperations):
    """A Store in a cluster. With a cache, reads of watched kinds send no request."""

    def __init__(
        self,
        client: KubernetesClient,
        clock: Clock,
        cluster_scope: ClusterScope,
        cache: ObjectCache | None = None,
        accounts: ServiceAccountClients | None = None,
    ) -> None:
        self._client = client
        # None for a command, which acts as its user.
        self._accounts = accounts
        self._scope = cluster_scope
        self._cache = cache
        self._discovery = Discovery(client)
        self._kinds = ClusterKinds(cluster_scope, self._discovery)
        self._is_open, self._watches = True, set[MultiKindWatch]()
        self._written, self._clock = OwnWrites(), clock
        self.definitions = ServedDefinitions(client, cluster_scope.kinds.values(), clock, cluster_scope.unhandled)
        self._unserved = UnservedKinds(is_watching=cache is not None)
        self._lister = MultiKindLister(client, cluster_scope, cache, self._unserved)
        self._events = EventRecorder(client, cluster_scope, clock)
        self.kept_history = self._events.history
        self._leases = LeaseClient(client, clock, cluster_scope.leases)
        self.ledgers = LeaseNotes(client, cluster_scope.leases)
        self._others = tuple(LeaseClient(client, clock, namespace) for namespace in cluster_scope.others)

    @property
    def collects(self) -> bool:
        """See Store."""
        return True

    @property
    def unserved(self) -> frozenset[GroupKind]:
        """See PartlyServedStore."""
        return self._unserved.names

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        self._require_open()
        is_watched = self._cache is not None and self._cache.knows(ref.group_kind)
        kept = self._cache.get(ref) if self._cache is not None and is_watched else None
        if kept is None and (not is_watched or ref.group_kind == NAMESPACE):
            # Kinds are watched one by one: a resource may be seen before its new Namespace is.
            kept = await self._read(ref)
        return None if kept is None else ClusterResource(kept)

    async def refresh(self, refs: Sequence[ResourceRef]) -> None:
        """See Store."""
        self._require_open()
        for ref in refs if self._cache is not None else ():
            if (found := await self._read(ref)) is not None:
                self._keep(found)

    async def all_in(self, namespace: str, kind: GroupKind) -> tuple[Resource, ...]:
        """Every object of a kind in a namespace; of a kind that is watched and enumerated, without a request."""
        self._require_open()
        if self._scope.namespace not in (None, namespace):
            return ()
        if self._cache is not None and self._cache.knows(kind):
            return tuple(ClusterResource(kept) for kept in self._cache.all_in(kind, namespace))
        return (await self.list(ResourceQuery(*kind, namespace))).resources

    async def field_manager(self, resource: Resource, path: Path) -> str:
        """See FieldManagerStore."""
        with store_errors():
            raw = await self._client.get(self._kind_of(resource.ref).one(resource.ref))
        return "" if raw is None else last_manager_of(raw, path)

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        """See Store."""
        self._require_open()
        with store_errors():
            await self._scope.discover(query, self._discovery, self._unserved)
            return await self._lister.whole(query)

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        """See Store."""
        self._require_open()
        with store_errors():
            if self._cache is not None and query == EVERYTHING:
                await self.definitions.refresh()
            await self._scope.discover(query, self._discovery, self._unserved)
            async with aclosing(self._lister.pages(query, size)) as pages:
                async for page in pages:
                    yield page

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """See Store."""
        self._require_open()
        names = [kind.name for kind in self._scope.kinds_for(query)]
        positions = from_revision(since, names)
        watch = MultiKindWatch(self._client, self._scope, query, self._unserved, self._clock, self._written)
        self._watches.add(watch)
        # Only a watch of everything keeps the cache complete.
        cache = self._cache if query == EVERYTHING else None
        if cache is not None:
            cache.begin(self._scope.cached)
        try:
            async with aclosing(watch.events(positions)) as events:
                async for event, kept in events:
                    if cache is not None:
                        cache.observe(event.change, kept)
                    yield event
        finally:
            self._watches.discard(watch)
            if cache is not None:
                cache.end(self._scope.cached)

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def apply(self, manifest: JsonObject) -> Resource:
        """See Store."""
        kind, raw = await self._applied(manifest, AUTHOR_WRITE)
        return self._seen(raw, kind)

    async def dry_run(self, manifest: JsonObject) -> Resource:
        """See DryRunStore."""
        kind, raw = await self._applied(manifest, replace(AUTHOR_WRITE, dry_run=True))
        return ClusterResource(decode_object(raw, kind.api_version, kind.kind))

    async def _applied(self, manifest: JsonObject, options: ApiWriteOptions) -> tuple[ServedKind, bytes]:
        self._require_open()
        authored = read_applicable(manifest, self._scope.types)
        self._scope.require(authored.ref)
        kind = self._kind_of(authored.ref)
        with store_errors(kind):
            present = await self._client.get(kind.one(authored.ref))
        if present is not None:
            require_may_apply(authored, ClusterResource(decode_object(present, kind.api_version, kind.kind)))
        endpoint = replace(kind.one(authored.ref), version=authored_version(authored))
        body = apply_body(authored, endpoint, present)
        with author_errors(authored.ref):
            return kind, await self._client.apply(endpoint, body, options, force=True)

    async def create(self, document: JsonObject) -> Resource:
        """See Store."""
        self._require_open()
        authored = read_applicable(document)
        with store_errors():
            kind = await self._kinds.in_version(authored.ref, authored_version(authored))
        ref = authored.ref if kind.namespaced else authored.ref._replace(namespace="")
        if kind.namespaced:
            self._scope.require(ref)
        client = await self._client_of_tenant(ref)
        with object_errors(ref):
            try:
                raw = await client.create(kind.one(ref), apply_body(authored, kind.one(ref)), ENGINE_WRITE)
            except RemoteConflict as error:
                raise await self._taken(ref, error) from error
        return self._seen(raw, kind)

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        """See Store."""
        self._require_open()
        wanted = replacement_body(seen, document)
        if wanted is None:
            return seen
        with store_errors():
            kind = await self._kinds.in_version(seen.ref, str(wanted["apiVersion"]).rpartition("/")[2])
        client = await self._client_of_tenant(seen.ref)
        with object_errors(seen.ref):
            try:
                return self._seen(await client.replace(kind.one(seen.ref), wanted, ENGINE_WRITE), kind)
            except RemoteConflict as error:
                raise await self._lost(seen, error) from error

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        """See Store."""
        written: list[Resource] = []
        for index, one in enumerate(writes):
            with child_refusals(index):
                write = self.create(one.document) if one.seen is None else self.replace(one.seen, one.document)
                written.append(await write)
        return tuple(written)

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """See Store."""
        self._require_open()
        after = await self._update_metadata(resource, metadata_changes(resource, update))
        if after is not None and update.status is not None and not same(update.status, after.status):
            after = await self._patch(after, status_patch(after, update.status), PatchType.JSON, "status")
        self._events.record_update(resource.ref, update)
        if after is not None and update.status is not None:
            self.definitions.require_kept(self._kind_of(after.ref), after.ref, update.status, after.status)
        return after

    async def _update_metadata(self, resource: Resource, changes: Mapping[str, Json]) -> Resource | None:
        """The resource with these members of its metadata; None when its last finalizer is gone."""
        if not changes:
            return resource
        after = await self._patch(resource, metadata_patch(resource, changes), PatchType.MERGE)
        if "finalizers" in changes and after.is_deleting and not after.finalizers:
            self._drop(after.ref, after.uid)
            return None
        return after

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        self._require_open()
        client = await self._client_of_tenant(ref)
        with tenant_errors():
            kind = await self._kinds.of(ref)
            answer = None if kind is None else await client.delete(kind.one(ref))
        if answer is None or kind is None:
            return None
        if (gone := uid_of_deleted(answer)) is not None:
            self._drop(ref, gone)
            return None
        marked = decode_object(answer, kind.api_version, kind.kind)
        resource = ClusterResource(marked)
        if not resource.finalizers:
            return None
        self._keep(marked)
        return resource

    # --- Event records and leases -------------------------------------------------------------------------------------

    async def record_event(self, event: EventRecord) -> None:
        """See Store."""
        self._require_open()
        self._events.record(event)

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        """See Store."""
        self._require_open()
        with store_errors():
            return await self._events.events(ref)

    async def history(self, ref: ResourceRef, *, before: int | None = None, most: int = 100) -> Sequence[HistoryEntry]:
        """See HistoryStore: what this process has done since it began."""
        return self.kept_history.of(ref, before, most)

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store."""
        self._require_open()
        with store_errors():
            return await self._leases.acquire(name, holder, seconds)

    async def release(self, lease: Lease) -> None:
        """See Store."""
        self._require_open()
        with store_errors():
            await self._leases.release(lease)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """See Store."""
        self._require_open()
        with store_errors():
            return await leases_of((self._leases, *self._others), prefix)

    async def close(self) -> None:
        """See Store."""
        self._is_open = False
        for watch in tuple(self._watches):
            await watch.close()
        await self._events.close()
        await self._client.close()

    # --- Internals ----------------------------------------------------------------------------------------------------

    async def _client_of_tenant(self, ref: ResourceRef) -> KubernetesClient:
        """The client that acts for the tenant of `ref`; ServiceAccountNotFound where an administrator set up none."""
        if self._accounts is None:
            return self._client
        if not ref.namespace:
            raise ManifestInvalid(f"{ref}: objects outside of namespaces belong to no tenant, and are not written")
        with tenant_errors():
            return await self._accounts.acting_as(ServiceAccountName(ref.namespace, DEFAULT_SERVICE_ACCOUNT))

    async def _read(self, ref: ResourceRef) -> ObjectState | None:
        with store_errors():
            kind = await self._kinds.of(ref)
        if kind is None:
            return None
        # A cluster-scoped source of an owner is named without a namespace; any other reference has one.
        is_source = not kind.namespaced and not ref.namespace and kind.name in self._scope.kinds
        is_ours = kind.name in self._scope.cached or is_source
        client = self._client if is_ours else await self._client_of_tenant(ref)
        with tenant_errors():
            try:
                raw = await client.get(kind.one(ref))
            except KindNotServed:
                if not kind.is_optional:
                    raise
                self._unserved.add(kind)
                return None
        return None if raw is None else decode_object(raw, kind.api_version, kind.kind)

    async def _taken(self, ref: ResourceRef, error: RemoteConflict) -> WriteConflict:
        there = await self._read(ref)
        return other_conflict(error) if there is None else already_exists(ClusterResource(there))

    async def _lost(self, seen: Resource, error: RemoteConflict) -> WriteConflict:
        now = await self._read(seen.ref)
        if now is not None and (now.uid, now.revision) == (seen.uid, seen.revision):
            return other_conflict(error)
        return changed_since_read(seen, None if now is None else ClusterResource(now))

    async def _patch(self, seen: Resource, body: Json, meaning: PatchType, subresource: str | None = None) -> Resource:
        one = (kind := self._kind_of(seen.ref)).one(seen.ref)
        endpoint, options = (one.status, STATUS_WRITE) if subresource else (one, ENGINE_WRITE)
        if self._watches and kind.form is Representation.WHOLE:
            self._written.begin(seen.ref)
        with store_errors():
            try:
                return self._seen(await self._client.patch(endpoint, body, meaning, options), kind)
            except RemoteConflict as error:
                raise await self._lost(seen, error) from error

    def _seen(self, raw: bytes, kind: ServedKind) -> Resource:
        resource = decode_written(raw, kind, self._written)
        self._keep(resource.kept)
        return resource

    def _keep(self, kept: ObjectState) -> None:
        if self._cache is not None and (kept.ref.group, kept.ref.kind) in self._scope.cached:
            self._cache.put(kept)

    def _drop(self, ref: ResourceRef, uid: str) -> None:
        if self._cache is not None:
            self._cache.drop(ref, uid)

    def _kind_of(self, ref: ResourceRef) -> ServedKind:
        found = self._scope.kinds.get((ref.group, ref.kind))
        if found is None:
            raise StoreError(f"{ref}: no kind {ref.kind} is kept in this cluster")
        return found

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError(CLOSED)
