"""Previews of a fleet before an upgrade: findings with and without cookies."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.preview import PreviewFinding, with_cookie
from setpoint.engine.step.reconcile import step
from setpoint.localcloud.server import LocalCloud
from setpoint.preview import make_recording
from setpoint.replay.preview_report import PreviewReport
from setpoint.replay.world_file import pack_world, unpack_world
from tests.cli.fleets import BUCKET, names, open_session, with_changed_default, with_revision

MANY: Final = 1_000
STOPPED: Final = "http://127.0.0.1:1"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A recorded world with many buckets, with cookies and without."""

    with_cookies: Path
    without: Path
    # How many writes reached the cloud after the buckets were made.
    writes: int


def _manifest(name: str) -> JsonObject:
    metadata: Json = {"name": name, "annotations": {"cnrm.cloud.google.com/project-id": "some-project"}}
    return {"apiVersion": f"{BUCKET[0]}/v1beta1", "kind": BUCKET[1], "metadata": metadata, "spec": {"location": "EU"}}


async def _settle(engine: EngineContext) -> None:
    turns = asyncio.Semaphore(20)

    async def one(name: str) -> None:
        async with turns:
            made = await engine.store.apply(_manifest(name))
            assert isinstance(await step(made.ref, engine), Settled)

    await asyncio.gather(*map(one, names("bucket", MANY)))


def _without_cookies(world: bytes) -> bytes:
    recorded = unpack_world(world, "w")
    return pack_world(replace(recorded, resources=tuple(with_cookie(one, None) for one in recorded.resources)))


@asynccontextmanager
async def _made(folder: Path) -> AsyncIterator[Fleet]:
    async with LocalCloud() as cloud:
        environment = {"STORAGE_EMULATOR_HOST": cloud.url, "SETPOINT_GCP_AUTH": "anonymous"}
        settings = AppSettings(f"sqlite:///{folder}/state.db", environment=environment)
        async with open_engine(settings, StoreAccess.WRITE) as engine:
            await _settle(engine)
        cloud.journal.clear()
        recorded = (await make_recording(settings, lambda _: None)).world
        (folder / "with").write_bytes(recorded)
        (folder / "without").write_bytes(_without_cookies(recorded))
        yield Fleet(folder / "with", folder / "without", cloud.journal.counts()["writes"])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A recorded fleet; the local cloud has stopped by the time of the preview."""

    async def main() -> Fleet:
        async with _made(tmp_path_factory.mktemp("fleet")) as fleet:
            return fleet

    return asyncio.run(main())


def _report(file: Path, change: Callable[[AnyKind], AnyKind] | None = None) -> PreviewReport:
    async def main() -> PreviewReport:
        settings = AppSettings("memory:", environment={"STORAGE_EMULATOR_HOST": STOPPED})
        async with open_session(settings, file, change) as preview:
            return await preview.preview_all(lambda _: None)

    started = time.perf_counter()
    found = asyncio.run(main())
    # Only printed: no assertion depends on a time.
    print(f"{len(found.found)} resources, both ways: {time.perf_counter() - started:.2f} s")  # noqa: T201
    return found


def test_a_kind_that_is_unchanged_has_nothing_to_write(fleet: Fleet) -> None:
    assert _report(fleet.with_cookies).counts == {"StorageBucket": {PreviewFinding.IN_SYNC: MANY}}
    assert _report(fleet.without).counts == {"StorageBucket": {PreviewFinding.ONE_TIME: MANY}}


def test_a_changed_default_is_found_in_every_resource(fleet: Fleet) -> None:
    masked, written = _report(fleet.with_cookies, with_changed_default), _report(fleet.without, with_changed_default)

    assert masked.counts == {"StorageBucket": {PreviewFinding.MASKED: MANY}}
    assert written.counts == {"StorageBucket": {PreviewFinding.WRITES: MANY}}
    assert {one.fields for one in (*masked.found, *written.found)} == {("spec.storageClass",)}


def test_with_a_raised_revision_cookies_hide_no_change(fleet: Fleet) -> None:
    found = _report(fleet.with_cookies, lambda kind: with_revision(with_changed_default(kind)))

    assert found.counts == {"StorageBucket": {PreviewFinding.WRITES: MANY}}
    assert {one.fields for one in found.found} == {("spec.storageClass",)}


def test_a_recording_writes_nothing_to_the_service(fleet: Fleet) -> None:
    assert fleet.writes == 0
