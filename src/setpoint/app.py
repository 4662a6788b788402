"""The composition root: the only module that knows every store and kind."""

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings, settings_from
from setpoint.clients.http import HttpClient, HttpInterceptor, intercepted_by
from setpoint.clients.http_transport import limits_from
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.sockets import AddressPolicy, address_policy
from setpoint.clients.write_guard import BlockedWrites, WriteGuard, process_guarded_by
from setpoint.core.secret_fields import SecretFields
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import CookieLocation, EngineContext
from setpoint.engine.kind import AnyKind, DescribedType, ResourceType, find_kind, secret_fields_of
from setpoint.engine.owner import SECRETS, Owner, refers_to_secrets
from setpoint.engine.ports import Clock, DryRunStore, Store, SystemClock
from setpoint.engine.reference_grants import REFERENCE_GRANT, GrantedReferences, ReferenceGrantType
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import COOKIE_ANNOTATION
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.engine.tenancy import NAMESPACE_SECONDS, NamespaceTenants, ReferencePolicy, Tenancy, TenancyMode, Tenant
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.kubernetes_object.clusters import OBJECTS, OWN, Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.trustee.kbs_config.owner import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.database_file import access_of_others
from setpoint.stores.sqlite.store import OpenMode, open_sqlite

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.stores.kubernetes.store import KubernetesStore

DEFAULT_STORE = "sqlite:///.setpoint/state.db"
# How far the tenants of a store in a cluster are kept apart, where no option says so.
TENANCY_VARIABLE: Final = "SETPOINT_TENANCY"


class StoreAccess(StrEnum):
    """What a command needs the store for."""

    READ = "read"
    WRITE = "write"
    # To write for as long as the process runs.
    RUN = "run"


