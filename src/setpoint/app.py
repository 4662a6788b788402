"""The composition root: the only module that knows every store and kind."""

import asyncio
import datetime
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from setpoint.clients.budgets import Budgets
from setpoint.clients.google import GoogleClient, settings_from
from setpoint.clients.http import HttpClient
from setpoint.core.canonical import same
from setpoint.core.values import Json
from setpoint.engine.drafts import Drafts
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import Clock, Store
from setpoint.engine.remembered import COOKIE_ANNOTATION
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import CookieLocation, World
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite import OpenMode, open_sqlite

DEFAULT_STORE = "sqlite:///.setpoint/state.db"


class Access(StrEnum):
    """What a command needs the store for."""

    READ = "read"
    WRITE = "write"


class SystemClock:
    """The time of this machine."""

    def now(self) -> str:
        """See Clock."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are, as options and environment say."""

    store: str = DEFAULT_STORE
    cookies: CookieLocation = CookieLocation.STATUS
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True)
class Opened:
    """A world, and what its kinds may ask of services."""

    world: World
    budgets: Budgets
    # How many requests there were, by method, host and what came of them.
    requests: Mapping[tuple[str, str, str], int]


@asynccontextmanager
async def open_world(settings: Settings, access: Access) -> AsyncIterator[World]:
    """The world for one command: its store open, its clients at hand, all closed at the end."""
    async with open_all(settings, access) as opened:
        yield opened.world


@asynccontextmanager
async def open_all(settings: Settings, access: Access) -> AsyncIterator[Opened]:
    """The same with what a process that goes on for ever wants to show."""
    clock = settings.clock
    async with AsyncExitStack() as stack:
        store = await _open_store(settings.store, clock, access)
        stack.push_async_callback(store.close)
        http = HttpClient()
        google = GoogleClient(http, settings_from(settings.environment))
        stack.push_async_callback(google.close)
        yield Opened(World(store, clock, _kinds(google), settings.cookies), google.budgets, http.counts)


def file_of(settings: Settings) -> Path | None:
    """The file that the store is kept in, in one spelling; None when it is not kept in any."""
    path = _path(settings.store)
    return None if path is None else path.absolute().resolve()


async def rehearse(manifest: Tree, world: World) -> Resource:
    """The resource that `manifest` would make if there were none; what is wrong with it is raised. Nothing is kept."""
    return await MemoryStore(world.clock, _new_uid).apply(manifest)


async def draft(world: World, manifests: Iterable[Tree]) -> World:
    """The world as it would be with these manifests applied; nothing can be written to its store."""
    scratch = MemoryStore(world.clock, _new_uid)
    drafts: dict[ResourceRef, Resource] = {}
    for manifest in manifests:
        applied = await scratch.apply(manifest)
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


async def _open_store(url: str, clock: Clock, access: Access) -> Store:
    path = _path(url)
    if path is None:
        return MemoryStore(clock, _new_uid)
    if access is Access.READ and not path.exists():
        # Nothing has been declared yet: an empty store to read from, and no file made for it.
        return MemoryStore(clock, _new_uid)
    return await open_sqlite(path, clock, _new_uid, OpenMode.WRITE if access is Access.WRITE else OpenMode.READ)


def _path(url: str) -> Path | None:
    if url == "memory:":
        return None
    scheme, colon, rest = url.partition("://")
    if scheme != "sqlite" or not colon or not rest.startswith("/") or rest == "/":
        raise ManifestInvalid(f"the store {url!r} is none we know: write sqlite:///path/to/state.db")
    return Path(rest.removeprefix("/"))


def _kinds(google: GoogleClient) -> Mapping[tuple[str, str], AnyKind]:
    kinds: tuple[AnyKind, ...] = (
        StorageBucketKind(google),
        SqlInstanceKind(google),
        SqlDatabaseKind(google),
        SqlUserKind(google),
    )
    return {(kind.group, kind.name): kind for kind in kinds}
