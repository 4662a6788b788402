"""The composition root: the only module that knows every store and kind."""

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from setpoint.clients.budgets import Budgets
from setpoint.clients.google import Auth, GoogleClient, GoogleSettings, settings_from
from setpoint.clients.http import HttpClient, Tap, tapped_by
from setpoint.clients.read_only import Blocks, ReadOnly
from setpoint.clients.seal import sealed_by
from setpoint.core.canonical import same
from setpoint.core.paths import nearest
from setpoint.core.values import Json
from setpoint.engine.drafts import Drafts
from setpoint.engine.kind import AnyKind, Sort
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Clock, Rehearsing, Store
from setpoint.engine.remembered import COOKIE_ANNOTATION
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import CookieLocation, World
from setpoint.engine.system_clock import SystemClock
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.kubernetes_object.clusters import OWN, Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.trustee.kbs_config.owner import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite import OpenMode, open_sqlite

if TYPE_CHECKING:
    from setpoint.clients.kube_connection import Connection
    from setpoint.clients.kubernetes import KubernetesClient

DEFAULT_STORE = "sqlite:///.setpoint/state.db"


class Access(StrEnum):
    """What a command needs the store for."""

    READ = "read"
    WRITE = "write"
    # To write for as long as the process lives.
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are, as options and environment say."""

    store: str = DEFAULT_STORE
    cookies: CookieLocation = CookieLocation.STATUS
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    # The only kinds that are handled; none for all of them.
    kinds: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """A world, and what its kinds may ask of services."""

    world: World
    budgets: Budgets
    # How many requests there were, by method, host and what came of them: one for each way out.
    requests: Sequence[Mapping[tuple[str, str, str], int]] = ()
    # The cluster of those who name none, once somebody asked.
    cluster: Callable[[], str] = str
    # Whether other processes may write to the same store.
    shared: bool = False


# The way out to Google, and that to the store where it is a cluster's.
GOOGLE: Final = "google"
STORE: Final = "store"
# Clients that nobody here knows of: a plugin's own.
ELSEWHERE: Final = "elsewhere"


def _nothing(_way: str) -> Tap | None:
    """Nothing stands on the way."""
    return None


@dataclass(frozen=True, slots=True)
class Wiring:
    """What stands on each way out: to Google, to the store, and to each cluster by its word."""

    tap: Callable[[str], Tap | None] = _nothing
    # What is read in the place of a store and of services; then nobody is reached at all.
    recorded: Store | None = None
    # The cluster of those who name none, if that is known.
    cluster: str = ""
    # What owners see of the environment, in the place of all of it.
    environment: Mapping[str, str] | None = None


PLAIN: Final = Wiring()
_NOWHERE: Final = "http://recorded.invalid"


@asynccontextmanager
async def open_world(settings: Settings, access: Access) -> AsyncIterator[World]:
    """The world for one command: its store open, its clients at hand, all closed at the end."""
    async with open_all(settings, access) as opened:
        yield opened.world


@asynccontextmanager
async def open_guarded(settings: Settings, blocks: Blocks) -> AsyncIterator[World]:
    """The world as it is, to look at: whatever would write to a cloud or a cluster is stopped."""
    with sealed_by(blocks), tapped_by(read_only(ELSEWHERE, blocks)):
        async with open_all(settings, Access.READ, Wiring(lambda way: read_only(way, blocks))) as opened:
            yield opened.world


def read_only(way: str, blocks: Blocks, behind: Tap | None = None) -> ReadOnly:
    """What lets only reads pass on a way out, and on the way to a cluster what that only rehearses."""
    return ReadOnly(way, blocks, is_cluster=way not in (GOOGLE, ELSEWHERE), behind=behind)


@asynccontextmanager
async def open_all(settings: Settings, access: Access, wiring: Wiring = PLAIN) -> AsyncIterator[Opened]:
    """The same with what a process that goes on for ever wants to show."""
    async with AsyncExitStack() as stack:
        http = HttpClient(tap=wiring.tap(GOOGLE))
        google = GoogleClient(http, _google(settings, wiring))
        stack.push_async_callback(google.close)
        counts = [http.counts]
        clusters = Clusters(settings.environment, budgets=google.budgets, counted=counts.append, tap=wiring.tap)
        stack.push_async_callback(clusters.close)
        kinds, owners = _kinds(google, clusters, settings.clock), _owners(_seen(settings, wiring))
        if wiring.recorded is not None:
            store, clusters.recorded, clusters.usual = wiring.recorded, _nowhere(), wiring.cluster
        elif is_shared(settings):
            client = _cluster_client(settings, google.budgets, wiring.tap(STORE))
            counts.append(client.http.counts)
            store = _open_cluster(settings, client, {**kinds, **owners}, access)
            clusters.own = client if wiring is PLAIN else _cluster_client(settings, google.budgets, wiring.tap(OWN))
            stack.push_async_callback(clusters.own.close)
        else:
            store = await _open_store(settings, access)
        clusters.secret = store.get
        stack.push_async_callback(store.close)
        world = World(store, settings.clock, kinds, settings.cookies, owners=owners)
        yield Opened(world, google.budgets, counts, lambda: clusters.usual, shared=is_shared(settings))


def _seen(settings: Settings, wiring: Wiring) -> Mapping[str, str]:
    return settings.environment if wiring.environment is None else wiring.environment


def _nowhere() -> "Connection":
    from setpoint.clients.kube_connection import Connection

    return Connection("recorded", _NOWHERE)


def _google(settings: Settings, wiring: Wiring) -> GoogleSettings:
    if wiring.recorded is not None:
        return GoogleSettings(_NOWHERE, _NOWHERE, Auth.ANONYMOUS)
    return settings_from(settings.environment)


def definitions() -> Mapping[tuple[str, str], Tree]:
    """The CustomResourceDefinition of each kind, in the order of their names."""
    # Only who asks for them pays for loading what makes them.
    from setpoint.kinds.descriptions import descriptions
    from setpoint.stores.kubernetes.definitions import definition_of

    # Nothing is asked of any service: what the kinds say of themselves is enough.
    google = GoogleClient(HttpClient(), GoogleSettings(auth=Auth.ANONYMOUS))
    sorts = {**_kinds(google, Clusters(), SystemClock()), **_owners({})}
    return {name: definition_of(sorts[name], descriptions) for name in sorted(sorts)}


def owners() -> Sequence[Owner]:
    """Every owner, for what it says of itself."""
    return tuple(_owners({}).values())


def chosen(words: Sequence[str], known: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
    """The kinds that are named, in any case, singular or plural; all when none is."""
    by_name = {name.lower(): (group, name) for group, name in known}
    found: list[tuple[str, str]] = []
    for word in words:
        key = by_name.get(word.lower()) or by_name.get(word.lower().removesuffix("s"))
        if key is None:
            names = sorted(name for _, name in known)
            near = nearest(word, names)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(names)}"
            raise ManifestInvalid(f"--kinds: no kind {word!r} is known here; {hint}")
        found.append(key)
    return found or known


def is_shared(settings: Settings) -> bool:
    """Whether the store is a cluster's, where others write and a process of its own takes the steps."""
    return settings.store.startswith("kubernetes")


