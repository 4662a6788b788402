"""Resources of 40 kinds of the catalogue: a settled store of them, and what a process uses that manages them."""

import asyncio
import sys
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from benchmarks.process_memory import resident_bytes
from benchmarks.setpoint_process import samples_in
from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.decide import Decision
from setpoint.core.schema.shape import shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import SystemClock
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.localcloud.cloud import Cloud, CloudState, save_state
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite

CLOCK: Final = SystemClock()
RECONCILE_INTERVAL: Final = "cnrm.cloud.google.com/reconcile-interval-in-seconds"
DECISIONS: Final = "setpoint_decisions_total"
IN_SYNC: Final = Decision.IN_SYNC.value
RESOURCE_KINDS: Final = 40
_POLL_SECONDS: Final = 0.2


class KindsUsage(msgspec.Struct):
    """Of all kinds of the catalogue: CPU seconds to know their names, read their rows, make their types; and memory."""

    kinds: int
    known_seconds: float
    row_seconds: float
    type_seconds: float
    memory: int


class FleetUsage(msgspec.Struct):
    """Resident bytes when idle; CPU seconds until ready."""

    idle: int
    start_seconds: float
    resources: int
    in_sync: int


# --- The settled store ------------------------------------------------------------------------------------------------


def write_settled_fleet(store: Path, state: Path, count: int) -> list[GroupKind]:
    """Creates a store with `count` settled resources, and the state of a local cloud with their objects; the kinds."""
    return asyncio.run(_settle(store, state, count))


async def _settle(path: Path, state: Path, count: int) -> list[GroupKind]:
    # Not in the process that is measured.
    from soak.catalogue_subjects import catalogue_subjects, make_containers
    from tests.catalogue_kinds.in_process import URL, InProcessClient

    subjects, draw = catalogue_subjects(RESOURCE_KINDS, count), Random(1)
    names = sorted({(one.group, one.kind) for one in subjects})
    cloud = Cloud(operation_seconds=0)
    make_containers(subjects, cloud)
    google = GoogleClient(InProcessClient(cloud), _settings(URL))
    store = await _open_store(path)
    try:
        engine = EngineContext(store, CLOCK, _kinds(google, names))
        for subject in subjects:
            manifest = subject.manifest(draw)
            # At rest for as long as it is by default.
            del manifest["metadata"]["annotations"][RECONCILE_INTERVAL]
            resource = await store.apply(manifest)
            outcome = await step(resource.ref, engine)
            assert isinstance(outcome, Settled), outcome
    finally:
        await store.close()
    save_state(state, CloudState(cloud.sql.state, cloud.storage.state, cloud.google.state))
    return names


async def _open_store(path: Path) -> SqliteStore:
    return await open_sqlite(path, CLOCK, lambda: str(uuid.uuid4()))


def _settings(url: str) -> GoogleSettings:
    return GoogleSettings(url, url, GoogleAuth.ANONYMOUS, base=url)


def _kinds(google: GoogleClient, names: Iterable[GroupKind]) -> dict[GroupKind, AnyKind]:
    return {name: GoogleKind.of(facts_of(name), google) for name in names}


# --- The process that is measured -------------------------------------------------------------------------------------


def _kinds_usage() -> KindsUsage:
    begun = time.process_time()
    names = list(kinds_by_group())
    known = time.process_time()
    at_start = resident_bytes()
    google = GoogleClient(HttpClient(), _settings("http://nowhere.test"))
    rows_begun = time.process_time()
    rows = [facts_of(name) for name in names]
    rows_ended = time.process_time()
    kinds = [GoogleKind.of(row, google) for row in rows]
    shapes = [shape_of(kind.tree_type) for kind in kinds]
    ended = time.process_time()
    assert len(shapes) == len(names)
    return KindsUsage(
        len(names), known - begun, rows_ended - rows_begun, ended - rows_ended, resident_bytes() - at_start
    )


async def _fleet_usage(path: Path, url: str, names: Sequence[GroupKind]) -> FleetUsage:
    google = GoogleClient(HttpClient(), _settings(url))
    begun = time.process_time()
    store = await _open_store(path)
    engine = EngineContext(store, CLOCK, _kinds(google, names))
    telemetry = Telemetry([google.budgets])
    manager = Manager(replace(engine, metrics=telemetry), telemetry)
    telemetry.watch(manager)
    running = asyncio.create_task(manager.run())
    while not manager.is_ready:
        await asyncio.sleep(0)
    start_seconds = time.process_time() - begun
    in_sync = 0
    # What met an outage of a busy machine comes again.
    while not _is_idle(manager) or in_sync < len(manager.index):
        await asyncio.sleep(_POLL_SECONDS)
        page, _ = await telemetry.page()
        in_sync = sum(int(one.value) for one in samples_in(page, DECISIONS) if one.labels["decision"] == IN_SYNC)
    resources = len(manager.index)
    usage = FleetUsage(resident_bytes(), start_seconds, resources, in_sync)
    manager.stop()
    await running
    await store.close()
    await google.close()
    return usage


def _is_idle(manager: Manager) -> bool:
    """Whether every resource has been reconciled and is scheduled for its resync."""
    queues = [one.queue.snapshot() for one in manager.controllers.values()]
    if any(one.processing or any(one.depth.values()) for one in queues):
        return False
    return sum(one.delayed for one in queues) == len(manager.index)


def main() -> None:
    """Prints the usage as JSON: of the kinds, or of a process over a store with the cloud at a URL."""
    match sys.argv[1:]:
        case ["fleet", path, url, *kinds]:
            names = [(group, kind) for group, _, kind in (one.partition("/") for one in kinds)]
            usage: FleetUsage | KindsUsage = asyncio.run(_fleet_usage(Path(path), url, names))
        case _:
            usage = _kinds_usage()
    print(msgspec.json.encode(usage).decode())


if __name__ == "__main__":
    main()
