"""Sets in a store: declarations are all or nothing, and only what left its set can be pruned."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from setpoint.engine.resource import ResourceRef
from setpoint.engine.sets.resource_set import (
    SetDeclaration,
    SetMember,
    SetRecord,
    SetState,
    is_leaving,
    set_of,
    source_of,
)
from setpoint.errors import ManifestInvalid, NotReady, WriteConflict
from setpoint.stores.memory import MemoryStore
from setpoint.stores.record_store import RecordStore
from setpoint.stores.sqlite.store import open_sqlite
from setpoint.testing.clock import VirtualClock

Program = Callable[[RecordStore], Awaitable[None]]
REF = ResourceRef("", "ConfigMap", "default", "a")


@asynccontextmanager
async def _opened(name: str, folder: Path) -> AsyncIterator[RecordStore]:
    numbers = count()
    clock = VirtualClock()
    if name == "memory":
        yield MemoryStore(clock, lambda: f"uid-{next(numbers)}")
        return
    store = await open_sqlite(folder / "state.db", clock, lambda: f"uid-{next(numbers)}")
    yield store
    await store.close()


@pytest.fixture(params=["memory", "sqlite"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Program], None]:
    """Runs a program on a new store."""

    def run(program: Program) -> None:
        async def on_store() -> None:
            async with _opened(request.param, tmp_path) as store:
                await program(store)

        asyncio.run(on_store())

    return run


def _manifest(name: str = "a", data: str = "x") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": data}}


def _declaration(*members: SetMember, **more: Any) -> SetDeclaration:
    return SetDeclaration(members, more.get("leaving", ()), more.get("released", ()), more.get("records", ()))


def _member(name: str = "a", own: str = "one", source: str = "c1:a.yaml", seen: str = "", data: str = "x") -> SetMember:
    return SetMember(_manifest(name, data), own, source, seen)


async def _annotations(store: RecordStore) -> Any:
    found = await store.get(REF)
    assert found is not None
    return found.annotations


def test_a_member_has_its_set_and_its_source(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member(), records=(SetRecord("one", revision="c1"),)))

        found = await _annotations(store)
        assert (set_of(found), source_of(found)) == ("one", "c1:a.yaml")
        assert await store.sets() == (SetRecord("one", revision="c1"),)

    run(program)


def test_a_later_revision_that_says_nothing_new_writes_nothing_but_a_new_name_of_the_file(
    run: Callable[[Program], None],
) -> None:
    async def program(store: RecordStore) -> None:
        (first,) = await store.declare(_declaration(_member()))
        (second,) = await store.declare(_declaration(_member(source="c2:a.yaml")))
        (third,) = await store.declare(_declaration(_member(source="c3:b.yaml")))

        assert second.revision == first.revision
        assert (third.generation, source_of(third.annotations)) == (1, "c3:b.yaml")

    run(program)


def test_an_apply_without_a_set_keeps_the_set(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member()))
        forged = _manifest(data="y")
        forged["metadata"]["annotations"] = {"setpoint.dev/set": "two", "setpoint.dev/source": "me"}
        await store.apply(forged)

        found = await _annotations(store)
        assert (set_of(found), source_of(found)) == ("one", "c1:a.yaml")

    run(program)


def test_one_wrong_member_leaves_nothing_declared(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member("b", own="two")))
        wrong = (_member("Not A Name"), _member("b", own="one"))
        for member, error in zip(wrong, (ManifestInvalid, WriteConflict), strict=True):
            with pytest.raises(error):
                await store.declare(_declaration(_member(), member, records=(SetRecord("one"),)))

        assert await store.get(REF) is None
        assert await store.sets() == ()

    run(program)


def test_a_member_moves_from_the_set_that_was_seen(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        (before,) = await store.declare(_declaration(_member()))
        (after,) = await store.declare(_declaration(_member(own="two", seen="one")))

        assert (set_of(after.annotations), after.uid) == ("two", before.uid)

    run(program)


def test_only_what_left_its_set_is_pruned(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member()))
        await store.prune(REF, "one")
        assert await store.get(REF) is not None
        await store.declare(_declaration(leaving=((REF, "two"),)))
        assert not is_leaving(await _annotations(store))

        await store.declare(_declaration(leaving=((REF, "one"),)))
        assert is_leaving(await _annotations(store))
        await store.prune(REF, "two")
        assert await store.get(REF) is not None
        assert await store.prune(REF, "one") is None

        assert await store.get(REF) is None

    run(program)


def test_what_is_declared_again_is_not_pruned(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member()))
        await store.declare(_declaration(leaving=((REF, "one"),)))
        await store.declare(_declaration(_member(source="c3:a.yaml")))
        await store.prune(REF, "one")

        assert source_of(await _annotations(store)) == "c3:a.yaml"

    run(program)


def test_a_member_without_a_file_that_left_and_is_declared_again_is_not_pruned(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member(source="c1")))
        await store.declare(_declaration(leaving=((REF, "one"),)))
        await store.declare(_declaration(_member(source="c3")))
        await store.prune(REF, "one")

        assert source_of(await _annotations(store)) == "c3"

    run(program)


def test_what_is_released_belongs_to_no_set(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        await store.declare(_declaration(_member()))
        await store.declare(_declaration(released=((REF, "one"),)))

        assert dict(await _annotations(store)) == {}

    run(program)


def test_a_resource_that_is_being_deleted_is_not_declared(run: Callable[[Program], None]) -> None:
    async def program(store: RecordStore) -> None:
        (made,) = await store.declare(_declaration(_member()))
        await store.set_finalizers(made, ("a/b",))
        await store.delete(REF)

        with pytest.raises(NotReady):
            await store.declare(_declaration(_member(data="y")))

    run(program)


def test_records_are_there_after_the_store_was_closed(tmp_path: Path) -> None:
    record = SetRecord("one", "/a", "c1", "now", 3, SetState.FAILED, "why", "c2", "later")

    async def program() -> tuple[SetRecord, ...]:
        async with _opened("sqlite", tmp_path) as store:
            await store.keep_set(record)
        async with _opened("sqlite", tmp_path) as store:
            return await store.sets()

    assert asyncio.run(program()) == (record,)
