"""Many resources at once, and kinds of which a copy was changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import aiohttp
from msgspec import UNSET, Struct

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.core.schema.shape import Default
from setpoint.engine.kind import Absent, AnyKind, Location, Present, Unchanged
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import current_digests, with_cookie
from setpoint.errors import WriteBlocked
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket
from setpoint.kinds.gcp.storage_bucket.spec import BucketMetadata, StorageBucketSpec
from setpoint.kinds.typed_spec import Maybe
from setpoint.preview import PreviewSession, open_preview, open_recorded
from setpoint.replay.preview_report import PreviewReport
from setpoint.replay.world_file import read_world
from tests.cli.workspace import Workspace

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

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[StorageBucket] | Unchanged:
        name = location.rpartition("/")[2]
        try:
            if self.address:
                await (self._with_a_foreign_one(name) if self.is_foreign else self._with_its_own(name))
            await self.google.patch(GoogleCall(GoogleService.STORAGE, ("b", name)), {"labels": {"seen": "yes"}})
        except WriteBlocked:
            if not self.swallows:
                raise
        return await StorageBucketKind.observe(self, location, known)

    async def _with_its_own(self, name: str) -> None:
        client = HttpClient()
        try:
            await client.send(HttpRequest("DELETE", f"{self.address}/storage/v1/b/{name}"))
        finally:
            await client.close()

    async def _with_a_foreign_one(self, name: str) -> None:
        async with aiohttp.ClientSession() as session, session.delete(f"{self.address}/storage/v1/b/{name}"):
            pass


def meddling(kind: AnyKind, **options: Any) -> AnyKind:
    """Such a kind, in the place of another."""
    assert isinstance(kind, StorageBucketKind)
    return Meddling(kind.google, **options)


def settings_of(workspace: Workspace, **environment: str) -> AppSettings:
    """What a command at the workspace goes by."""
    return AppSettings(
        f"sqlite:///{workspace.folder}/.setpoint/state.db", environment={**workspace.environment, **environment}
    )


@asynccontextmanager
async def looked_at(
    settings: AppSettings, file: Path | None = None, change: Callable[[AnyKind], AnyKind] | None = None
) -> AsyncIterator[PreviewSession]:
    """The world that is there, or that was recorded; with the kind of buckets changed, if it is to be."""
    async with open_preview(settings) if file is None else open_recorded(settings, read_world(file)) as preview:
        kinds = dict(preview.engine.kinds)
        if change is not None:
            kinds[BUCKET] = change(kinds[BUCKET])
        yield replace(preview, engine=replace(preview.engine, kinds=kinds))


def names(prefix: str, number: int) -> Sequence[str]:
    """So many names."""
    return [f"{prefix}-{one:04}" for one in range(number)]


def drift(workspace: Workspace) -> None:
    workspace.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/logs", {"versioning": {"enabled": True}}))


def survey_of(
    workspace: Workspace, change: Callable[[AnyKind], AnyKind] | None = None, file: Path | None = None
) -> PreviewReport:
    async def main() -> PreviewReport:
        async with looked_at(settings_of(workspace, **({} if file is None else CUT)), file, change) as preview:
            return await preview.report(lambda _: None)

    return asyncio.run(main())


def forge(workspace: Workspace) -> None:
    """Puts a cookie on record that matches the live object."""

    async def main() -> None:
        async with open_engine(settings_of(workspace), StoreAccess.WRITE) as engine:
            resource = await engine.store.get(LOGS)
            assert resource is not None
            seen = await current_digests(resource, engine)
            await engine.store.update_status(resource, with_cookie(resource, seen.cookie, seen.body).status)

    asyncio.run(main())
