"""Into a real cluster, step by step in one process: what it takes, what it refuses, and what a kill leaves behind."""

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
from setpoint.engine.context import EngineContext, Settled
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.reconcile import step
from setpoint.engine.transfer.export_format import ExportHeader, StoreExport
from setpoint.engine.transfer.exporter import gather_export
from setpoint.engine.transfer.importer import ImportedResource, check_import
from setpoint.errors import SetpointError
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.server import LocalCloud
from tests.cluster.access import Access
from tests.engine.interruptions import ENOUGH, Interruption, Killed, die
from tests.engine.transfer_harness import reread
from tests.scenarios.served_kinds import empty, serve_kinds

SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
HEADER: Final = ExportHeader("0.1.0", "2026-01-01T00:00:00Z", "memory", secrets=True, paused=True)


@pytest.fixture(scope="module")
def cluster(api_server: Access) -> Access:
    serve_kinds(api_server)
    return api_server


@dataclass(frozen=True, slots=True)
class Street:
    """A house in memory, a cluster, and the cloud that both look at."""

    cloud: LocalCloud
    old: EngineContext
    new: EngineContext
    namespace: str

    async def declare(self, spec: Mapping[str, Any] | None = None) -> None:
        """An instance with a root password, a user in it and a bucket: made, and settled, in the old house."""
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

    async def bring(self, export: StoreExport, engine: EngineContext | None = None) -> dict[str, ImportedResource]:
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
async def street(cluster: Access, namespace: str) -> AsyncIterator[Street]:
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
            yield Street(cloud, old, new, namespace)


def play(cluster: Access, namespace: str, scenario: Callable[[Street], Awaitable[None]]) -> None:
    async def main() -> None:
        async with street(cluster, namespace) as one:
            await one.declare()
            await scenario(one)

    asyncio.run(main())


IN_SYNC = {"shop": Decision.IN_SYNC, "app": Decision.FIRST_LOOK, "logs": Decision.IN_SYNC}


def test_the_first_steps_there_write_neither_to_the_cloud_nor_to_the_cluster(cluster: Access, namespace: str) -> None:
    async def scenario(one: Street) -> None:
        arrivals = await one.bring(await one.export())
        before = await one.states()

        assert [arrival.remarks for arrival in arrivals.values()] == [(), (), ()]
        assert await one.steps() == IN_SYNC
        assert (one.writes, await one.states()) == ([], before)

    play(cluster, namespace, scenario)


def test_killed_after_any_await_it_is_run_again_and_ends_as_if_never_killed(cluster: Access, namespace: str) -> None:
    killed: list[bool] = []

    async def scenario(one: Street) -> None:
        export = await one.export()
        while not killed or killed[-1]:
            empty(cluster, namespace)
            interruption = Interruption(len(killed) + 1, die)
            with suppress(Killed):
                await one.bring(export, replace(one.new, store=interruption.wrap(one.new.store)))
            await one.bring(export)
            before = await one.states()
            assert await one.steps() == IN_SYNC
            assert (one.writes, await one.states()) == ([], before)
            again = await one.bring(export)
            assert [arrival.is_new for arrival in again.values()] == [False, False, False]
            killed.append(interruption.has_happened)

    play(cluster, namespace, scenario)
    assert 20 < len(killed) < ENOUGH


def test_passwords_that_did_not_come_along_are_all_that_is_sent(cluster: Access, namespace: str) -> None:
    async def scenario(one: Street) -> None:
        await one.secret(one.new)
        arrivals = await one.bring(await one.export(with_secrets=False))
        told = {name: arrival.remarks for name, arrival in arrivals.items()}
        await one.steps()
        sent = one.writes
        await one.steps()

        assert told == {
            "shop": ("spec.rootPassword is not known to be the same here: it counts as new, and is sent once",),
            "app": ("spec.password is not known to be the same here: it counts as new, and is sent once",),
            "logs": (),
        }
        assert (len(sent), one.writes) == (2, sent)

    play(cluster, namespace, scenario)


def test_a_namespace_that_is_not_there_is_told_before_anything_is_written(cluster: Access, namespace: str) -> None:
    async def scenario(one: Street) -> None:
        export = await one.export()
        *rest, last = export.resources
        metadata: Any = last.resource.document["metadata"]
        moved = Resource({**last.resource.document, "metadata": {**metadata, "namespace": "nowhere-at-all"}})

        with pytest.raises(SetpointError, match='namespaces "nowhere-at-all" not found'):
            await one.bring(replace(export, resources=(*rest, replace(last, resource=moved))))

        assert await one.states() == {}

    play(cluster, namespace, scenario)


def test_a_change_by_another_writer_in_the_cluster_is_left_alone(cluster: Access, namespace: str) -> None:
    async def scenario(one: Street) -> None:
        export = await one.export()
        await one.bring(export)
        path = f"/apis/{STORAGE}/namespaces/{namespace}/storagebuckets/logs"
        assert cluster.call("PATCH", path, {"spec": {"storageClass": "NEARLINE"}}).status == 200
        before = await one.states()

        with pytest.raises(SetpointError, match=f"^StorageBucket {namespace}/logs: here already"):
            await one.bring(export)

        assert await one.states() == before

    play(cluster, namespace, scenario)
