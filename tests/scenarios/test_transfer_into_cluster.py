"""A transfer into a real cluster, in one process: what it writes, what it refuses, and that a kill is recovered."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from setpoint.app import AppSettings, dry_run_apply, open_engine
from setpoint.app import StoreAccess as Purpose
from setpoint.core.decide import Decision
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.engine.transfer.export_format import ExportHeader, StoreExport
from setpoint.engine.transfer.exporter import gather_export
from setpoint.engine.transfer.importer import ImportedResource, check_import
from setpoint.errors import SetpointError
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.server import LocalCloud
from setpoint.testing.interruptions import ENOUGH, Interruption, Killed, die
from tests.cluster.access import Access
from tests.engine.transfer_harness import reread
from tests.scenarios.served_kinds import empty, serve_kinds

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
HEADER: Final = ExportHeader("0.1.0", "2026-01-01T00:00:00Z", "memory", secrets=True, paused=True)


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    serve_kinds(api_server)
    return api_server


@dataclass(frozen=True, slots=True)
class ClusterTransfer:
    """A store in memory, a cluster, and the cloud of both."""

    cloud: LocalCloud
    old: EngineContext
    new: EngineContext
    namespace: str

    async def declare(self, spec: Mapping[str, Any] | None = None) -> None:
        """An instance with a root password, a user in it and a bucket: created and settled in the old store."""
        shop = {"databaseVersion": "POSTGRES_16", "region": "europe-west1", "settings": {"tier": "db-custom-1-3840"}}
        within = {"instanceRef": {"name": "shop"}}
        await self.secret(self.old)
        await self._apply(SQL, "SQLInstance", "shop", {**shop, "rootPassword": _from_secret("root")})
        await self._apply(SQL, "SQLUser", "app", {**within, "password": _from_secret("app")})
        await self._apply(STORAGE, "StorageBucket", "logs", spec or {"location": "EU"})
        for ref in await self.refs(self.old):
            while not isinstance(await step(ref, self.old), Settled):
                self.cloud.advance(600)
        self.cloud.journal.clear()

    async def secret(self, engine: EngineContext) -> None:
        data = {"root": "first-Sesame-1", "app": "second-Sesame-2"}
        metadata = {"name": "passwords", "namespace": self.namespace}
        await engine.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    async def _apply(self, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        annotations = {"cnrm.cloud.google.com/project-id": "some-project"}
        metadata: Any = {"name": name, "namespace": self.namespace, "annotations": annotations}
        await self.old.store.apply({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": dict(spec)})

    async def resources(self, engine: EngineContext) -> list[Resource]:
        found = (await engine.store.list()).resources
        return [one for one in found if one.ref.namespace == self.namespace and one.ref.kind != "Secret"]

    async def refs(self, engine: EngineContext) -> list[ResourceRef]:
        return [one.ref for one in await self.resources(engine)]

    async def export(self, *, with_secrets: bool = True) -> StoreExport:
        secrets, resources = await gather_export(await self.resources(self.old), self.old)
        return reread(StoreExport((HEADER,), secrets if with_secrets else (), resources))

    async def import_into(
        self, export: StoreExport, engine: EngineContext | None = None
    ) -> dict[str, ImportedResource]:
        into = engine or self.new
        work = await check_import(export, into, lambda tree: dry_run_apply(tree, into))
        return {arrival.ref.name: arrival for arrival in await work.run_import()}

    async def steps(self) -> dict[str, Decision]:
        """Why the next step of each in the cluster acts, or does not."""
        outcomes = {ref.name: await step(ref, self.new) for ref in await self.refs(self.new)}
        return {name: one.plan.decision for name, one in outcomes.items() if isinstance(one, Settled)}

    async def states(self) -> dict[str, str]:
        return {one.ref.name: one.revision for one in await self.resources(self.new)}

    @property
    def writes(self) -> list[str]:
        return [f"{one.method} {one.path.rpartition('/')[2]}" for one in self.cloud.journal.entries if one.is_write]


def _from_secret(key: str) -> dict[str, Any]:
    return {"valueFrom": {"secretKeyRef": {"name": "passwords", "key": key}}}


@asynccontextmanager
async def cluster_transfer(cluster: Access, namespace: str) -> AsyncIterator[ClusterTransfer]:
    async with LocalCloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC))) as cloud:
        environment = {
            "KUBECONFIG": str(cluster.kubeconfig),
            "POD_NAMESPACE": namespace,
            "SETPOINT_GCP_AUTH": "anonymous",
            "STORAGE_EMULATOR_HOST": cloud.url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud.url}/",
        }
        there = AppSettings("kubernetes", environment=environment)
        here = AppSettings("memory:", environment=environment)
        async with open_engine(here, Purpose.WRITE) as old, open_engine(there, Purpose.WRITE) as new:
            yield ClusterTransfer(cloud, old, new, namespace)


def play(cluster: Access, namespace: str, scenario: Callable[[ClusterTransfer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with cluster_transfer(cluster, namespace) as one:
            await one.declare()
            await scenario(one)

    asyncio.run(main())


IN_SYNC = {"shop": Decision.IN_SYNC, "app": Decision.IN_SYNC, "logs": Decision.IN_SYNC}


def test_the_first_steps_after_a_transfer_write_neither_to_the_cloud_nor_to_the_cluster(
    cluster: Access, namespace: str
) -> None:
    async def scenario(one: ClusterTransfer) -> None:
        arrivals = await one.import_into(await one.export())
        before = await one.states()

        assert [arrival.remarks for arrival in arrivals.values()] == [(), (), ()]
        assert await one.steps() == IN_SYNC
        assert (one.writes, await one.states()) == ([], before)

    play(cluster, namespace, scenario)


def test_an_import_killed_after_any_await_is_completed_by_the_next_one(cluster: Access, namespace: str) -> None:
    killed: list[bool] = []

    async def scenario(one: ClusterTransfer) -> None:
        export = await one.export()
        while not killed or killed[-1]:
            empty(cluster, namespace)
            interruption = Interruption(len(killed) + 1, die)
            with suppress(Killed):
                await one.import_into(export, replace(one.new, store=interruption.wrap(one.new.store)))
            await one.import_into(export)
            before = await one.states()
            assert await one.steps() == IN_SYNC
            assert (one.writes, await one.states()) == ([], before)
            again = await one.import_into(export)
            assert [arrival.is_new for arrival in again.values()] == [False, False, False]
            killed.append(interruption.has_happened)

    play(cluster, namespace, scenario)
    assert 20 < len(killed) < ENOUGH


def test_passwords_that_were_not_exported_are_the_only_writes(cluster: Access, namespace: str) -> None:
    async def scenario(one: ClusterTransfer) -> None:
        await one.secret(one.new)
        arrivals = await one.import_into(await one.export(with_secrets=False))
        remarks = {name: arrival.remarks for name, arrival in arrivals.items()}
        await one.steps()
        sent = one.writes
        await one.steps()

        assert remarks == {
            "shop": ("spec.rootPassword is not known to be the same here: it counts as new, and is sent once",),
            "app": ("spec.password is not known to be the same here: it counts as new, and is sent once",),
            "logs": (),
        }
        assert (len(sent), one.writes) == (2, sent)

    play(cluster, namespace, scenario)


def test_an_absent_namespace_is_reported_before_anything_is_written(cluster: Access, namespace: str) -> None:
    async def scenario(one: ClusterTransfer) -> None:
        export = await one.export()
        *rest, last = export.resources
        metadata: Any = last.resource.document["metadata"]
        moved = Resource({**last.resource.document, "metadata": {**metadata, "namespace": "nowhere-at-all"}})

        with pytest.raises(SetpointError, match='namespaces "nowhere-at-all" not found'):
            await one.import_into(replace(export, resources=(*rest, replace(last, resource=moved))))

        assert await one.states() == {}

    play(cluster, namespace, scenario)


def test_an_import_does_not_overwrite_a_change_by_another_writer(cluster: Access, namespace: str) -> None:
    async def scenario(one: ClusterTransfer) -> None:
        export = await one.export()
        await one.import_into(export)
        path = f"/apis/{STORAGE}/namespaces/{namespace}/storagebuckets/logs"
        assert cluster.call("PATCH", path, {"spec": {"storageClass": "NEARLINE"}}).status == 200
        before = await one.states()

        with pytest.raises(SetpointError, match=f"^StorageBucket {namespace}/logs: here already"):
            await one.import_into(export)

        assert await one.states() == before

    play(cluster, namespace, scenario)
