"""How far back a watch can start."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from setpoint.engine.ports import Store
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired
from setpoint.stores.journal import StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.samples import REF, brief, instance, take

FIVE = StoreLimits(changes=5)


@pytest.fixture(params=["memory", "sqlite"])
def forgetful(
    request: pytest.FixtureRequest, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> Store:
    if request.param == "memory":
        return MemoryStore(clock, new_uid, FIVE)
    return loop.run(open_sqlite(tmp_path / "state.db", clock, new_uid, limits=FIVE))


def test_a_watch_goes_back_as_far_as_the_limit_and_not_one_change_further(
    forgetful: Store, loop: asyncio.Runner
) -> None:
    for number in range(1, 9):
        loop.run(forgetful.apply(instance(f"db-{number}")))

    kept = loop.run(take(forgetful.watch(Revision("3")), 5))

    assert brief(kept) == [("added", f"db-{number}") for number in range(4, 9)]
    with pytest.raises(
        RevisionExpired, match="the changes after revision 2 are no longer on record, only those from 4"
    ):
        loop.run(take(forgetful.watch(Revision("2")), 1))
    loop.run(forgetful.close())


def test_a_watch_that_is_too_slow_expires(forgetful: Store, loop: asyncio.Runner) -> None:
    async def scenario() -> None:
        events = forgetful.watch(Revision("0"))
        await forgetful.apply(instance("first"))
        await take(events, 1)
        for number in range(7):
            await forgetful.apply(instance(f"db-{number}"))
        await take(events, 1)

    with pytest.raises(RevisionExpired):
        loop.run(scenario())
    loop.run(forgetful.close())


def test_a_full_journal_is_trimmed_once_for_many_changes(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    store = loop.run(open_sqlite(path, clock, new_uid, limits=StoreLimits(changes=640)))
    writing, deletions = store._writing, list[str]()
    assert writing is not None

    async def fill() -> None:
        await asyncio.gather(*(store.apply(instance(f"db-{number}")) for number in range(640)))
        writing.connected.connection.set_trace_callback(
            lambda statement: deletions.append(statement) if statement.startswith("DELETE FROM journal") else None
        )
        for number in range(60):
            await store.apply(instance(spec={"size": f"size-{number}"}))
        writing.connected.connection.set_trace_callback(None)

    loop.run(fill())
    kept = loop.run(take(store.watch(Revision("60")), 640))

    assert len(deletions) == 5
    assert kept[-1].revision == Revision("700")
    with pytest.raises(RevisionExpired, match="only those from 56"):
        loop.run(take(store.watch(Revision("50")), 1))
    loop.run(store.close())
    assert audit(path) == NOTHING_WRONG


def test_a_watch_reads_a_change_by_one_statement(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    statements: list[str] = []

    async def scenario() -> None:
        store = await open_sqlite(tmp_path / "state.db", clock, new_uid)
        events = store.watch(Revision("0"))
        await store.apply(instance("first"))
        await anext(events)
        store._reading.connection.set_trace_callback(statements.append)
        await store.apply(instance("second"))
        second = await anext(events)
        store._reading.connection.set_trace_callback(None)
        await store.close()
        assert second.resource.ref.name == "second"

    loop.run(scenario())

    assert len(statements) == 1


def test_a_body_is_dropped_with_the_last_change_that_refers_to_it(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    store = loop.run(open_sqlite(path, clock, new_uid, limits=FIVE))
    for number in range(20):
        loop.run(store.apply(instance(spec={"size": f"size-{number}"}, labels={"size": str(number)})))
        loop.run(store.apply(instance("other", spec={"size": f"size-{number}"})))
        if number % 7 == 3:
            loop.run(store.delete(REF))
    loop.run(store.close())

    assert audit(path) == NOTHING_WRONG
