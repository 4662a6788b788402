"""Buckets and instances in the local cloud, resynced by lists. On virtual time, without a network."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.references import is_ready
from setpoint.engine.resource import ResourceRef
from setpoint.engine.tenancy.tenants import Tenancy, Tenant
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.faults import FailRequest
from setpoint.runtime.manager import Manager
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.kinds.instances import POSTGRES, instance
from tests.kinds.kind_harness import PROJECT, bucket
from tests.runtime.manager_harness import RecordingMetrics

ADDRESS = "http://cloud"
BUCKETS = [f"bucket-{number:02}" for number in range(25)]
INSTANCES = [f"instance-{number:02}" for number in range(12)]


class DirectHttpClient(HttpClient):
    """Sends requests to a cloud in the same process."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self._cloud = cloud

    async def send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        asked = CloudRequest(request.method, parts.path, query, request.body or b"", "application/json")
        answer = self._cloud.handle(asked)
        assert answer is not None
        body = b"" if answer.body is None else msgspec.json.encode(answer.body)
        return HttpResponse(answer.status, {"Content-Type": "application/json", **answer.headers}, body)


@dataclass(slots=True)
class CloudHarness:
    """The cloud, the store, and the metrics of the manager."""

    cloud: Cloud
    store: MemoryStore
    metrics: RecordingMetrics
    clock: VirtualClock

    async def settled(self) -> None:
        while not all(map(is_ready, (await self.store.list()).resources)):
            await self.clock.sleep(1)

    def calls(self) -> Counter[str]:
        """How often each path was read, and everything else was done."""
        entries = self.cloud.journal.entries
        return Counter(
            f"GET {entry.path.removeprefix('/sql/v1beta4').removeprefix('/storage/v1')}"
            if entry.method == "GET"
            else entry.method
            for entry in entries
        )


class EveryReference:
    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> None:
        """Everything is granted."""


async def _tenant_of(namespace: str) -> Tenant:
    return Tenant(namespace, PROJECT if namespace == "team" else f"project-{namespace}")


def _play(
    scenario: Callable[[CloudHarness], Awaitable[None]],
    tenancy: Tenancy | None = None,
    more: Sequence[dict[str, Any]] = (),
) -> None:
    async def main() -> None:
        clock, uids, metrics = VirtualClock(), count(), RecordingMetrics()
        cloud = Cloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC)))
        google = GoogleClient(
            DirectHttpClient(cloud),
            GoogleSettings(ADDRESS, ADDRESS, GoogleAuth.ANONYMOUS),
            requires_tenant=tenancy is not None,
        )
        store = MemoryStore(clock, lambda: str(next(uids)))
        kinds: tuple[AnyKind, ...] = (StorageBucketKind(google), SqlInstanceKind(google))
        engine = EngineContext(
            store, clock, {(kind.group, kind.name): kind for kind in kinds}, metrics=metrics, tenancy=tenancy
        )
        manager = Manager(engine, metrics)
        declared = [*(bucket({}, name) for name in BUCKETS), *(instance(POSTGRES, name) for name in INSTANCES), *more]
        for manifest in declared:
            await store.apply(manifest)
        async with asyncio.TaskGroup() as group:
            process, time = group.create_task(manager.run()), group.create_task(_advance_cloud(cloud, clock))
            harness = CloudHarness(cloud, store, metrics, clock)
            await harness.settled()
            await clock.sleep(1_000)
            cloud.journal.clear()
            await scenario(harness)
            manager.stop()
            await process
            time.cancel()

    run(main())


async def _advance_cloud(cloud: Cloud, clock: VirtualClock) -> None:
    """Advances the clock of the cloud with the virtual time."""
    while True:
        await clock.sleep(5)
        cloud.advance(5)


def test_an_hour_without_changes_reads_only_lists() -> None:
    async def scenario(harness: CloudHarness) -> None:
        await harness.clock.sleep(3_600)

        calls = harness.calls()
        assert set(calls) == {"GET /b", f"GET /projects/{PROJECT}/instances"}
        assert all(9 <= number <= 12 for number in calls.values())

    _play(scenario)


def test_each_tenant_lists_its_own_objects_on_its_own_behalf() -> None:
    """Without a tenant, the client sends nothing."""
    others = [
        {**one, "metadata": {"name": f"other-{number:02}", "namespace": "other"}}
        for number, one in enumerate(bucket({}) for _ in range(12))
    ]

    async def scenario(harness: CloudHarness) -> None:
        await harness.clock.sleep(3_600)

        calls = harness.calls()
        projects = Counter(one.query["project"] for one in harness.cloud.journal.entries if one.path == "/storage/v1/b")
        assert set(calls) == {"GET /b", f"GET /projects/{PROJECT}/instances"}
        assert set(projects) == {PROJECT, "project-other"}
        assert all(9 <= number <= 12 for number in projects.values())

    _play(scenario, Tenancy(_tenant_of, EveryReference()), others)


def test_drift_is_corrected() -> None:
    async def scenario(harness: CloudHarness) -> None:
        harness.cloud.edit("/b/bucket-07", {"versioning": {"enabled": True}})
        path = f"/sql/v1beta4/projects/{PROJECT}/instances/instance-07"
        harness.cloud.edit(path, {"settings": {"activationPolicy": "NEVER"}})
        await harness.clock.sleep(1_000)

        live = harness.cloud.call("GET", path).body
        assert live is not None
        assert live["settings"]["activationPolicy"] == "ALWAYS"
        assert harness.cloud.storage.state.buckets["bucket-07"].resource["versioning"] == {"enabled": False}
        written = [entry.path.rpartition("/")[2] for entry in harness.cloud.journal.entries if entry.is_write]
        assert sorted(written) == ["bucket-07", "instance-07"]

    _play(scenario)


def test_without_permission_to_list_each_object_is_observed() -> None:
    async def scenario(harness: CloudHarness) -> None:
        harness.cloud.inject(FailRequest(403, "GET", "/b$", times=10**6))
        harness.cloud.inject(FailRequest(403, "GET", "/instances$", times=10**6))
        await harness.clock.sleep(3_600)

        calls = harness.calls()
        assert 1 <= calls["GET /b"] <= 2
        assert all(3 <= calls[f"GET /b/{name}"] <= 12 for name in BUCKETS)
        assert all(3 <= calls[f"GET /projects/{PROJECT}/instances/{name}"] <= 12 for name in INSTANCES)
        assert not any(entry.is_write for entry in harness.cloud.journal.entries)

    _play(scenario)
