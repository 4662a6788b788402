"""Buckets and instances in the local cloud, kept by a process that lists them. On virtual time, without a network."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from urllib.parse import parse_qsl, urlsplit

import msgspec

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.references import is_ready
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.faults import FailRequest
from setpoint.runtime.manager import Manager
from setpoint.stores.memory import MemoryStore
from tests.kinds.instances import POSTGRES, instance
from tests.kinds.kind_harness import PROJECT, bucket
from tests.runtime.rig import Tally
from tests.runtime.virtual_time import VirtualClock, run

ADDRESS = "http://cloud"
BUCKETS = [f"bucket-{number:02}" for number in range(25)]
INSTANCES = [f"instance-{number:02}" for number in range(12)]


class Direct(HttpClient):
    """To a cloud in this very process."""

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
class Kept:
    """The cloud, the store, and what was measured of the process."""

    cloud: Cloud
    store: MemoryStore
    tally: Tally
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


def _play(scenario: Callable[[Kept], Awaitable[None]]) -> None:
    async def main() -> None:
        clock, uids, tally = VirtualClock(), count(), Tally()
        cloud = Cloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC)))
        google = GoogleClient(Direct(cloud), GoogleSettings(ADDRESS, ADDRESS, GoogleAuth.ANONYMOUS))
        store = MemoryStore(clock, lambda: str(next(uids)))
        kinds: tuple[AnyKind, ...] = (StorageBucketKind(google), SqlInstanceKind(google))
        engine = EngineContext(store, clock, {(kind.group, kind.name): kind for kind in kinds}, metrics=tally)
        manager = Manager(engine, tally)
        for name in BUCKETS:
            await store.apply(bucket({}, name))
        for name in INSTANCES:
            await store.apply(instance(POSTGRES, name))
        async with asyncio.TaskGroup() as group:
            process, time = group.create_task(manager.run()), group.create_task(_pass(cloud, clock))
            kept = Kept(cloud, store, tally, clock)
            await kept.settled()
            await clock.sleep(1_000)
            cloud.journal.clear()
            await scenario(kept)
            manager.stop()
            await process
            time.cancel()

    run(main())


async def _pass(cloud: Cloud, clock: VirtualClock) -> None:
    """The cloud's time is the process's."""
    while True:
        await clock.sleep(5)
        cloud.advance(5)


def test_in_an_hour_in_which_nothing_happens_nothing_but_lists_is_read() -> None:
    async def scenario(kept: Kept) -> None:
        await kept.clock.sleep(3_600)

        calls = kept.calls()
        assert set(calls) == {"GET /b", f"GET /projects/{PROJECT}/instances"}
        assert all(9 <= number <= 12 for number in calls.values())

    _play(scenario)


def test_what_somebody_changed_is_put_back() -> None:
    async def scenario(kept: Kept) -> None:
        kept.cloud.edit("/b/bucket-07", {"versioning": {"enabled": True}})
        path = f"/sql/v1beta4/projects/{PROJECT}/instances/instance-07"
        kept.cloud.edit(path, {"settings": {"activationPolicy": "NEVER"}})
        await kept.clock.sleep(1_000)

        live = kept.cloud.call("GET", path).body
        assert live is not None
        assert live["settings"]["activationPolicy"] == "ALWAYS"
        assert kept.cloud.storage.state.buckets["bucket-07"].resource["versioning"] == {"enabled": False}
        written = [entry.path.rpartition("/")[2] for entry in kept.cloud.journal.entries if entry.is_write]
        assert sorted(written) == ["bucket-07", "instance-07"]

    _play(scenario)


def test_whoever_may_not_list_looks_at_each() -> None:
    async def scenario(kept: Kept) -> None:
        kept.cloud.inject(FailRequest(403, "GET", "/b$", times=10**6))
        kept.cloud.inject(FailRequest(403, "GET", "/instances$", times=10**6))
        await kept.clock.sleep(3_600)

        calls = kept.calls()
        assert 1 <= calls["GET /b"] <= 2
        assert all(3 <= calls[f"GET /b/{name}"] <= 12 for name in BUCKETS)
        assert all(3 <= calls[f"GET /projects/{PROJECT}/instances/{name}"] <= 12 for name in INSTANCES)
        assert not any(entry.is_write for entry in kept.cloud.journal.entries)

    _play(scenario)
