"""Stores with transactions: an update is one commit and one revision, and children are written all or not at all."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import ChildWrite, ResourceUpdate, Store
from setpoint.engine.resource import Resource
from setpoint.errors import WriteConflict
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.samples import FINALIZER, REF, brief, event_about, instance, take

READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}


def every_part(of: Resource) -> ResourceUpdate:
    return ResourceUpdate(status=READY, finalizers=FINALIZER, annotations={"a": "1"}, events=[event_about(of)])


def test_an_update_of_every_part_is_one_change(store: Store, loop: asyncio.Runner) -> None:
    created = loop.run(store.apply(instance()))
    after = loop.run(store.update(created, every_part(created)))
    last = loop.run(store.apply(instance("last")))

    first, second = loop.run(take(store.watch(created.revision), 2))

    assert first.resource == after
    assert second.resource == last
    assert int(second.revision) == int(created.revision) + 2


def test_children_are_written_all_or_not_at_all(store: Store, loop: asyncio.Runner) -> None:
    seen = loop.run(store.create(instance()))
    now = loop.run(store.update_status(seen, READY))
    writes = [ChildWrite(instance("another")), ChildWrite(instance("third")), ChildWrite(instance(spec={}), seen)]

    with pytest.raises(WriteConflict):
        loop.run(store.write_children(writes))

    assert loop.run(store.list()).resources == (now,)
    assert loop.run(store.list()).revision == now.revision


def test_children_of_one_call_have_a_change_each(store: Store, loop: asyncio.Runner) -> None:
    since = loop.run(store.list()).revision
    made = loop.run(store.write_children([ChildWrite(instance("b")), ChildWrite(instance("a"))]))

    events = loop.run(take(store.watch(since), 2))

    assert brief(events) == [("added", "b"), ("added", "a")]
    assert tuple(event.resource for event in events) == made


def test_two_creates_of_one_name_in_one_call_are_a_conflict_and_write_nothing(
    store: Store, loop: asyncio.Runner
) -> None:
    other = loop.run(store.create(instance("other")))
    writes = [ChildWrite(instance()), ChildWrite(instance(spec={"tier": "large"}))]

    with pytest.raises(WriteConflict, match=r"^SQLInstance default/db is there already"):
        loop.run(store.write_children(writes))

    assert loop.run(store.list()).resources == (other,)


def committed(store: SqliteStore, loop: asyncio.Runner, name: str) -> list[str]:
    """The statements that begin or end the transactions of an update that changes every part."""
    created = loop.run(store.apply(instance(name)))
    writing = store._writing
    assert writing is not None
    statements: list[str] = []
    writing.connected.connection.set_trace_callback(statements.append)
    loop.run(store.update(created, every_part(created)))
    writing.connected.connection.set_trace_callback(None)
    return [one for one in statements if one in ("BEGIN IMMEDIATE", "COMMIT")]


def test_an_update_with_events_is_one_transaction(
    loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str], tmp_path: Path
) -> None:
    store = loop.run(open_sqlite(tmp_path / "state.db", clock, new_uid))

    assert committed(store, loop, REF.name) == ["BEGIN IMMEDIATE", "COMMIT"]

    loop.run(store.close())
