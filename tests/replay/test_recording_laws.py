"""For every world: its recording gives the same report, and holds no secret."""

import asyncio
import gzip
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.core.decide import Cookie
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import current_digests, with_cookie
from setpoint.engine.step.reconcile import step
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.server import LocalCloud
from setpoint.preview import make_recording, open_preview, open_recorded
from setpoint.replay.preview_report import PreviewReport
from setpoint.replay.world_file import unpack_world

pytestmark = [pytest.mark.slow, pytest.mark.laws]

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
PASSWORDS = ("Sesame-1-open", "Sesame-2-open")
EDITS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/storage/v1/b/logs", {"versioning": {"enabled": True}}),
    ("/storage/v1/b/logs", {"labels": {"by": "hand"}}),
    ("/sql/v1beta4/projects/demo/instances/shop", {"settings": {"availabilityType": "REGIONAL"}}),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The edits of another writer, those of the author, and the state of each cookie."""

    edits: frozenset[int]
    new_root: bool
    new_app: bool
    new_spec: bool
    cookies: dict[str, str]


scenarios = st.builds(
    Scenario,
    st.frozensets(st.integers(0, len(EDITS) - 1)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.fixed_dictionaries(
        {kind: st.sampled_from(("kept", "none", "forged", "wrong")) for kind in ("SQLInstance", "StorageBucket")}
    ),
)


def _manifest(api: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"cnrm.cloud.google.com/project-id": "demo"}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def _manifests(root: str, app: str, location: str) -> list[dict[str, Any]]:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"app": app}}
    shop = {"region": "europe-west1", "databaseVersion": "POSTGRES_16", "settings": {"tier": "db-custom-2-8192"}}
    key = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "app"}}}
    return [
        secret,
        _manifest(SQL, "SQLInstance", "shop", **shop, rootPassword={"value": root}),
        _manifest(SQL, "SQLUser", "app", instanceRef={"name": "shop"}, password=key),
        _manifest(STORAGE, "StorageBucket", "logs", location="EU", storageClass=location),
    ]


async def _play(scenario: Scenario, engine: EngineContext, cloud: LocalCloud) -> None:
    refs: list[ResourceRef] = [(await engine.store.apply(one)).ref for one in _manifests(*PASSWORDS, "STANDARD")]
    for _ in range(4):
        for ref in refs[1:]:
            await step(ref, engine)
        cloud.advance(3600)
    for number in scenario.edits:
        cloud.edit(*EDITS[number])
    root, app = PASSWORDS[0] + "!" * scenario.new_root, PASSWORDS[1] + "!" * scenario.new_app
    for one in _manifests(root, app, "NEARLINE" if scenario.new_spec else "STANDARD"):
        await engine.store.apply(one)
    for ref in refs[1:]:
        await _set_cookie(scenario.cookies.get(ref.kind, "kept"), ref, engine)


async def _set_cookie(word: str, ref: ResourceRef, engine: EngineContext) -> None:
    """Keeps, removes, forges or corrupts the cookie of a resource."""
    resource = await engine.store.get(ref)
    assert resource is not None
    if word == "kept":
        return
    seen = await current_digests(resource, engine)
    cookies = {"none": None, "forged": seen.cookie, "wrong": Cookie("a" * 64, "b" * 64)}
    body = seen.body if word == "forged" else None
    await engine.store.update_status(resource, with_cookie(resource, cookies[word], body).status)


async def _reports(scenario: Scenario, folder: Path) -> tuple[PreviewReport, PreviewReport, bytes, int]:
    async with LocalCloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC))) as cloud:
        there = {"STORAGE_EMULATOR_HOST": cloud.url, "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud.url}/"}
        of = AppSettings(f"sqlite:///{folder}/state.db", environment={**there, "SETPOINT_GCP_AUTH": "anonymous"})
        async with open_engine(of, StoreAccess.WRITE) as engine:
            await _play(scenario, engine, cloud)
        cloud.journal.clear()
        async with open_preview(of) as preview:
            live = await preview.preview_all(lambda _: None)
        recorded = (await make_recording(of, lambda _: None)).world
        writes = int(cloud.journal.counts()["writes"])
    async with open_recorded(AppSettings("memory:"), unpack_world(recorded, "w")) as again:
        return live, await again.preview_all(lambda _: None), recorded, writes


# Each example starts a local cloud: 20 in `make test`, 400 in `make laws`.
@settings(max_examples=2 * settings().max_examples // 5)
@given(scenarios)
def test_a_recorded_world_gives_the_report_of_the_world_itself(scenario: Scenario) -> None:
    with TemporaryDirectory() as folder:
        live, played, recorded, writes = asyncio.run(_reports(scenario, Path(folder)))

    assert played.to_data() == live.to_data()
    assert writes == 0
    text = gzip.decompress(recorded).decode()
    assert [one for one in ("Sesame", "U2VzYW1l") if one in text] == []
