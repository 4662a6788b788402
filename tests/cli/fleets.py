"""Previews of a workspace, with changed copies of a kind."""

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
from setpoint.kind.typed_spec import Maybe
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.gcp.storage_bucket.live import StorageBucket
from setpoint.kinds.gcp.storage_bucket.spec import BucketMetadata, StorageBucketSpec
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
    """A copy of the spec with another default."""

    storageClass: Annotated[Maybe[str], Default("NEARLINE")] = UNSET


class ChangedTree(Struct, frozen=True):
    """The tree with that spec."""

    spec: ChangedSpec
    metadata: Maybe[BucketMetadata] = UNSET


def with_changed_default(kind: AnyKind) -> AnyKind:
    """The kind with that default, and the same revision."""
    assert isinstance(kind, StorageBucketKind)
    return replace(kind, tree_type=ChangedTree)


def with_revision(kind: AnyKind) -> AnyKind:
    """The kind with its revision raised."""
    assert isinstance(kind, StorageBucketKind)
    return replace(kind, revision=kind.revision + 1)


@dataclass(slots=True)
class WritingKind(StorageBucketKind):
    """A kind that writes in `observe`: with its client, with a new client, or with another HTTP library."""

    address: str = ""
    is_foreign: bool = False
    # Whether it ignores that the write was blocked.
    swallows: bool = False

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[StorageBucket] | Unchanged:
        name = location.rpartition("/")[2]
        try:
            if self.address:
                await (self._write_by_aiohttp(name) if self.is_foreign else self._write_by_new_client(name))
            await self.google.patch(GoogleCall(GoogleService.STORAGE, ("b", name)), {"labels": {"seen": "yes"}})
        except WriteBlocked:
            if not self.swallows:
                raise
        return await StorageBucketKind.observe(self, location, known)

    async def _write_by_new_client(self, name: str) -> None:
        client = HttpClient()
        try:
            await client.send(HttpRequest("DELETE", f"{self.address}/storage/v1/b/{name}"))
        finally:
            await client.close()

    async def _write_by_aiohttp(self, name: str) -> None:
        async with aiohttp.ClientSession() as session, session.delete(f"{self.address}/storage/v1/b/{name}"):
            pass


def writing_kind(kind: AnyKind, **options: Any) -> AnyKind:
    """The writing kind in place of `kind`."""
    assert isinstance(kind, StorageBucketKind)
    return WritingKind(kind.google, **options)


def settings_of(workspace: Workspace, **environment: str) -> AppSettings:
    """The settings of a command in the workspace."""
    return AppSettings(
        f"sqlite:///{workspace.folder}/.setpoint/state.db", environment={**workspace.environment, **environment}
    )


@asynccontextmanager
async def open_session(
    settings: AppSettings, file: Path | None = None, change: Callable[[AnyKind], AnyKind] | None = None
) -> AsyncIterator[PreviewSession]:
    """A preview of the live world or of a recorded one, with the kind of buckets changed by `change`."""
    async with open_preview(settings) if file is None else open_recorded(settings, read_world(file)) as preview:
        kinds = dict(preview.engine.kinds)
        if change is not None:
            kinds[BUCKET] = change(kinds[BUCKET])
        yield replace(preview, engine=replace(preview.engine, kinds=kinds))


def names(prefix: str, number: int) -> Sequence[str]:
    """`number` different names."""
    return [f"{prefix}-{one:04}" for one in range(number)]


def drift(workspace: Workspace) -> None:
    workspace.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/logs", {"versioning": {"enabled": True}}))


def preview_report_of(
    workspace: Workspace, change: Callable[[AnyKind], AnyKind] | None = None, file: Path | None = None
) -> PreviewReport:
    async def main() -> PreviewReport:
        async with open_session(settings_of(workspace, **({} if file is None else CUT)), file, change) as preview:
            return await preview.preview_all(lambda _: None)

    return asyncio.run(main())


def match_cookie_to_live(workspace: Workspace) -> None:
    """Stores a cookie that matches the live object, so that it hides the drift."""

    async def main() -> None:
        async with open_engine(settings_of(workspace), StoreAccess.WRITE) as engine:
            resource = await engine.store.get(LOGS)
            assert resource is not None
            seen = await current_digests(resource, engine)
            await engine.store.update_status(resource, with_cookie(resource, seen.cookie, seen.body).status)

    asyncio.run(main())
