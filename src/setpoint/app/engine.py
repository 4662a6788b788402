"""The engine of a process: stores and clients are opened for it, and closed at the end."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from setpoint.app.cluster import OpenedStore, handled_catalogue, open_cluster_store, recorded_tenancy
from setpoint.app.kinds import all_plugins, catalogue_kinds, kinds_with, owners_with, types_of_manifests
from setpoint.app.settings import (
    DIRECT_WIRING,
    GOOGLE,
    OTHER_CLIENTS,
    SERVICE_PREFIX,
    AppSettings,
    ClientWiring,
    StoreAccess,
    history_limits,
    is_shared_store,
    store_path,
)
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings, settings_from
from setpoint.clients.http import HttpClient, HttpInterceptor, intercepted_by
from setpoint.clients.http_transport import limits_from
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.write_guard import BlockedWrites, WriteGuard, process_guarded_by
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.deferred_mapping import joined
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType, secret_fields_of
from setpoint.engine.ports import DryRunStore, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import COOKIE_ANNOTATION
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.stores.journal import StoreLimits
from setpoint.stores.manifests import read_manifest
from setpoint.stores.memory import MemoryStore

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.kind.kind_context import KindContext

_UNREACHABLE: Final = "http://recorded.invalid"


@dataclass(frozen=True, slots=True)
class OpenedEngine:
    """The engine, the rate limits of its clients, and figures for metrics."""

    engine: EngineContext
    budgets: QuotaBudgets
    # The number of requests by method, host and result; one mapping for each client.
    requests: Sequence[Mapping[tuple[str, str, str], int]] = ()
    # The default cluster, for resources that name none; empty before one was used.
    cluster: Callable[[], str] = str
    # Whether other processes may write to the same store.
    shared: bool = False


@asynccontextmanager
async def open_engine(settings: AppSettings, access: StoreAccess) -> AsyncIterator[EngineContext]:
    """The engine for one command: store and clients are opened, and closed at the end."""
    async with open_app(settings, access) as opened:
        yield opened.engine


@asynccontextmanager
async def open_engine_read_only(
    settings: AppSettings, blocked_writes: BlockedWrites, store: Store | None = None, *, guards_threads: bool = True
) -> AsyncIterator[EngineContext]:
    """The engine with a write guard: every write to a cloud or a cluster is blocked.

    `store` is one that is open already. `guards_threads`: threads that start meanwhile are guarded, too, which takes a
    process that does nothing else.
    """
    guard = process_guarded_by(blocked_writes, covers_threads=guards_threads)
    with guard, intercepted_by(read_only(OTHER_CLIENTS, blocked_writes)):
        wiring = ClientWiring(lambda client: read_only(client, blocked_writes), opened=store)
        async with open_app(settings, StoreAccess.READ, wiring) as opened:
            yield opened.engine


def read_only(client: str, blocked_writes: BlockedWrites, behind: HttpInterceptor | None = None) -> WriteGuard:
    """The write guard of a client: only reads pass, and to a cluster dry runs as well."""
    is_cluster = client not in (GOOGLE, OTHER_CLIENTS) and not client.startswith(SERVICE_PREFIX)
    return WriteGuard(client, blocked_writes, is_cluster=is_cluster, behind=behind)


@asynccontextmanager
async def open_app(
    settings: AppSettings, access: StoreAccess, wiring: ClientWiring = DIRECT_WIRING
) -> AsyncIterator[OpenedEngine]:
    """The same with rate limits and request counts, for a long-running process."""
    async with AsyncExitStack() as stack:
        http = HttpClient(interceptor=wiring.interceptor(GOOGLE), limits=limits_from(settings.environment))
        google = GoogleClient(http, _google(settings, wiring), requires_tenant=_has_tenants(settings, wiring))
        stack.push_async_callback(google.close)
        counts: list[Mapping[tuple[str, str, str], int]] = [http.counts]
        clusters = Clusters(
            settings.environment,
            budgets=google.budgets,
            counted=counts.append,
            interceptor=wiring.interceptor,
            unopened=wiring.unopened,
        )
        stack.push_async_callback(clusters.close)
        environment = _environment(settings, wiring)
        kinds, owners = kinds_with(google, clusters, settings.clock, environment), owners_with(environment)
        names = await _catalogue_names(settings, access, wiring, clusters)
        kinds = joined(kinds, catalogue_kinds(google, environment, names))
        plugins, context = all_plugins(), _PluginContext(settings, access, wiring, google.budgets, counts.append)
        if plugins:
            stack.push_async_callback(context.close)
            kinds, owners = joined(kinds, plugins.kinds(context)), joined(owners, plugins.owners(context))
        store, tenancy = await _open_store(settings, access, wiring, clusters, joined(kinds, owners))
        if clusters.own is not None:
            stack.push_async_callback(clusters.own.close)
        clusters.secret = context.read_secret = store.get
        if wiring.opened is None:
            stack.push_async_callback(store.close)
        engine = EngineContext(store, settings.clock, kinds, settings.cookies, owners=owners, tenancy=tenancy)
        yield OpenedEngine(
            engine, google.budgets, counts, lambda: clusters.default_cluster, shared=is_shared_store(settings)
        )


@dataclass(slots=True)
class _PluginContext:
    """Makes the context of the kinds of plug-ins, once one of them is loaded."""

    settings: AppSettings
    access: StoreAccess
    wiring: ClientWiring
    budgets: QuotaBudgets
    counted: Callable[[Mapping[tuple[str, str, str], int]], None]
    read_secret: Callable[[ResourceRef], Awaitable[Resource | None]] | None = None
    _made: "KindContext | None" = None

    def __call__(self) -> "KindContext":
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> "KindContext":
        from setpoint.kind.kind_context import KindContext, KindServices

        settings, wiring = self.settings, self.wiring
        services = KindServices(
            self.budgets,
            limits=limits_from(settings.environment),
            interceptor=lambda service: wiring.interceptor(f"{SERVICE_PREFIX}{service}"),
            counted=self.counted,
            read_secret=self._read_secret,
        )
        return KindContext(
            _environment(settings, wiring),
            settings.clock,
            services,
            is_read_only=self.access in (StoreAccess.READ, StoreAccess.PREVIEW),
            is_recorded=wiring.recorded is not None,
            credentials=settings.environment,
        )

    async def _read_secret(self, ref: ResourceRef) -> Resource | None:
        assert self.read_secret is not None
        return await self.read_secret(ref)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()


async def _open_store(
    settings: AppSettings,
    access: StoreAccess,
    wiring: ClientWiring,
    clusters: Clusters,
    resource_types: Mapping[GroupKind, ResourceType],
) -> OpenedStore:
    if wiring.recorded is not None:
        clusters.recorded, clusters.default_cluster = _unreachable_connection(), wiring.cluster
        return OpenedStore(wiring.recorded, recorded_tenancy(wiring.recorded, wiring, settings, access))
    if wiring.opened is not None:
        return OpenedStore(wiring.opened)
    if is_shared_store(settings):
        return open_cluster_store(settings, access, wiring, clusters, resource_types)
    return OpenedStore(await _open_embedded(settings, access, resource_types))


async def _catalogue_names(
    settings: AppSettings, access: StoreAccess, wiring: ClientWiring, clusters: Clusters
) -> Collection[GroupKind] | None:
    """The kinds of the catalogue that are handled; None for all of them.

    A controller watches each of its kinds: in a cluster it handles those that are served there.
    """
    is_other_store = wiring.recorded is not None or wiring.opened is not None
    if access is not StoreAccess.RUN or is_other_store or not is_shared_store(settings):
        return None
    return await handled_catalogue(settings, wiring, clusters)


def _has_tenants(settings: AppSettings, wiring: ClientWiring) -> bool:
    """Whether nothing is sent but on behalf of a tenant: a store that is not in a cluster belongs to one person."""
    if wiring.recorded is not None:
        return wiring.recorded_tenancy is not None
    return is_shared_store(settings)


def _environment(settings: AppSettings, wiring: ClientWiring) -> Mapping[str, str]:
    return settings.environment if wiring.environment is None else wiring.environment


def _unreachable_connection() -> "ClusterConnection":
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection

    return ClusterConnection("recorded", _UNREACHABLE)


def _google(settings: AppSettings, wiring: ClientWiring) -> GoogleSettings:
    if wiring.recorded is not None:
        return GoogleSettings(_UNREACHABLE, _UNREACHABLE, GoogleAuth.ANONYMOUS, base=_UNREACHABLE)
    return settings_from(settings.environment)


async def _open_embedded(
    settings: AppSettings, access: StoreAccess, resource_types: Mapping[GroupKind, ResourceType]
) -> Store:
    clock, path, types = settings.clock, store_path(settings.store), types_of_manifests(resource_types)
    entries, days = history_limits(settings.environment)
    limits = StoreLimits(history_per_resource=entries, history_days=days)
    # Without a file nothing has been declared yet: an empty store to read from, without creating one.
    if path is None or (access is StoreAccess.READ and not path.exists()):
        return MemoryStore(clock, _new_uid, limits, types=types)
    # Imported where there is a file: a controller in a cluster has none.
    from setpoint.stores.sqlite.database_file import access_of_others
    from setpoint.stores.sqlite.store import OpenMode, open_sqlite

    exposed = access_of_others(path.absolute().resolve())
    mode = OpenMode.READ if access is StoreAccess.READ else OpenMode.WRITE
    secrets = secret_fields_of(resource_types)
    store = await open_sqlite(path, clock, _new_uid, mode, limits, secrets=secrets, types=types)
    if exposed:
        settings.warn(exposed)
    return store


# --- Manifests that are not applied --------------------------------------------------------------------------------


async def dry_run_apply(manifest: JsonObject, engine: EngineContext) -> Resource:
    """The resource that an apply of `manifest` would result in; an invalid one raises. Nothing is written.

    A cluster answers with the fields of other field managers; elsewhere it is as if the resource were new.
    """
    if isinstance(engine.store, DryRunStore):
        return await engine.store.dry_run(manifest)
    types = types_of_manifests(engine.resource_types)
    return await MemoryStore(engine.clock, _new_uid, secrets=engine.secret_fields, types=types).apply(manifest)


def require_valid(manifest: JsonObject, engine: EngineContext) -> None:
    """ManifestInvalid for a manifest that no store takes: its names, its labels, its version, a member it has not."""
    read_manifest(manifest, types=types_of_manifests(engine.resource_types))


async def overlay_drafts(engine: EngineContext, drafts: Iterable[Resource]) -> EngineContext:
    """The engine as if manifests were applied, given their dry runs: its store is an overlay, which refuses writes."""
    overlay: dict[ResourceRef, Resource] = {}
    for applied in drafts:
        overlay[applied.ref] = _merge_onto_stored(applied, await engine.store.get(applied.ref))
    return replace(engine, store=OverlayStore(engine.store, overlay))


def _merge_onto_stored(applied: Resource, stored: Resource | None) -> Resource:
    """The author's new part, with the status and metadata that the store has."""
    if stored is None:
        return applied
    metadata, before = _tree(applied.document["metadata"]), _tree(stored.document["metadata"])
    kept = {COOKIE_ANNOTATION: stored.annotations.get(COOKIE_ANNOTATION)}
    annotations = {**{key: text for key, text in kept.items() if text is not None}, **applied.annotations}
    # A Secret with new values must count as rotated.
    changed = not same([applied.document.get("data")], [stored.document.get("data")])
    revision = "draft" if changed else stored.revision
    merged = {**before, "labels": dict(applied.labels), "annotations": annotations, "resourceVersion": revision}
    author = {name: value for name, value in applied.document.items() if name not in ("metadata", "status")}
    return Resource({**author, "metadata": {**metadata, **merged}, "status": stored.status})


def _tree(value: object) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


def _new_uid() -> str:
    return str(uuid.uuid4())
