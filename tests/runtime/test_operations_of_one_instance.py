"""Dependants of one database instance: their operations are queued by us, and the service refuses none of them."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from itertools import count
from typing import Any

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.references import is_ready
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud
from setpoint.runtime.manager import Manager
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.kinds.instances import POSTGRES, instance
from tests.runtime.manager_harness import RecordingMetrics
from tests.runtime.test_list_resync_google import ADDRESS, DirectHttpClient

DEPENDANTS = 190


def _database(number: int) -> dict[str, Any]:
    parent = instance(POSTGRES, "shared")
    metadata = {**parent["metadata"], "name": f"data-{number}"}
    spec = {"instanceRef": {"name": "shared"}}
    return {"apiVersion": parent["apiVersion"], "kind": "SQLDatabase", "metadata": metadata, "spec": spec}


async def _advance_cloud(cloud: Cloud, clock: VirtualClock) -> None:
    while True:
        await clock.sleep(1)
        cloud.advance(1)


async def _create_and_delete_all(cloud: Cloud, clock: VirtualClock) -> None:
    """Applies an instance and its dependants to one process; once they are ready, all are deleted at once."""
    uids, metrics = count(), RecordingMetrics()
    google = GoogleClient(DirectHttpClient(cloud), GoogleSettings(ADDRESS, ADDRESS, GoogleAuth.ANONYMOUS))
    store = MemoryStore(clock, lambda: str(next(uids)))
    kinds: tuple[AnyKind, ...] = (SqlInstanceKind(google), SqlDatabaseKind(google))
    manager = Manager(
        EngineContext(store, clock, {(kind.group, kind.name): kind for kind in kinds}, metrics=metrics), metrics
    )
    for manifest in (instance(POSTGRES, "shared"), *map(_database, range(DEPENDANTS))):
        await store.apply(manifest)
    async with asyncio.TaskGroup() as group:
        process, time = group.create_task(manager.run()), group.create_task(_advance_cloud(cloud, clock))
        while not all(map(is_ready, (resources := (await store.list()).resources))):
            await clock.sleep(1)
        for resource in resources:
            await store.delete(resource.ref)
        while (await store.list()).resources:
            await clock.sleep(1)
        manager.stop()
        await process
        time.cancel()


def test_no_operation_of_190_dependants_is_refused_for_that_of_another() -> None:
    async def main() -> Cloud:
        cloud = Cloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC)))
        await _create_and_delete_all(cloud, VirtualClock())
        return cloud

    entries = run(main()).journal.entries

    # The instance is created and deleted, too.
    assert Counter((one.method, one.status) for one in entries if one.is_write) == {
        ("POST", 200): DEPENDANTS + 1,
        ("DELETE", 200): DEPENDANTS + 1,
    }
    assert [one for one in entries if one.status == 409] == []