def file_of(settings: Settings) -> Path | None:
    """The file that the store is kept in, in one spelling; None when it is not kept in any."""
    path = _path(settings.store)
    return None if path is None else path.absolute().resolve()


async def rehearse(manifest: Tree, world: World) -> Resource:
    """The resource that `manifest` would make; what is wrong with it is raised. Nothing is kept.

    A cluster knows how it would be with what others say of it; elsewhere it is as if there were none yet.
    """
    if isinstance(world.store, Rehearsing):
        return await world.store.rehearse(manifest)
    return await MemoryStore(world.clock, _new_uid).apply(manifest)


async def draft(world: World, manifests: Iterable[Tree]) -> World:
    """The world as it would be with these manifests applied; nothing can be written to its store."""
    drafts: dict[ResourceRef, Resource] = {}
    for manifest in manifests:
        applied = await rehearse(manifest, world)
        drafts[applied.ref] = _grafted(applied, await world.store.get(applied.ref))
    return replace(world, store=Drafts(world.store, drafts))


def _grafted(applied: Resource, stored: Resource | None) -> Resource:
    """The author's new part on what the store knows of the resource."""
    if stored is None:
        return applied
    metadata, before = _tree(applied.document["metadata"]), _tree(stored.document["metadata"])
    kept = {COOKIE_ANNOTATION: stored.annotations.get(COOKIE_ANNOTATION)}
    annotations = {**{key: text for key, text in kept.items() if text is not None}, **applied.annotations}
    # A Secret with other values has to look like one that was rotated.
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


async def _open_store(settings: Settings, access: Access) -> Store:
    clock, path = settings.clock, _path(settings.store)
    if path is None:
        return MemoryStore(clock, _new_uid)
    if access is Access.READ and not path.exists():
        # Nothing has been declared yet: an empty store to read from, and no file made for it.
        return MemoryStore(clock, _new_uid)
    return await open_sqlite(path, clock, _new_uid, OpenMode.READ if access is Access.READ else OpenMode.WRITE)


def _cluster_client(settings: Settings, budgets: Budgets, tap: Tap | None) -> "KubernetesClient":
    # Only who keeps resources in a cluster pays for loading what reaches it.
    from setpoint.clients.kube_config import connection_from
    from setpoint.clients.kubernetes import KubernetesClient
    from setpoint.stores.kubernetes.opening import whereabouts

    connection = connection_from(settings.environment, whereabouts(settings.store).context)
    return KubernetesClient(connection, http=HttpClient(connection.proxy, tap), budgets=budgets)


def _open_cluster(
    settings: Settings, client: "KubernetesClient", sorts: Mapping[tuple[str, str], Sort], access: Access
) -> Store:
    from setpoint.stores.kubernetes.opening import open_kubernetes, place_of

    place = place_of(settings.store, settings.environment)
    handled = [sorts[name] for name in chosen(settings.kinds, sorts)]
    # Nobody needs rights on what owners make who handles none of them.
    besides = {one for sort in handled if isinstance(sort, Owner) for one in (*sort.makes, *sort.reads)}
    return open_kubernetes(place, client, (*sorts.values(), *besides), settings.clock, lasting=access is Access.RUN)


def _path(url: str) -> Path | None:
    if url == "memory:" or url.startswith("kubernetes"):
        return None
    scheme, colon, rest = url.partition("://")
    if scheme != "sqlite" or not colon or not rest.startswith("/") or rest == "/":
        raise ManifestInvalid(f"the store {url!r} is none we know: write sqlite:///path/to/state.db, or kubernetes")
    return Path(rest.removeprefix("/"))


def _kinds(google: GoogleClient, clusters: Clusters, clock: Clock) -> Mapping[tuple[str, str], AnyKind]:
    kinds: tuple[AnyKind, ...] = (
        StorageBucketKind(google),
        SqlInstanceKind(google),
        SqlDatabaseKind(google),
        SqlUserKind(google),
        KubernetesObjectKind(clusters, clock),
    )
    return {(kind.group, kind.name): kind for kind in kinds}


def _owners(environment: Mapping[str, str]) -> Mapping[tuple[str, str], Owner]:
    owners: tuple[Owner, ...] = (TrusteeConfigOwner(), KbsConfigOwner(environment))
    return {(owner.group, owner.name): owner for owner in owners}
