"""For all programs: both stores answer alike, and a watch shows all that a list shows."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import EVERYTHING, ResourceChange, ResourceChangeType, ResourceQuery, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.stores.journal import StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.audit import NOTHING_WRONG, audit
from tests.stores.programs import INSTANCES, Apply, Create, Delete, Operation, Run, Write, everything, exact, programs
from tests.stores.samples import GROUP, instance
from tests.stores.scratch import scratch_folder

pytestmark = pytest.mark.laws

LIMITS = StoreLimits(notes=5, notes_per_resource=3)
QUERIES = (EVERYTHING, ResourceQuery(labels={"team": "a"}), ResourceQuery(GROUP, "SQLInstance", "default"))
FOREVER_HELD: list[Operation] = [
    Apply(instance("a", labels={"team": "a"})),
    Write(INSTANCES[0], 0, "set_finalizers", ("f",)),
    Delete(INSTANCES[0]),
    Apply(instance("a")),
    Write(INSTANCES[0], 0, "set_finalizers", ()),
]


def numbered() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"uid-{next(numbers)}"


def play(scenario: Callable[[MemoryStore, Run], Coroutine[Any, Any, None]]) -> None:
    """Plays `scenario` on a store of its own."""
    clock = FakeClock()
    store = MemoryStore(clock, numbered())
    asyncio.run(scenario(store, Run(store, clock)))


@given(programs, st.sets(st.integers(0, 24), max_size=2))
@example(FOREVER_HELD, {2})
def test_both_stores_answer_alike_even_when_one_is_reopened(program: list[Operation], reopened: set[int]) -> None:
    with scratch_folder() as folder:
        kept = asyncio.run(on_sqlite(folder / "state.db", program, reopened))
        problems = audit(folder / "state.db")
    expected = asyncio.run(on_memory(program))

    assert kept == expected
    assert problems == NOTHING_WRONG


@given(programs)
@example(FOREVER_HELD)
def test_replaying_all_events_gives_exactly_the_list(program: list[Operation]) -> None:
    async def scenario(store: MemoryStore, run: Run) -> None:
        for operation in program:
            await run.perform(operation)
        for query in QUERIES:
            known = replayed(await everything(store, query))
            listed = {one.ref: exact(one) for one in (await store.list(query)).resources}
            assert known == listed

    play(scenario)


@given(programs)
def test_generations_count_changes_of_the_author_and_revisions_every_change(program: list[Operation]) -> None:
    async def scenario(store: MemoryStore, run: Run) -> None:
        for operation in program:
            before = {one.ref: one for one in (await store.list()).resources}
            await run.perform(operation)
            for after in (await store.list()).resources:
                old = before.get(after.ref)
                if old is None or old.uid != after.uid:
                    assert after.generation == 1
                    continue
                changed = [authored(old) != authored(after), exact(old) != exact(after)]
                assert changed == [old.generation + 1 == after.generation, old.revision != after.revision]

    play(scenario)


@given(programs)
@example(FOREVER_HELD)
def test_writing_a_resource_as_it_was_read_changes_nothing(program: list[Operation]) -> None:
    async def scenario(store: MemoryStore, run: Run) -> None:
        for operation in program:
            await run.perform(operation)
        before = await store.list()
        for one in before.resources:
            assert exact(await store.replace(one, one.document)) == exact(one)

        assert await store.list() == before

    play(scenario)


@given(programs)
@example(FOREVER_HELD)
def test_a_refused_write_changes_nothing(program: list[Operation]) -> None:
    async def scenario(store: MemoryStore, run: Run) -> None:
        for operation in program:
            before = await store.list()
            answer = await run.perform(operation)
            if isinstance(answer, tuple):
                assert await store.list() == before

    play(scenario)


@given(programs)
def test_a_created_or_replaced_object_is_read_back_with_its_document(program: list[Operation]) -> None:
    async def scenario(store: MemoryStore, run: Run) -> None:
        for operation in program:
            answer = await run.perform(operation)
            if isinstance(answer, bytes) and (document := owned(operation)) is not None:
                found = await store.get(Resource(document).ref)
                assert found is not None
                assert exact(found) == answer
                assert same(found.document.get("spec"), document.get("spec"))
                assert found.labels == Resource(document).labels

    play(scenario)


def owned(operation: Operation) -> JsonObject | None:
    """The document that an owner writes."""
    match operation:
        case Create(document) | Write(verb="replace", value=document):
            return document
        case _:
            return None


def authored(resource: Resource) -> bytes:
    """The author's part without labels and annotations."""
    return canonical({name: part for name, part in resource.document.items() if name not in ("metadata", "status")})


async def on_memory(program: list[Operation]) -> list[object]:
    clock = FakeClock()
    run = Run(MemoryStore(clock, numbered(), LIMITS), clock)
    return [await run.perform(operation) for operation in program] + await views(run.store)


async def on_sqlite(path: Path, program: list[Operation], reopened: set[int]) -> list[object]:
    clock, new_uid = FakeClock(), numbered()
    run = Run(await open_sqlite(path, clock, new_uid, limits=LIMITS), clock)
    answers = []
    for number, operation in enumerate(program):
        if number in reopened:
            await run.store.close()
            run.store = await open_sqlite(path, clock, new_uid, limits=LIMITS)
        answers.append(await run.perform(operation))
    shown = await views(run.store)
    await run.store.close()
    return answers + shown


async def views(store: Store) -> list[object]:
    """Everything that can be read from a store."""
    shown: list[object] = [await store.events()]
    for query in QUERIES:
        events = await everything(store, query)
        listing = await store.list(query)
        shown.append([(event.change, event.revision, exact(event.resource)) for event in events])
        shown.append((listing.revision, [exact(one) for one in listing.resources]))
    return shown


def replayed(events: list[ResourceChange]) -> dict[ResourceRef, bytes]:
    """The state after replaying all events."""
    known: dict[ResourceRef, bytes] = {}
    for event in events:
        ref = event.resource.ref
        assert (event.change is ResourceChangeType.ADDED) == (ref not in known)
        if event.change is ResourceChangeType.DELETED:
            del known[ref]
        else:
            known[ref] = exact(event.resource)
    return known