def _ignore_warning(_text: str) -> None:
    """For callers without a terminal."""


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings of the process, from options and the environment."""

    store: str = DEFAULT_STORE
    cookies: CookieLocation = CookieLocation.STATUS
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    # The only kinds that are reconciled; empty for all of them.
    kinds: Sequence[str] = ()
    # For a store in a cluster: where servers of kubeconfigs in Secrets may be, and where not; see `address_policy`.
    allowed_addresses: Sequence[str] = ()
    denied_addresses: Sequence[str] = ()
    # Takes warnings for the operator.
    warn: Callable[[str], None] = _ignore_warning
    # How far the tenants of a store in a cluster are kept apart; without effect on other stores.
    tenancy: TenancyMode = TenancyMode.STRICT


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


# The clients by name: Google's, and that of a store in a cluster.
GOOGLE: Final = "google"
STORE: Final = "store"
# Clients that are not opened here: a plugin's own.
OTHER_CLIENTS: Final = "elsewhere"


def _no_interceptor(_client: str) -> HttpInterceptor | None:
    """Requests pass unchanged."""
    return None


@dataclass(frozen=True, slots=True)
class ClientWiring:
    """How clients are wired: the interceptor of each by name, or a recorded store in place of all of them."""

    interceptor: Callable[[str], HttpInterceptor | None] = _no_interceptor
    # The store of a recorded world; then no service is reached at all.
    recorded: Store | None = None
    # The default cluster, if it is known.
    cluster: str = ""
    # The environment that owners see, in place of the process' own.
    environment: Mapping[str, str] | None = None
    # Of a recorded world with tenants: how far they were kept apart.
    recorded_tenancy: TenancyMode | None = None


DIRECT_WIRING: Final = ClientWiring()
_UNREACHABLE: Final = "http://recorded.invalid"


@asynccontextmanager
async def open_engine(settings: AppSettings, access: StoreAccess) -> AsyncIterator[EngineContext]:
    """The engine for one command: store and clients are opened, and closed at the end."""
    async with open_app(settings, access) as opened:
        yield opened.engine


@asynccontextmanager
async def open_engine_read_only(settings: AppSettings, blocked_writes: BlockedWrites) -> AsyncIterator[EngineContext]:
    """The engine with a write guard: every write to a cloud or a cluster is blocked."""
    with process_guarded_by(blocked_writes), intercepted_by(read_only(OTHER_CLIENTS, blocked_writes)):
        async with open_app(
            settings, StoreAccess.READ, ClientWiring(lambda client: read_only(client, blocked_writes))
        ) as opened:
            yield opened.engine


def read_only(client: str, blocked_writes: BlockedWrites, behind: HttpInterceptor | None = None) -> WriteGuard:
    """The write guard of a client: only reads pass, and to a cluster dry runs as well."""
    return WriteGuard(client, blocked_writes, is_cluster=client not in (GOOGLE, OTHER_CLIENTS), behind=behind)


@asynccontextmanager
async def open_app(
    settings: AppSettings, access: StoreAccess, wiring: ClientWiring = DIRECT_WIRING
) -> AsyncIterator[OpenedEngine]:
    """The same with rate limits and request counts, for a long-running process."""
    async with AsyncExitStack() as stack:
        http = HttpClient(interceptor=wiring.interceptor(GOOGLE), limits=limits_from(settings.environment))
        mode = _tenancy_mode(settings, wiring)
        google = GoogleClient(http, _google(settings, wiring), requires_tenant=mode is not None)
        stack.push_async_callback(google.close)
        counts = [http.counts]
        clusters = Clusters(
            settings.environment, budgets=google.budgets, counted=counts.append, interceptor=wiring.interceptor
        )
        stack.push_async_callback(clusters.close)
        kinds, owners = _kinds(google, clusters, settings.clock), _owners(_environment(settings, wiring))
        references: ReferencePolicy = _EveryReference()
        if wiring.recorded is not None:
            clusters.recorded, clusters.default_cluster = _unreachable_connection(), wiring.cluster
            store = wiring.recorded
        elif is_shared_store(settings):
            client = _cluster_client(settings, google.budgets, wiring.interceptor(STORE))
            counts.append(client.http.counts)
            # Calls for objects have budgets of their own: what a tenant makes fail does not slow down the store.
            clusters.own = (
                client
                if wiring is DIRECT_WIRING
                else _cluster_client(settings, google.budgets, wiring.interceptor(OWN))
            ).in_scope(OBJECTS)
            clusters.addresses = _tenant_addresses(settings, client)
            stack.push_async_callback(clusters.own.close)
            clusters.accounts = _accounts(settings, client, access)
            clusters.own_kinds, clusters.default_cluster = {*kinds, *owners, REFERENCE_GRANT}, OWN
            store = cluster = _open_cluster(settings, client, {**kinds, **owners}, access, clusters.accounts)
            references = GrantedReferences(partial(cluster.all_in, kind=REFERENCE_GRANT))
        else:
            store = await _open_store(settings, access, secret_fields_of((*kinds.values(), *owners.values())))
        clusters.secret = store.get
        stack.push_async_callback(store.close)
        tenancy = _tenancy(store, mode, settings, access, references) if mode else _recorded_tenancy(wiring)
        engine = EngineContext(store, settings.clock, kinds, settings.cookies, owners=owners, tenancy=tenancy)
        yield OpenedEngine(
            engine, google.budgets, counts, lambda: clusters.default_cluster, shared=is_shared_store(settings)
        )


def _tenancy_mode(settings: AppSettings, wiring: ClientWiring) -> TenancyMode | None:
    """How far tenants are kept apart; None for a store that belongs to one person."""
    if wiring.recorded is not None:
        return wiring.recorded_tenancy
    return settings.tenancy if is_shared_store(settings) else None


def _tenancy(
    store: Store, mode: TenancyMode, settings: AppSettings, access: StoreAccess, references: ReferencePolicy
) -> Tenancy:
    from setpoint.stores.kubernetes.factory import cluster_address_in

    # A process for the whole cluster watches Namespaces; any other reads those that it needs now and then.
    is_watched = access is StoreAccess.RUN and cluster_address_in(settings.store, {}).namespace is None
    tenants = NamespaceTenants(store.get, mode, settings.clock, 0.0 if is_watched else NAMESPACE_SECONDS)
    return Tenancy(tenants.tenant_of, references)


def _recorded_tenancy(wiring: ClientWiring) -> Tenancy | None:
    """The tenants of a world that was recorded in a cluster before there were any: by their names alone."""
    is_cluster = wiring.recorded is not None and wiring.cluster == OWN
    return Tenancy(_tenant_by_name, _EveryReference()) if is_cluster else None


def _environment(settings: AppSettings, wiring: ClientWiring) -> Mapping[str, str]:
    return settings.environment if wiring.environment is None else wiring.environment


def _unreachable_connection() -> "ClusterConnection":
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection

    return ClusterConnection("recorded", _UNREACHABLE)


def _google(settings: AppSettings, wiring: ClientWiring) -> GoogleSettings:
    if wiring.recorded is not None:
        return GoogleSettings(_UNREACHABLE, _UNREACHABLE, GoogleAuth.ANONYMOUS)
    return settings_from(settings.environment)


def definitions() -> Mapping[GroupKind, JsonObject]:
    """The CustomResourceDefinition of each kind, in the order of their names; and that of the grants."""
    # Imported here: only this command needs it.
    from setpoint.kinds.field_docs import field_docs
    from setpoint.stores.kubernetes.crds import crd_for

    described: Mapping[GroupKind, DescribedType] = {**described_types(), REFERENCE_GRANT: ReferenceGrantType()}
    return {name: crd_for(described[name], field_docs) for name in sorted(described)}


def described_types() -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner in the order of their names, to be described."""
    # No service is asked: the kinds describe themselves.
    google = GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
    return dict(sorted({**_kinds(google, Clusters(), SystemClock()), **_owners({})}.items()))


