"""The same manifests, reconciled by Config Connector's rules and by setpoint, each with its own service."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import OperationRunning
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.stores.memory import MemoryStore
from tests.conformance.upstream_instance import UpstreamInstance
from tests.conformance.wire import PROJECT, Wire, WiredHttp, WireRequest
from tests.engine.clock import FakeClock

ADDRESS = "http://service.test"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """The steps of a recording: a resource is created, changed, reconciled once more, and deleted."""

    create: Manifest
    update: Manifest | None = None
    dependencies: Sequence[Manifest] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)


def written_by_setpoint(shape: Shape, wire: Wire) -> list[WireRequest]:
    """All writes of setpoint; every reconcile has to succeed, and the last one before the deletion to write nothing."""
    return asyncio.run(_run(shape, wire))


def written_upstream(shape: Shape, wire: Wire) -> list[WireRequest]:
    """All writes of Config Connector, for shapes with instances only."""
    upstream = UpstreamInstance(wire, shape.secrets)
    last = shape.update or shape.create
    for manifest in (*shape.dependencies, shape.create, last, last):
        upstream.apply(manifest)
    for manifest in (last, *reversed(shape.dependencies)):
        upstream.delete(manifest)
    return wire.writes


async def _run(shape: Shape, wire: Wire) -> list[WireRequest]:
    google = GoogleClient(WiredHttp(wire), GoogleSettings(ADDRESS, ADDRESS, GoogleAuth.ANONYMOUS))
    clock, uids = FakeClock(), count()
    store = MemoryStore(clock, lambda: str(next(uids)))
    kinds: list[AnyKind] = [SqlInstanceKind(google), SqlDatabaseKind(google), SqlUserKind(google)]
    kinds.append(StorageBucketKind(google))
    engine = EngineContext(store, clock, {(kind.group, kind.name): kind for kind in kinds})
    for name, text in shape.secrets.items():
        await store.apply(secret(name, text))
    for manifest in (*shape.dependencies, shape.create, *([shape.update] if shape.update else [])):
        _expect(await _reconcile((await store.apply(manifest)).ref, engine), Settled)
    before, primary = len(wire.writes), Resource(shape.create).ref
    _expect(await _reconcile(primary, engine, requested=True), Settled)
    assert wire.writes[before:] == [], "the last reconcile wrote something"
    for ref in (primary, *(Resource(manifest).ref for manifest in reversed(shape.dependencies))):
        await store.delete(ref)
        _expect(await _reconcile(ref, engine), Gone)
    return wire.writes


def _expect(outcome: StepOutcome, type_: type[Settled | Gone]) -> None:
    assert isinstance(outcome, type_), outcome
    if isinstance(outcome, Settled):
        assert outcome.ready.reason == "UpToDate", outcome.ready


async def _reconcile(ref: ResourceRef, engine: EngineContext, *, requested: bool = False) -> StepOutcome:
    while True:
        outcome = await step(ref, engine, requested=requested)
        if not (isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)):
            return outcome
        requested = False


def secret(name: str, text: str) -> Manifest:
    """A Secret with one password in it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": PROJECT},
        "stringData": {"password": text},
    }
