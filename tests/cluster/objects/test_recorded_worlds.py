"""Recorded worlds with clusters: recorded, and replayed without a cluster."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.preview import PreviewFinding
from setpoint.engine.step.reconcile import step
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from setpoint.preview import WorldRecording, make_recording, open_recorded
from setpoint.replay.preview_report import PreviewReport
from setpoint.replay.world_file import unpack_world
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import config_map, environment
from tests.scenarios.served_kinds import empty, serve_kinds

SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "stringData": {"a": "Sesame-1-open"},
}
AS_TEXT = "apiVersion: v1\nkind: Secret\nmetadata: {name: t}\nstringData: {b: Sesame-2-open}\n"
VALUE: Any = {"$ref": {"kind": NAME, "name": "map", "path": "data.a"}}


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    serve_kinds(api_server)
    return api_server


@pytest.fixture(params=["a file", "the cluster"])
def settings(request: pytest.FixtureRequest, cluster: Access, namespace: str, tmp_path: Any) -> Iterator[AppSettings]:
    """The resources are in a SQLite store, or in the cluster of their objects."""
    store = f"kubernetes?namespace={namespace}" if request.param == "the cluster" else f"sqlite:///{tmp_path}/state.db"
    yield AppSettings(store, environment=environment(cluster.kubeconfig))
    empty(cluster, namespace)


def kubernetes_object(namespace: str, name: str, manifest: Any, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": NAME,
        "metadata": metadata,
        "spec": {"manifest": manifest, **spec},
    }


async def _settle(settings: AppSettings, *manifests: dict[str, Any]) -> None:
    async with open_engine(settings, StoreAccess.WRITE) as engine:
        for manifest in manifests:
            made = await engine.store.apply(manifest)
            outcome = await step(made.ref, engine)
            assert isinstance(outcome, Settled), outcome


def _replayed(recording: WorldRecording) -> PreviewReport:
    async def main() -> PreviewReport:
        without_cluster = AppSettings("memory:", environment={"KUBECONFIG": "/no/such/file"})
        async with open_recorded(without_cluster, unpack_world(recording.world, "w")) as again:
            return await again.preview_all(lambda _: None)

    return asyncio.run(main())


def test_objects_are_replayed_without_a_cluster(settings: AppSettings, cluster: Access, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"

    async def main() -> WorldRecording:
        await _settle(
            settings,
            kubernetes_object(namespace, "map", config_map(a="1"), waitFor={"field": "data.a"}),
            kubernetes_object(namespace, "drifted", config_map("other", a="1")),
            kubernetes_object(namespace, "secret", SECRET),
            kubernetes_object(namespace, "text", AS_TEXT),
            kubernetes_object(namespace, "using", config_map("using", a=VALUE)),
        )
        cluster.call("PATCH", f"{path}/configmaps/other", {"data": {"a": "by hand"}})
        before = {name: _versions(cluster, f"{path}/{name}") for name in ("configmaps", "secrets")}
        recording = await make_recording(settings, lambda _: None)
        assert before == {name: _versions(cluster, f"{path}/{name}") for name in ("configmaps", "secrets")}
        return recording

    recording = asyncio.run(main())

    found = {one.ref.name: one.finding for one in recording.report.found}
    in_sync = dict.fromkeys(("map", "secret", "text", "using"), PreviewFinding.IN_SYNC)
    assert found == {**in_sync, "drifted": PreviewFinding.WRITES}
    assert json.dumps(_replayed(recording).to_data()) == json.dumps(recording.report.to_data())
    text = gzip.decompress(recording.world).decode()
    assert [one for one in ("Sesame", "U2VzYW1l") if one in text] == []


def _versions(cluster: Access, path: str) -> dict[str, str]:
    items = cluster.call("GET", path).body["items"]
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in items}
