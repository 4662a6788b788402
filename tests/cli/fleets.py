"""Many resources at once, and kinds of which a copy was changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import aiohttp
from msgspec import UNSET, Struct

from setpoint.app import Access, Settings, open_world
from setpoint.clients.google import Call, Service
from setpoint.clients.http import HttpClient, Request
from setpoint.core.shape import Default
from setpoint.engine.kind import Absent, AnyKind, Location, Present, Unmoved
from setpoint.engine.previews import with_cookie
from setpoint.engine.resource import ResourceRef
from setpoint.engine.standing import standing_of
from setpoint.errors import WriteBlocked
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import Bucket
from setpoint.kinds.gcp.storage_bucket.spec import BucketMetadata, StorageBucketSpec
from setpoint.kinds.spec_parts import Maybe
from setpoint.previewing import Preview, open_preview, open_recorded
from setpoint.worlds.files import read_world
from setpoint.worlds.survey import Survey
from tests.cli.desk import Desk

BUCKET: Final = ("storage.cnrm.cloud.google.com", "StorageBucket")
LOGS: Final = ResourceRef(*BUCKET, "default", "logs")

CUT = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1", "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "http://127.0.0.1:1/"}
INSTANCE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: shop
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec:
  region: europe-west1
  databaseVersion: POSTGRES_16
  rootPassword: {value: Sesame-2-root}
  settings: {tier: db-custom-2-8192}
"""


class ChangedSpec(StorageBucketSpec, frozen=True):
    """The copy of a spec in which a default was changed, deliberately."""

    storageClass: Annotated[Maybe[str], Default("NEARLINE")] = UNSET


class ChangedTree(Struct, frozen=True):
    """What is compared by then."""

    spec: ChangedSpec
    metadata: Maybe[BucketMetadata] = UNSET


def with_changed_default(kind: AnyKind) -> AnyKind:
    """The kind with that default, and nothing else said about it."""
    assert isinstance(kind, StorageBucketKind)
    return replace(kind, tree_type=ChangedTree)


def with_revision(kind: AnyKind) -> AnyKind:
    """The kind of which its author says that its mapping has changed."""
    assert isinstance(kind, StorageBucketKind)
    return replace(kind, revision=kind.revision + 1)


@dataclass(slots=True)
class Meddling(StorageBucketKind):
    """A kind that writes while it looks: with its own client, one that it made for itself, or another library's."""

    address: str = ""
    is_foreign: bool = False
    # Whether it minds that it could not.
    swallows: bool = False

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Bucket] | Unmoved:
        name = location.rpartition("/")[2]
        try:
            if self.address:
                await (self._with_a_foreign_one(name) if self.is_foreign else self._with_its_own(name))
            await self.google.patch(Call(Service.STORAGE, ("b", name)), {"labels": {"seen": "yes"}})
        except WriteBlocked:
            if not self.swallows:
                raise
        return await StorageBucketKind.observe(self, location, known)

    async def _with_its_own(self, name: str) -> None:
        client = HttpClient()
        try:
            await client.send(Request("DELETE", f"{self.address}/storage/v1/b/{name}"))
        finally:
            await client.close()

    async def _with_a_foreign_one(self, name: str) -> None:
        async with aiohttp.ClientSession() as session, session.delete(f"{self.address}/storage/v1/b/{name}"):
            pass


def meddling(kind: AnyKind, **options: Any) -> AnyKind:
    """Such a kind, in the place of another."""
    assert isinstance(kind, StorageBucketKind)
    return Meddling(kind.google, **options)


def settings_of(desk: Desk, **environment: str) -> Settings:
    """What a command at the desk goes by."""
    return Settings(f"sqlite:///{desk.folder}/.setpoint/state.db", environment={**desk.environment, **environment})


@asynccontextmanager
async def looked_at(
    settings: Settings, file: Path | None = None, change: Callable[[AnyKind], AnyKind] | None = None
) -> AsyncIterator[Preview]:
    """The world that is there, or that was recorded; with the kind of buckets changed, if it is to be."""
    async with open_preview(settings) if file is None else open_recorded(settings, read_world(file)) as preview:
        kinds = dict(preview.world.kinds)
        if change is not None:
            kinds[BUCKET] = change(kinds[BUCKET])
        yield replace(preview, world=replace(preview.world, kinds=kinds))


def names(prefix: str, number: int) -> Sequence[str]:
    """So many names."""
    return [f"{prefix}-{one:04}" for one in range(number)]


def drift(desk: Desk) -> None:
    desk.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/logs", {"versioning": {"enabled": True}}))


def survey_of(desk: Desk, change: Callable[[AnyKind], AnyKind] | None = None, file: Path | None = None) -> Survey:
    async def main() -> Survey:
        async with looked_at(settings_of(desk, **({} if file is None else CUT)), file, change) as preview:
            return await preview.survey(lambda _: None)

    return asyncio.run(main())


def forge(desk: Desk) -> None:
    """Puts a cookie on record that vouches for whatever is there."""

    async def main() -> None:
        async with open_world(settings_of(desk), Access.WRITE) as world:
            resource = await world.store.get(LOGS)
            assert resource is not None
            seen = await standing_of(resource, world)
            await world.store.update_status(resource, with_cookie(resource, seen.cookie, seen.body).status)

    asyncio.run(main())
