"""How far back a watch can start."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.ports import ResourceChange, Store
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired
from setpoint.stores.journal import JournaledChange, RecentChanges, StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.stores.records import ResourceRecord
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.samples import REF, brief, instance, secret, take

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


def test_a_watch_that_keeps_up_reads_no_statement_and_one_that_is_behind_reads_one(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    statements: list[str] = []

    async def watched(store: SqliteStore, events: AsyncIterator[ResourceChange], names: Sequence[str]) -> int:
        for name in names:
            await store.apply(instance(name))
        store._reading.connection.set_trace_callback(statements.append)
        found = await take(events, len(names))
        store._reading.connection.set_trace_callback(None)
        assert brief(found) == [("added", name) for name in names]
        return len(statements)

    async def scenario() -> tuple[int, int]:
        store = await open_sqlite(tmp_path / "state.db", clock, new_uid)
        events = store.watch(Revision("0"))
        await store.apply(instance("first"))
        await anext(events)
        counts = (
            await watched(store, events, ["second"]),
            await watched(store, events, [f"db-{number}" for number in range(100)]),
        )
        await store.close()
        return counts

    assert loop.run(scenario()) == (0, 1)


@given(st.lists(st.tuples(st.sampled_from([1, 10, 40, 200]), st.sampled_from([b"", b"", b"", b"redacted"]))))
def test_the_recent_changes_are_all_after_a_revision_or_not_told(changes: list[tuple[int, bytes]]) -> None:
    recent, made = RecentChanges(most=4, most_bytes=100), list[JournaledChange]()
    for revision, (size, redacted) in enumerate(changes, 7):
        record = ResourceRecord(REF, "uid", revision, b"", b"x" * size, b"", b"", redacted=redacted)
        made.append(JournaledChange(revision, None, record))
        recent.add(made[-1])

    found = [(since, recent.since(since)) for since in range(5, 8 + len(made))]

    pages = [(since, page) for since, page in found if page is not None]
    assert all([*page.entries] == [one for one in made if one.revision > since] for since, page in pages)
    assert all(page.reached == page.last == made[-1].revision for _, page in pages)
    kept = [one.after for one in pages[0][1].entries if one.after is not None] if pages else []
    assert len(kept) <= 4
    assert sum(len(record.body) for record in kept) <= 100
    assert not any(record.holds_secrets for record in kept)
    # The newest one is told, unless it is too large or holds a secret.
    assert bool(pages) == bool(changes and changes[-1] in [(1, b""), (10, b""), (40, b"")])


def test_no_watch_goes_past_a_change_that_is_not_among_the_recent_ones() -> None:
    recent = RecentChanges(most=4, most_bytes=100)
    for revision in (7, 8, 10):
        record = ResourceRecord(REF, "uid", revision, b"", b"", b"", b"")
        recent.add(JournaledChange(revision, None, record))

    pages = {since: recent.since(since) for since in range(6, 11)}

    assert [since for since, page in pages.items() if page is not None] == [9]


def test_a_watch_that_keeps_up_sees_no_secret_value_that_was_superseded(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    async def scenario() -> list[object]:
        store = await open_sqlite(tmp_path / "state.db", clock, new_uid)
        events = store.watch(Revision("0"))
        await store.apply(instance("first"))
        await anext(events)
        for password in ("bmV3", "bmV3ZXI="):
            await store.apply(secret(data={"password": password}))
        await store.apply(instance("last"))
        found = await take(events, 3)
        await store.close()
        return [change.resource.document.get("data") for change in found]

    assert loop.run(scenario()) == [None, {"password": "bmV3ZXI="}, None]


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