def owners() -> Sequence[Owner]:
    """Every owner, to be described."""
    return tuple(_owners({}).values())


def select_kinds(words: Sequence[str], known: Collection[GroupKind]) -> Collection[GroupKind]:
    """The kinds that `words` name, in any case, singular or plural; all of them for no words."""
    return [find_kind(word, known, "--kinds") for word in words] or known


def is_shared_store(settings: AppSettings) -> bool:
    """Whether the store is in a cluster: other clients write to it, and a controller reconciles."""
    return settings.store.startswith("kubernetes")


def store_file(settings: AppSettings) -> Path | None:
    """The absolute path of the store's file; None for a store without one."""
    path = _path(settings.store)
    return None if path is None else path.absolute().resolve()


async def dry_run_apply(manifest: JsonObject, engine: EngineContext) -> Resource:
    """The resource that an apply of `manifest` would result in; an invalid one raises. Nothing is written.

    A cluster answers with the fields of other field managers; elsewhere it is as if the resource were new.
    """
    if isinstance(engine.store, DryRunStore):
        return await engine.store.dry_run(manifest)
    return await MemoryStore(engine.clock, _new_uid, secrets=engine.secret_fields).apply(manifest)


async def overlay_manifests(engine: EngineContext, manifests: Iterable[JsonObject]) -> EngineContext:
    """The engine as if these manifests were applied: its store is an overlay, which refuses writes."""
    overlay: dict[ResourceRef, Resource] = {}
    for manifest in manifests:
        applied = await dry_run_apply(manifest, engine)
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


async def _open_store(settings: AppSettings, access: StoreAccess, secrets: SecretFields) -> Store:
    clock, path = settings.clock, _path(settings.store)
    if path is None:
        return MemoryStore(clock, _new_uid)
    if access is StoreAccess.READ and not path.exists():
        # Nothing has been declared yet: an empty store to read from, without creating a file.
        return MemoryStore(clock, _new_uid)
    exposed = access_of_others(path.absolute().resolve())
    mode = OpenMode.READ if access is StoreAccess.READ else OpenMode.WRITE
    store = await open_sqlite(path, clock, _new_uid, mode, secrets=secrets)
    if exposed:
        settings.warn(exposed)
    return store


