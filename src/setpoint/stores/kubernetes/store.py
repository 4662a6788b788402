"""Resources as custom resources: what authors write is theirs, the status is ours, and the cluster keeps both.

Authors own their fields by server-side apply. The engine writes the status through its subresource, finalizers and its
own annotations by patches, each over the very state that it saw. It writes no spec but those of objects that an owner
makes: each is made new, or put as a whole in the place of the very state that it saw.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace

import msgspec

from setpoint.clients.kube_discovery import Discovery, Served
from setpoint.clients.kube_endpoints import Patch, Write
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.core.canonical import same
from setpoint.core.values import Json
from setpoint.engine.ports import EVERYTHING, Change, Clock, Event, Lease, Listing, Note, Query
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.errors import KindNotServed, RemoteConflict, StoreError, WriteConflict
from setpoint.stores.conflicts import already_there, changed_since
from setpoint.stores.kubernetes.authors import AUTHOR, ENGINE, apply_body, require_open_to, to_apply, version_of
from setpoint.stores.kubernetes.cache import Cache
from setpoint.stores.kubernetes.following import CLOSED, Following
from setpoint.stores.kubernetes.lease_keeping import LeaseKeeper
from setpoint.stores.kubernetes.listing import Lister
from setpoint.stores.kubernetes.note_keeping import NoteKeeper
from setpoint.stores.kubernetes.objects import ClusterResource, Kept, kept_from
from setpoint.stores.kubernetes.positions import from_revision
from setpoint.stores.kubernetes.refusals import author_errors, object_errors, other_conflict, store_errors
from setpoint.stores.kubernetes.replacing import replacement
from setpoint.stores.kubernetes.served import ServedKind, Territory


class KubernetesStore:
    """A Store in a cluster. With a cache, reads of what is watched ask nobody."""

    def __init__(
        self, client: KubernetesClient, clock: Clock, territory: Territory, cache: Cache | None = None
    ) -> None:
        self._client = client
        self._territory = territory
        self._cache = cache
        self._discovery = Discovery(client)
        self._is_open = True
        self._followings: set[Following] = set()
        self._lister = Lister(client, territory, cache)
        self._notes = NoteKeeper(client, territory)
        self._leases = LeaseKeeper(client, clock, territory.leases)
        self._others = tuple(LeaseKeeper(client, clock, namespace) for namespace in territory.others)

    @property
    def collects(self) -> bool:
        """See Store."""
        return True

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        self._require_open()
        if self._cache is not None and self._cache.knows((ref.group, ref.kind)):
            kept = self._cache.get(ref)
        else:
            kept = await self._read(ref)
        return None if kept is None else ClusterResource(kept)

    async def list(self, query: Query = EVERYTHING) -> Listing:
        """See Store."""
        self._require_open()
        with store_errors():
            return await self._lister.whole(query)

    async def pages(self, query: Query = EVERYTHING, size: int = 500) -> AsyncIterator[Listing]:
        """See Store."""
        self._require_open()
        with store_errors():
            async with aclosing(self._lister.pages(query, size)) as pages:
                async for page in pages:
                    yield page

    async def watch(self, since: Revision, query: Query = EVERYTHING) -> AsyncIterator[Event]:
        """See Store."""
        self._require_open()
        names = [kind.name for kind in self._territory.asked_for(query)]
        positions = from_revision(since, names)
        following = Following(self._client, self._territory, query)
        self._followings.add(following)
        # One that is asked for a part only does not see all there is.
        cache = self._cache if query == EVERYTHING else None
        if cache is not None:
            cache.begin(self._territory.cached)
        try:
            async with aclosing(following.events(positions)) as events:
                async for event, kept in events:
                    if cache is not None:
                        _remember(event.change, kept, cache)
                    yield event
        finally:
            self._followings.discard(following)
            if cache is not None:
                cache.end(self._territory.cached)

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def apply(self, manifest: Tree) -> Resource:
        """See Store."""
        kind, raw = await self._applied(manifest, AUTHOR)
        return self._seen(raw, kind)

    async def rehearse(self, manifest: Tree) -> Resource:
        """See Rehearsing."""
        kind, raw = await self._applied(manifest, replace(AUTHOR, dry_run=True))
        return ClusterResource(kept_from(raw, kind.api_version, kind.kind))

    async def _applied(self, manifest: Tree, options: Write) -> tuple[ServedKind, bytes]:
        self._require_open()
        authored = to_apply(manifest)
        self._territory.require(authored.ref)
        kind = self._kind_of(authored.ref)
        with store_errors():
            present = await self._client.get(kind.one(authored.ref))
        if present is not None:
            require_open_to(authored, ClusterResource(kept_from(present, kind.api_version, kind.kind)))
        endpoint = replace(kind.one(authored.ref), version=version_of(authored))
        body = apply_body(authored, endpoint, present)
        with author_errors(authored.ref):
            return kind, await self._client.apply(endpoint, body, options, force=True)

    async def create(self, document: Tree) -> Resource:
        """See Store."""
        self._require_open()
        authored = to_apply(document)
        kind = await self._kind_in(authored.ref, version_of(authored))
        ref = authored.ref if kind.namespaced else authored.ref._replace(namespace="")
        if kind.namespaced:
            self._territory.require(ref)
        with object_errors(ref):
            try:
                raw = await self._client.create(kind.one(ref), apply_body(authored, kind.one(ref)), ENGINE)
            except RemoteConflict as error:
                raise await self._taken(ref, error) from error
        return self._seen(raw, kind)

    async def replace(self, seen: Resource, document: Tree) -> Resource:
        """See Store."""
        self._require_open()
        wanted = replacement(seen, document)
        if wanted is None:
            return seen
        kind = await self._kind_in(seen.ref, str(wanted["apiVersion"]).rpartition("/")[2])
        with object_errors(seen.ref):
            try:
                return self._seen(await self._client.replace(kind.one(seen.ref), wanted, ENGINE), kind)
            except RemoteConflict as error:
                raise await self._lost(seen, error) from error

    async def update_status(self, resource: Resource, status: Tree) -> Resource:
        """See Store."""
        self._require_open()
        if same(status, resource.status):
            return resource
        change: dict[str, Json] = {"op": "add", "path": "/status", "value": dict(status)}
        if not status:
            change = {"op": "remove", "path": "/status"}
        guard: dict[str, Json] = {"op": "replace", "path": "/metadata/resourceVersion", "value": resource.revision}
        return await self._patch(resource, [guard, change], Patch.JSON, "status")

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """See Store."""
        self._require_open()
        wanted = list(dict.fromkeys(finalizers))
        if resource.is_deleting and not set(wanted) <= set(resource.finalizers):
            raise StoreError(f"{resource.ref} is being deleted: finalizers can be taken off, not added")
        if tuple(wanted) == resource.finalizers:
            return resource
        after = await self._patch(resource, _metadata(resource, "finalizers", wanted or None), Patch.MERGE)
        if not (after.is_deleting and not after.finalizers):
            return after
        self._drop(after.ref, after.uid)
        return None

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """See Store."""
        self._require_open()
        changes: dict[str, Json] = {
            key: text for key, text in annotations.items() if resource.annotations.get(key) != text
        }
        if not changes:
            return resource
        return await self._patch(resource, _metadata(resource, "annotations", changes), Patch.MERGE)

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        self._require_open()
        with store_errors():
            kind = await self._any_kind(ref)
            answer = None if kind is None else await self._client.delete(kind.one(ref))
        if answer is None or kind is None:
            return None
        if _kinds.decode(answer).kind == "Status":
            self._drop(ref, _endings.decode(answer).details.uid)
            return None
        marked = kept_from(answer, kind.api_version, kind.kind)
        resource = ClusterResource(marked)
        if not resource.finalizers:
            return None
        self._keep(marked)
        return resource

    # --- Notes and leases ---------------------------------------------------------------------------------------------

    async def note(self, note: Note) -> None:
        """See Store."""
        self._require_open()
        with store_errors():
            await self._notes.note(note)

    async def notes(self, ref: ResourceRef | None = None) -> tuple[Note, ...]:
        """See Store."""
        self._require_open()
        with store_errors():
            return await self._notes.notes(ref)

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
            found = [lease for one in (self._leases, *self._others) for lease in await one.all_of(prefix)]
        return tuple(sorted(found, key=lambda lease: lease.name))

    async def close(self) -> None:
        """See Store."""
        self._is_open = False
        for following in tuple(self._followings):
            await following.close()
        await self._client.close()

    # --- Inside -------------------------------------------------------------------------------------------------------

    async def _read(self, ref: ResourceRef) -> Kept | None:
        with store_errors():
            kind = await self._any_kind(ref)
            raw = None if kind is None else await self._client.get(kind.one(ref))
        return None if raw is None or kind is None else kept_from(raw, kind.api_version, kind.kind)

    async def _any_kind(self, ref: ResourceRef) -> ServedKind | None:
        """A kind, also one that somebody else looks after: what ours refer to may be of any."""
        ours = self._territory.kinds.get((ref.group, ref.kind))
        if ours is not None:
            return ours
        try:
            return _served(await self._discovery.preferred(ref.kind, ref.group))
        except KindNotServed:
            return None

    async def _kind_in(self, ref: ResourceRef, version: str) -> ServedKind:
        """A kind in the version in which an object of it is written."""
        ours = self._territory.kinds.get((ref.group, ref.kind))
        if ours is not None:
            return replace(ours, version=version)
        with store_errors():
            return _served(await self._discovery.find(f"{ref.group}/{version}" if ref.group else version, ref.kind))

    async def _taken(self, ref: ResourceRef, error: RemoteConflict) -> WriteConflict:
        there = await self._read(ref)
        return other_conflict(error) if there is None else already_there(ClusterResource(there))

    async def _lost(self, seen: Resource, error: RemoteConflict) -> WriteConflict:
        now = await self._read(seen.ref)
        if now is not None and (now.uid, now.revision) == (seen.uid, seen.revision):
            return other_conflict(error)
        return changed_since(seen, None if now is None else ClusterResource(now))

    async def _patch(self, seen: Resource, body: Json, meaning: Patch, subresource: str | None = None) -> Resource:
        kind = self._kind_of(seen.ref)
        one = kind.one(seen.ref)
        endpoint = one.status if subresource else one
        with store_errors():
            try:
                return self._seen(await self._client.patch(endpoint, body, meaning, ENGINE), kind)
            except RemoteConflict as error:
                raise await self._lost(seen, error) from error

    def _seen(self, raw: bytes, kind: ServedKind) -> Resource:
        kept = kept_from(raw, kind.api_version, kind.kind)
        self._keep(kept)
        return ClusterResource(kept)

    def _keep(self, kept: Kept) -> None:
        if self._cache is not None and (kept.ref.group, kept.ref.kind) in self._territory.cached:
            self._cache.put(kept)

    def _drop(self, ref: ResourceRef, uid: str) -> None:
        if self._cache is not None:
            self._cache.drop(ref, uid)

    def _kind_of(self, ref: ResourceRef) -> ServedKind:
        found = self._territory.kinds.get((ref.group, ref.kind))
        if found is None:
            raise StoreError(f"{ref}: no kind {ref.kind} is kept in this cluster")
        return found

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError(CLOSED)


def _served(found: Served) -> ServedKind:
    return ServedKind(found.group, found.version, found.kind, found.plural, namespaced=found.namespaced)


class _Kind(msgspec.Struct):
    kind: str = ""


class _Details(msgspec.Struct):
    uid: str = ""


class _Ending(msgspec.Struct):
    """What is told of an object that is gone."""

    details: _Details = msgspec.field(default_factory=_Details)


_kinds, _endings = msgspec.json.Decoder(_Kind), msgspec.json.Decoder(_Ending)


def _metadata(resource: Resource, member: str, value: Json) -> Json:
    """A merge patch of metadata over the very state that was seen."""
    return {"metadata": {"uid": resource.uid, "resourceVersion": resource.revision, member: value}}


def _remember(change: Change, kept: Kept, cache: Cache) -> None:
    if change is Change.DELETED:
        cache.hear_of_end(kept)
    else:
        cache.put(kept)
