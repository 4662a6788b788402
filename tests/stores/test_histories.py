"""Histories: written with the status, in the same commit; bounded by count and by age; in files and in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.engine.history.memory_history import HistoryLimits, HistoryStore, MemoryHistory, PendingHistory
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.reports import HistoryEntry, HistoryType, NoReports, history_of_commit
from setpoint.stores.journal import StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import OpenMode, open_sqlite
from setpoint.testing.clock import VirtualClock

REF = ResourceRef("setpoint.dev", "KubernetesObject", "default", "one")
MANIFEST: dict[str, Any] = {
    "apiVersion": "setpoint.dev/v1alpha1",
    "kind": "KubernetesObject",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"manifest": {}},
}
LIMITS = StoreLimits(history=20, history_per_resource=5, history_days=2)


def entry(number: int, clock: VirtualClock) -> HistoryEntry:
    return HistoryEntry(HistoryType.STEP, clock.now(), {"n": number})


@asynccontextmanager
async def memory(clock: VirtualClock, _folder: Path) -> AsyncIterator[Any]:
    yield MemoryStore(clock, lambda: "uid", LIMITS)


@asynccontextmanager
async def sqlite(clock: VirtualClock, folder: Path) -> AsyncIterator[Any]:
    store = await open_sqlite(folder / "state.db", clock, lambda: "uid", OpenMode.WRITE, LIMITS)
    yield store
    await store.close()


Opener = Callable[[VirtualClock, Path], Any]


@pytest.fixture(params=[memory, sqlite])
def opened(request: pytest.FixtureRequest) -> Opener:
    found: Opener = request.param
    return found


async def add(store: Any, resource: Resource, *entries: HistoryEntry) -> Resource:
    after = await store.update(resource, ResourceUpdate(history=entries, annotations={"n": str(entries[-1].data["n"])}))
    assert isinstance(after, Resource)
    return after


def numbers(found: Any) -> list[Any]:
    return [one.data["n"] for one in found]


def test_the_newest_come_first_and_pages_follow_each_other(opened: Opener, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with opened(clock, tmp_path) as store:
            resource = await store.apply(MANIFEST)
            for number in range(4):
                resource = await add(store, resource, entry(number, clock))
            first = await store.history(REF, most=2)
            rest = await store.history(REF, before=first[-1].number, most=2)

            assert (numbers(first), numbers(rest)) == ([3, 2], [1, 0])
            assert len(await store.history(REF._replace(name="other"))) == 0
            assert isinstance(store, HistoryStore)

    asyncio.run(main())


def test_of_one_resource_the_newest_are_kept(opened: Opener, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with opened(clock, tmp_path) as store:
            resource = await store.apply(MANIFEST)
            for number in range(9):
                resource = await add(store, resource, entry(number, clock))

            assert numbers(await store.history(REF)) == [8, 7, 6, 5, 4]

    asyncio.run(main())


def test_what_is_too_old_is_dropped_with_the_next_entry(opened: Opener, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with opened(clock, tmp_path) as store:
            resource = await add(store, await store.apply(MANIFEST), entry(0, clock))
            clock.seconds += 3 * 24 * 3600
            await add(store, resource, entry(1, clock))

            assert numbers(await store.history(REF)) == [1]

    asyncio.run(main())


def test_all_histories_together_are_bounded(opened: Opener, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with opened(clock, tmp_path) as store:
            for name in range(8):
                metadata = {"name": f"r{name}", "namespace": "default"}
                resource = await store.apply({**MANIFEST, "metadata": metadata})
                await add(store, resource, *[entry(number, clock) for number in range(5)])
            kept = [await store.history(REF._replace(name=f"r{name}")) for name in range(8)]

            assert sum(map(len, kept)) == 20
            assert numbers(kept[-1]) == [4, 3, 2, 1, 0]

    asyncio.run(main())


def test_a_history_is_not_stored_when_its_update_conflicts(opened: Opener, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with opened(clock, tmp_path) as store:
            seen = await store.apply(MANIFEST)
            await store.annotate(seen, {"other": "writer"})
            with pytest.raises(Exception, match="changed"):
                await add(store, seen, entry(0, clock))

            assert len(await store.history(REF)) == 0

    asyncio.run(main())


def test_a_reader_of_a_file_sees_the_history_of_its_writer(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with sqlite(clock, tmp_path) as store:
            await add(store, await store.apply(MANIFEST), entry(0, clock))
            reader = await open_sqlite(tmp_path / "state.db", clock, lambda: "uid", OpenMode.READ)
            assert numbers(await reader.history(REF)) == [0]
            await reader.close()

    asyncio.run(main())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=40))
def test_a_history_in_memory_never_exceeds_its_limits(additions: list[tuple[int, int]]) -> None:
    clock, limits = VirtualClock(), HistoryLimits(per_resource=3, entries=7)
    history = MemoryHistory(limits)
    for name, count in additions:
        ref = REF._replace(name=str(name))
        history.add(ref, [entry(number, clock) for number in range(count)], clock.now())

    kept = [history.of(REF._replace(name=str(name)), None, 100) for name in range(4)]
    assert sum(map(len, kept)) <= 7
    assert max(map(len, kept)) <= 3
    if additions:
        last, count = additions[-1]
        assert numbers(kept[last])[:1] == [count - 1]


@given(
    st.dictionaries(
        st.text(), st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.booleans())
    )
)
def test_a_history_in_memory_gives_back_the_data_of_an_entry(data: dict[str, Any]) -> None:
    history = MemoryHistory()
    history.add(REF, [HistoryEntry(HistoryType.STEP, "2026-01-01T00:00:00Z", data)], "2026-01-01T00:00:00Z")

    (found,) = history.of(REF, None, 1)
    assert same(found.data, data)
    assert found == HistoryEntry(HistoryType.STEP, "2026-01-01T00:00:00Z", found.data, 1)


# --- What is stored with a status -------------------------------------------------------------------------------------


def resource_with(step: Any) -> Resource:
    return Resource({**MANIFEST, "status": {"setpoint": {"step": step}}})


def test_a_new_step_is_an_entry_and_the_same_again_is_none() -> None:
    step: dict[str, Any] = {"at": "2026-01-01T00:00:00Z", "decision": "create", "writes": []}
    same = history_of_commit(resource_with(step), {"setpoint": {"step": step}}, NoReports())
    new = history_of_commit(resource_with(None), {"setpoint": {"step": step}}, NoReports())

    assert same == ()
    assert new == (HistoryEntry(HistoryType.STEP, "2026-01-01T00:00:00Z", step),)


def test_values_that_sound_secret_are_not_stored() -> None:
    changes: list[Any] = [{"path": "spec.password", "before": "old", "after": "hunter2", "rule": "spec"}]
    step: dict[str, Any] = {
        "at": "2026-01-01T00:00:00Z",
        "writes": [{"action": "update", "name": "update", "changes": changes}],
    }
    (found,) = history_of_commit(resource_with(None), {"setpoint": {"step": step}}, NoReports())

    assert "hunter2" not in str(found.data)


def test_of_a_manifest_with_a_secret_no_value_is_stored() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": "b"}}
    document = {**MANIFEST, "spec": {"manifest": secret}}
    changes: list[Any] = [{"path": "data.a", "after": "hunter2", "rule": "spec"}]
    step: dict[str, Any] = {
        "at": "2026-01-01T00:00:00Z",
        "writes": [{"action": "create", "name": "create", "changes": changes}],
    }
    (found,) = history_of_commit(Resource(document), {"setpoint": {"step": step}}, NoReports())

    assert "hunter2" not in str(found.data)


def test_what_is_reported_waits_for_the_next_status_and_is_bounded() -> None:
    clock, pending = VirtualClock(), PendingHistory(most=2)
    for name in range(4):
        for number in range(30):
            pending.report(REF._replace(name=str(name)), entry(number, clock))
    taken = [pending.take_history(REF._replace(name=str(name))) for name in range(4)]

    assert [len(one) for one in taken] == [0, 0, 20, 20]
    assert numbers(taken[3])[-1] == 29
    assert pending.take_history(REF._replace(name="3")) == ()
