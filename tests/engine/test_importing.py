"""What an import finds where it comes to: it changes nothing twice, and overwrites nothing unasked."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from setpoint.engine.management import MANAGEMENT
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource
from setpoint.engine.transfer.export_format import StoreExport
from setpoint.engine.transfer.exporter import gather_export, is_paused_by_export, pause_for_export
from setpoint.errors import ManifestInvalid, UserError
from setpoint.stores.sqlite.store import open_sqlite
from setpoint.testing.interruptions import ENOUGH, Interruption, Killed, die
from tests.engine.clock import FakeClock
from tests.engine.gadgets import gadget_ref
from tests.engine.transfer_harness import (
    HEADER,
    SECRET,
    TransferHarness,
    bring,
    checked_in,
    export_of,
    new_store,
    reread,
)

pytestmark = pytest.mark.slow

WITH_SECRET = {"size": 1, "passwordRef": "s"}
Scenario = Callable[[TransferHarness, TransferHarness], Awaitable[None]]


def play(scenario: Scenario) -> None:
    """Plays `scenario` with a store to export from, and an empty one."""
    asyncio.run(_played(scenario))


async def _played(scenario: Scenario) -> None:
    clock = FakeClock()
    old = TransferHarness(new_store(clock, "old"), clock)
    await old.secret("first")
    await old.apply("a", WITH_SECRET, labels={"team": "web"})
    await old.apply("b", {"size": 2, "parentRef": "a", "password": "own"})
    await old.settle("a", "b")
    await scenario(old, TransferHarness(new_store(clock, "new"), clock, old.service))


async def states(harness: TransferHarness) -> list[tuple[str, str]]:
    """Every resource, and which state it is in."""
    return [(one.ref.name, one.revision) for one in (await harness.store.list()).resources]


# --- The same again ---------------------------------------------------------------------------------------------------


def test_the_same_again_changes_nothing() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        export = await export_of(old)
        first = await bring(new, export)
        before = await states(new)

        again = await bring(new, export)

        assert ([one.is_new for one in first], [one.is_new for one in again]) == ([True, True], [False, False])
        assert await states(new) == before

    play(scenario)


@pytest.mark.parametrize("path", [None, "state.db"])
def test_killed_after_any_await_it_is_run_again_and_ends_as_if_never_killed(path: str | None, tmp_path: Path) -> None:
    killed: list[bool] = []

    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        export, interruption = await export_of(old), Interruption(len(killed) + 1, die)
        file = None if path is None else tmp_path / f"{len(killed)}-{path}"
        async with kept_in(file, new) as store:
            with suppress(Killed):
                await bring(replace(new, store=interruption.wrap(store)), export)
        async with kept_in(file, new) as store:
            new.store = store
            await bring(new, export)
            await _expect_nothing_left_to_do(new)
        killed.append(interruption.has_happened)

    while not killed or killed[-1]:
        play(scenario)
    assert 15 < len(killed) < ENOUGH


async def _expect_nothing_left_to_do(harness: TransferHarness) -> None:
    harness.service.calls.clear()
    before = await states(harness)
    await harness.settle("b", "a")
    assert harness.writes == []
    assert [plan["decision"] for plan in (await harness.plans()).values()] == ["in sync", "in sync"]
    assert await states(harness) == before


@asynccontextmanager
async def kept_in(file: Path | None, harness: TransferHarness) -> AsyncIterator[Store]:
    """The store of one process: in the file, or in the memory of the test."""
    if file is None:
        yield harness.store
        return
    store = await open_sqlite(file, harness.clock, lambda: str(uuid.uuid4()))
    yield store
    await store.close()


# --- What is there already --------------------------------------------------------------------------------------------


async def _another_spec(new: TransferHarness) -> None:
    await new.apply("a", {"size": 7, "passwordRef": "s"}, labels={"team": "web"})


async def _another_label(new: TransferHarness) -> None:
    await new.apply("a", WITH_SECRET, labels={"team": "db"})


async def _another_annotation(new: TransferHarness) -> None:
    await new.apply("a", WITH_SECRET, labels={"team": "web"}, annotations={"x": "y"})


async def _a_history_of_its_own(new: TransferHarness) -> None:
    await new.secret("first")
    await new.apply("a", WITH_SECRET, labels={"team": "web"})
    await new.settle("a")


async def _held_back(new: TransferHarness) -> None:
    await new.apply("a", WITH_SECRET, labels={"team": "web"})
    await new.store.annotate(await new.resource("a"), {MANAGEMENT: "observe"})


DIFFERENT = (_another_spec, _another_label, _another_annotation, _a_history_of_its_own, _held_back)


@pytest.mark.parametrize("make", DIFFERENT)
def test_a_different_resource_of_the_same_name_is_kept_and_named(
    make: Callable[[TransferHarness], Awaitable[None]],
) -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await make(new)
        export, before = await export_of(old), await states(new)

        with pytest.raises(UserError, match=r"^Gadget default/a: here already, and not as in the export; nothing was"):
            await bring(new, export)

        assert await states(new) == before

    play(scenario)


@pytest.mark.parametrize("make", DIFFERENT)
def test_what_says_something_else_gives_way_when_that_is_asked_for(
    make: Callable[[TransferHarness], Awaitable[None]],
) -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await make(new)
        await bring(new, await export_of(old), overwrite=True)
        new.service.calls.clear()
        await new.settle("a", "b")
        there = await new.resource("a")

        assert new.writes == []
        assert (there.spec, there.labels, there.annotations) == (WITH_SECRET, {"team": "web"}, {})

    play(scenario)


def test_a_secret_with_another_value_is_kept_and_named_without_it() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await new.secret("another")

        with pytest.raises(UserError, match=r"^Secret default/s: here already") as raised:
            await bring(new, await export_of(old))

        assert "another" not in str(raised.value)
        assert await states(new) == [("s", "1")]

    play(scenario)


def test_a_secret_that_holds_the_same_and_more_is_taken_as_it_is() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        metadata, data = {"name": "s", "labels": {"by": "others"}}, {"password": "first", "more": "x"}
        manifest: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
        before = await new.store.apply(manifest)
        await bring(new, await export_of(old))
        new.service.calls.clear()
        await new.settle("a", "b")

        assert (new.writes, await new.store.get(SECRET)) == ([], before)

    play(scenario)


def test_one_that_stands_for_another_object_is_never_overwritten() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await new.apply("a", {"resourceID": "another"})
        await new.settle("a")

        message = "e.json:3: Gadget default/a stands for another here, and for a in the export: leave it out"
        with pytest.raises(ManifestInvalid, match=message):
            await bring(new, await export_of(old), overwrite=True)

    play(scenario)


def test_one_that_is_being_deleted_is_never_overwritten() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        export = await export_of(old)
        await bring(new, export)
        await new.store.delete(gadget_ref("a"))

        with pytest.raises(ManifestInvalid, match=r"e.json:3: Gadget default/a is being deleted here: wait until"):
            await bring(new, export, overwrite=True)

    play(scenario)


def test_a_deletion_that_this_import_began_here_continues() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await old.store.delete(gadget_ref("b"))
        export = await export_of(old)
        await bring(new, export)
        before = await states(new)

        again = await bring(new, export)

        assert [one.is_new for one in again] == [False, False]
        assert await states(new) == before

    play(scenario)


# --- What is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "missing"),
    [({"with_secrets": False}, "Secret default/s"), ({"names": ["b"]}, "Gadget default/a")],
)
def test_references_have_to_exist_here_or_in_the_export(options: dict[str, Any], missing: str) -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        export = await export_of(old, **options)

        with pytest.raises(UserError, match=f"^{missing}: referred to, and neither in the export nor in this store"):
            await bring(new, export)

        assert await states(new) == []

    play(scenario)


def test_one_after_the_other_comes_to_the_same() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await bring(new, await export_of(old, names=["a"]))
        (arrival,) = await bring(new, await export_of(old, names=["b"]))
        new.service.calls.clear()
        await new.settle("a", "b")

        assert (arrival.remarks, new.writes) == ((), [])

    play(scenario)


def test_an_unknown_kind_is_refused_with_its_place() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        export = await export_of(old)
        first, *rest = export.resources
        odd = replace(first, resource=Resource({**first.resource.document, "kind": "Widget"}))

        with pytest.raises(ManifestInvalid, match=r"e.json:3: Widget default/a: no kind 'Widget' is known here"):
            await bring(new, replace(export, resources=(odd, *rest)))

    play(scenario)


def test_one_that_goes_away_meanwhile_ends_the_import() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await bring(new, await export_of(old))
        work = await checked_in(new, await export_of(old))
        for name in ("a", "b"):
            await new.store.set_finalizers(await new.resource(name), ())
            await new.store.delete(gadget_ref(name))

        with pytest.raises(UserError, match="Gadget default/a was deleted during the import: run it again"):
            await work.run_import()

    play(scenario)


# --- Pausing ----------------------------------------------------------------------------------------------------------


async def paused_export(harness: TransferHarness) -> StoreExport:
    for one in await harness.gadgets():
        await pause_for_export(one, harness.store)
    secrets, resources = await gather_export(await harness.gadgets(), harness.engine)
    return reread(StoreExport((HEADER,), secrets, resources))


def test_a_paused_resource_writes_nothing_in_the_old_store_and_continues_in_the_new_one() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await bring(new, await paused_export(old))
        old.service.objects["a"]["size"] = 9
        old.service.calls.clear()
        await old.settle("a", "b")
        untouched = list(old.service.calls)
        await new.settle("a")

        assert untouched == []
        assert new.writes == [("update", "a")]
        assert (await new.resource("a")).annotations == {}

    play(scenario)


def test_deleting_a_paused_resource_deletes_nothing() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await paused_export(old)
        await old.store.delete(gadget_ref("a"))
        await old.settle("a")

        assert set(old.service.objects) == {"a", "b"}

    play(scenario)


def test_pausing_twice_forgets_nothing() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await old.apply("a", WITH_SECRET, annotations={MANAGEMENT: "observe"})
        await paused_export(old)
        export = await paused_export(old)

        assert [item.resource.annotations for item in export.resources] == [{MANAGEMENT: "observe"}, {}]
        assert all(map(is_paused_by_export, await old.gadgets()))

    play(scenario)


def test_what_its_author_paused_stays_paused() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await old.apply("a", WITH_SECRET, annotations={MANAGEMENT: "paused"})
        await bring(new, await paused_export(old))

        assert (await new.resource("a")).annotations == {MANAGEMENT: "paused"}

    play(scenario)


def test_a_resource_that_moves_back_continues_where_it_was_paused() -> None:
    async def scenario(old: TransferHarness, new: TransferHarness) -> None:
        await bring(new, await paused_export(old))
        await new.apply("a", {**WITH_SECRET, "size": 5}, labels={"team": "web"})
        await new.settle("a", "b")
        back = await paused_export(new)
        with pytest.raises(UserError, match=r"^Gadget default/a, Gadget default/b: here already"):
            await bring(old, back)

        await bring(old, back, overwrite=True)

        old.service.calls.clear()
        await old.settle("a", "b")
        assert (old.writes, (await old.resource("a")).annotations) == ([], {})
        assert (await old.resource("a")).spec["size"] == 5

    play(scenario)


def test_a_resource_that_stays_after_all_continues_as_if_never_paused() -> None:
    async def scenario(old: TransferHarness, _: TransferHarness) -> None:
        export = replace(await paused_export(old), objects=())
        arrivals = await bring(old, export, overwrite=True)
        old.service.calls.clear()
        await old.settle("a", "b")

        assert [arrival.remarks for arrival in arrivals] == [(), ()]
        assert (old.writes, (await old.resource("a")).annotations) == ([], {})
        assert [plan["decision"] for plan in (await old.plans()).values()] == ["in sync", "in sync"]

    play(scenario)
