"""Dry run of a step: its requests are captured, and nothing is sent or stored."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from setpoint.clients.write_guard import BlockedWrites
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Resource
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.errors import Bug
from setpoint.replay.dry_run import WriteCaptureStore, dry_run_requests
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref


def test_a_kind_without_write_guard_support_is_not_dry_run() -> None:
    async def main() -> tuple[Any, list[Any]]:
        service, store = Service(), MemoryStore(FakeClock(), lambda: "uid")
        kind = GadgetKind(service)
        engine = EngineContext(store, FakeClock(), {(kind.group, kind.name): kind})
        await store.apply(gadget("g", {"size": 1}))
        found = PreviewResult(gadget_ref("g"), PreviewFinding.WRITES)
        return await dry_run_requests(found, engine, BlockedWrites()), service.calls

    assert asyncio.run(main()) == ((), [])


class GuardedGadgetKind(GadgetKind):
    """A kind that writes through our clients only."""

    writes_through_clients = True


def test_a_dry_run_needs_a_write_guard() -> None:
    service = Service()

    async def main() -> None:
        store, kind = MemoryStore(FakeClock(), lambda: "uid"), GuardedGadgetKind(service)
        engine = EngineContext(store, FakeClock(), {(kind.group, kind.name): kind})
        await store.apply(gadget("g", {"size": 1}))
        await dry_run_requests(PreviewResult(gadget_ref("g"), PreviewFinding.WRITES), engine, BlockedWrites())

    with pytest.raises(Bug, match="only where writes are stopped"):
        asyncio.run(main())
    assert service.calls == []


DOCUMENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "n", "uid": "1", "annotations": {"a": "b", "c": "d"}, "finalizers": ["f"]},
    "data": {"x": "1"},
    "status": {"s": 1},
}


def run_on_capture_store(
    verb: Callable[[WriteCaptureStore, Resource], Awaitable[Any]],
) -> tuple[Any, list[str], Resource | None]:
    """The result, the captured writes, and the resource as a step would read it afterwards."""

    async def main() -> tuple[Any, list[str], Resource | None]:
        blocked_writes, resource = BlockedWrites(), Resource(DOCUMENT)
        store = WriteCaptureStore(MemoryStore(FakeClock(), lambda: "uid"), {resource.ref: resource}, blocked_writes)
        outcome = await verb(store, resource)
        return outcome, [str(one) for one in blocked_writes.writes], await store.get(resource.ref)

    return asyncio.run(main())


def test_a_step_reads_back_its_own_status_and_nothing_is_captured() -> None:
    async def verb(store: WriteCaptureStore, resource: Resource) -> Any:
        seen = await store.update_status(resource, {"s": 2})
        seen = await store.annotate(seen, {"a": None, "e": "f"})
        await store.record_event(EventRecord(resource.ref, "1", "Normal", "r", "m", "2026-01-01T00:00:00Z"))
        return await store.set_finalizers(seen, ("f", "g"))

    _, record, seen = run_on_capture_store(verb)

    assert record == []
    assert seen is not None
    assert (seen.status, seen.annotations, seen.finalizers) == ({"s": 2}, {"c": "d", "e": "f"}, ("f", "g"))
    assert seen.uid == "1"


def test_removing_the_last_finalizer_of_a_deleted_resource_removes_it() -> None:
    metadata = {**DOCUMENT["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    going = Resource({**DOCUMENT, "metadata": metadata})

    assert run_on_capture_store(lambda store, _: store.set_finalizers(going, ()))[0] is None
    assert run_on_capture_store(lambda store, _: store.set_finalizers(going, ("f",)))[0] is not None


def test_writes_to_children_are_captured_and_read_back() -> None:
    new = {**DOCUMENT, "metadata": {"name": "c", "namespace": "n", "labels": {"l": "m"}}, "data": {"x": "2"}}
    del new["status"]

    made, record, seen = run_on_capture_store(lambda store, _: store.create(new))
    assert (record, seen) == (["create ConfigMap n/c (store)"], made)

    _, record, seen = run_on_capture_store(lambda store, resource: store.replace(resource, new))
    assert record == ["replace ConfigMap n/c (store)"]
    assert seen is not None
    assert (seen.document["data"], seen.status, seen.uid, seen.labels) == ({"x": "2"}, {"s": 1}, "1", {"l": "m"})

    _, record, _ = run_on_capture_store(lambda store, resource: store.delete(resource.ref))
    assert record == ["delete ConfigMap n/c (store)"]
