"""A snapshot reads as the store did at one moment, and cannot be written to."""

import asyncio
from typing import Any

import pytest

from setpoint.clients.write_guard import BlockedWrites
from setpoint.engine.ports import EVERYTHING, ResourceQuery, ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import NotRecorded, StoreError, WriteBlocked
from setpoint.replay.snapshot import StoreSnapshot, take_snapshot
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.stores.samples import instance
from tests.stores.store_methods import WRITES, arguments_for, verb_of

OTHER = ResourceRef("", "Secret", "default", "other")


async def _taken(*, is_whole: bool = True) -> tuple[MemoryStore, StoreSnapshot]:
    store = MemoryStore(FakeClock(), lambda: "uid")
    for name in ("a", "b", "c"):
        await store.apply(instance(name))
    return store, await take_snapshot(store, BlockedWrites(), is_whole=is_whole)


def test_a_snapshot_reads_as_the_store_did_whatever_is_written_later() -> None:
    async def scenario() -> None:
        store, taken = await _taken()
        before = await store.list()
        ref = before.resources[0].ref
        await store.apply(instance("d"))
        await store.delete(before.resources[1].ref)

        assert await taken.list() == before
        assert await taken.get(ref) == before.resources[0]
        assert await taken.get(before.resources[1].ref) == before.resources[1]
        assert await taken.get(OTHER) is None
        assert (await taken.list(ResourceQuery(kind="Secret"))).resources == ()
        assert (await taken.list(ResourceQuery(labels={"no": "such"}))).resources == ()
        assert (await taken.events(), await taken.leases("")) == ((), ())
        await taken.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 2, 3, 500])
def test_pages_of_a_snapshot_are_complete(size: int) -> None:
    async def scenario() -> tuple[list[Resource], list[Resource]]:
        store, taken = await _taken()
        paged = [one async for page in taken.pages(EVERYTHING, size) for one in page.resources]
        return paged, list((await store.list()).resources)

    paged, listed = asyncio.run(scenario())

    assert paged == listed


def test_an_empty_store_has_one_empty_page() -> None:
    async def scenario() -> list[tuple[Resource, ...]]:
        taken = await take_snapshot(MemoryStore(FakeClock(), lambda: "uid"), BlockedWrites(), is_whole=True)
        return [page.resources async for page in taken.pages()]

    assert asyncio.run(scenario()) == [()]


def test_a_snapshot_cannot_be_watched() -> None:
    async def scenario() -> None:
        _, taken = await _taken()
        taken.watch(taken.revision)

    with pytest.raises(StoreError, match="does not change"):
        asyncio.run(scenario())


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_blocked_and_recorded(name: str) -> None:
    taken = asyncio.run(_taken())[1]
    write = getattr(taken, name)

    with pytest.raises(WriteBlocked, match=rf"^{verb_of(name)} .* \(store\): nothing may be written"):
        asyncio.run(write(*arguments_for(write)))

    assert [(one.way, one.method) for one in taken.blocked_writes.writes] == [("store", verb_of(name))]


def test_every_part_of_a_blocked_update_is_recorded() -> None:
    taken = asyncio.run(_taken())[1]
    update = ResourceUpdate(status={"a": 1}, finalizers=("f",), annotations={"b": None})

    with pytest.raises(WriteBlocked):
        asyncio.run(taken.update(Resource(instance()), update))

    (blocked,) = taken.blocked_writes.writes
    assert blocked.body == {"status": {"a": 1}, "metadata": {"finalizers": ["f"], "annotations": {"b": None}}}


def test_a_blocked_write_of_a_secret_is_redacted() -> None:
    taken = asyncio.run(_taken())[1]
    secret: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"a": "hunter2"},
    }

    with pytest.raises(WriteBlocked):
        asyncio.run(taken.apply(secret))

    assert "hunter2" not in str(taken.blocked_writes.writes)


# --- What a store does not list ---------------------------------------------------------------------------------------


def test_an_unlisted_resource_is_read_once() -> None:
    async def scenario() -> None:
        store, taken = await _taken(is_whole=False)
        await store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "stringData": {}})
        first = await taken.get(OTHER)
        await store.delete(OTHER)
        gone = ResourceRef("", "Secret", "default", "gone")

        assert first is not None
        assert await taken.get(OTHER) == first
        assert await taken.get(gone) is None
        assert (taken.absent, taken.unlisted) == ({gone}, {OTHER})
        assert OTHER not in [one.ref for one in (await taken.list()).resources]

    asyncio.run(scenario())


def test_a_read_that_was_not_recorded_is_an_error() -> None:
    async def scenario() -> None:
        _, taken = await _taken(is_whole=False)
        taken.source = None
        await taken.get(OTHER)

    with pytest.raises(NotRecorded, match="Secret default/other was not asked for"):
        asyncio.run(scenario())