def _cluster_client(
    settings: AppSettings, budgets: QuotaBudgets, interceptor: HttpInterceptor | None
) -> "KubernetesClient":
    # Imported here: only a store in a cluster needs it.
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.contexts import connection_from_environment
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    connection = connection_from_environment(settings.environment, parse_cluster_address(settings.store).context)
    http = HttpClient(connection.proxy, interceptor, limits=limits_from(settings.environment))
    return KubernetesClient(connection, http=http, budgets=budgets)


def _tenant_addresses(settings: AppSettings, client: "KubernetesClient") -> AddressPolicy:
    """Where the servers may be that tenants name."""
    own_host = urlsplit(client.connection.server).hostname or ""
    return address_policy(
        settings.environment, settings.allowed_addresses, settings.denied_addresses, own_host=own_host
    )


def _open_cluster(
    settings: AppSettings,
    client: "KubernetesClient",
    resource_types: Mapping[GroupKind, ResourceType],
    access: StoreAccess,
    accounts: "ServiceAccountClients | None",
) -> "KubernetesStore":
    from setpoint.stores.kubernetes.factory import cluster_address_in, open_kubernetes

    address = cluster_address_in(settings.store, settings.environment)
    handled = [resource_types[name] for name in select_kinds(settings.kinds, resource_types)]
    # RBAC on the kinds that owners make and read, and on Secrets, is there only where they are needed.
    related = {one for owner in handled if isinstance(owner, Owner) for one in (*owner.makes, *owner.reads)}
    if any(map(refers_to_secrets, handled)):
        related.add(SECRETS)
    return open_kubernetes(
        address,
        client,
        (*handled, *related, ReferenceGrantType()),
        settings.clock,
        long_running=access is StoreAccess.RUN,
        accounts=accounts,
    )


def _accounts(settings: AppSettings, client: "KubernetesClient", access: StoreAccess) -> "ServiceAccountClients | None":
    """How a controller acts for tenants; None for a command, which acts as its user."""
    if access is not StoreAccess.RUN:
        return None
    from setpoint.clients.kubernetes.service_accounts import ServiceAccountClients
    from setpoint.stores.kubernetes.factory import parse_cluster_address

    return ServiceAccountClients(client, may_be_own=parse_cluster_address(settings.store).namespace is not None)


async def _tenant_by_name(namespace: str) -> Tenant:
    return Tenant(namespace)


class _EveryReference:
    """For a recorded world: what it was recorded of had its references granted, or blocked."""

    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> Resource | None:
        """See ReferencePolicy."""
        return None


def _path(url: str) -> Path | None:
    if url == "memory:" or url.startswith("kubernetes"):
        return None
    scheme, colon, rest = url.partition("://")
    if scheme != "sqlite" or not colon or not rest.startswith("/") or rest == "/":
        raise ManifestInvalid(f"the store {url!r} is none we know: write sqlite:///path/to/state.db, or kubernetes")
    return Path(rest.removeprefix("/"))


def _kinds(google: GoogleClient, clusters: Clusters, clock: Clock) -> Mapping[GroupKind, AnyKind]:
    kinds: tuple[AnyKind, ...] = (
        StorageBucketKind(google),
        SqlInstanceKind(google),
        SqlDatabaseKind(google),
        SqlUserKind(google),
        KubernetesObjectKind(clusters, clock),
    )
    return {(kind.group, kind.name): kind for kind in kinds}


def _owners(environment: Mapping[str, str]) -> Mapping[GroupKind, Owner]:
    owners: tuple[Owner, ...] = (TrusteeConfigOwner(), KbsConfigOwner(environment))
    return {(owner.group, owner.name): owner for owner in owners}
