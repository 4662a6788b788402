"""The process dies after any await of a step: the next one ends as if nothing had happened."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import StoreError
from setpoint.testing.interruptions import Interruption, after_any_await
from setpoint.testing.owners.owner_fixture import OwnerFixture
from setpoint.testing.owners.owner_harness import OwnerHarness, owner_harness
from tests.engine.owners.histories import (
    Deed,
    History,
    declaring,
    drifting,
    killing,
    removing,
    rotating,
    stepping,
    writing,
)
from tests.engine.owners.model import GALLERY
from tests.engine.owners.owner_fixtures import FIXTURES, WEBSITE

pytestmark = pytest.mark.slow

Doing = Callable[[OwnerHarness], Awaitable[None]]


async def making(harness: OwnerHarness) -> None:
    """Everything is to be made."""


async def changing(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.change()


async def following(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.rotate()


async def reverting(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.drift()
    await harness.remove(harness.fixture.readiness_child)


async def everything(harness: OwnerHarness) -> None:
    await reverting(harness)
    await harness.change()
    await harness.rotate()


DOINGS = pytest.mark.parametrize("doing", [making, changing, following, reverting, everything])
THEN = pytest.mark.parametrize(
    "then", [making, OwnerHarness.change, OwnerHarness.remove_source], ids=lambda one: one.__name__
)


@pytest.mark.parametrize("fixture", FIXTURES, ids=str)
@DOINGS
@THEN
def test_nor_does_it_take_its_own_values_for_edits_whatever_comes_next(
    fixture: OwnerFixture, doing: Doing, then: Doing
) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with owner_harness(fixture) as harness:
            await harness.begin()
            await doing(harness)
            was_killed = await harness.killed_after(awaits)
            await then(harness)
            await harness.step()
            await harness.change()
            await harness.store.apply(fixture.source)
            await harness.settled()

            assert (await harness.conditions())["Edited"]["status"] == "False"
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=1))


@pytest.mark.parametrize("fixture", FIXTURES, ids=str)
@DOINGS
def test_a_store_that_fails_after_any_call_stops_the_step_and_loses_nothing(
    fixture: OwnerFixture, doing: Doing
) -> None:
    error = StoreError("the disk is full")

    async def fail() -> None:
        raise error

    async def fails_after(awaits: int) -> bool:
        async with owner_harness(fixture) as harness:
            await harness.begin()
            await doing(harness)
            store, interruption = harness.store, Interruption(awaits, fail)
            harness.store = interruption.wrap(store)
            outcome = await harness.step()
            harness.store = store

            assert outcome == Stopped(error) or not interruption.has_happened
            assert isinstance(await harness.step(), Settled)
            assert (await harness.conditions())["Edited"]["status"] == "False"
            assert (await harness.settled()).plan.is_empty
            return interruption.has_happened

    asyncio.run(after_any_await(fails_after, least=1))


# --- Histories that went wrong once -----------------------------------------------------------------------------------

COLUMNS, CAPTION = (GALLERY, ("columns", "")), (GALLERY, ("captions", "a"))
KILLS = range(1, 20)


def check_history(deeds: list[Deed]) -> None:
    """The model agrees, whatever the model is."""

    async def main() -> None:
        async with owner_harness(WEBSITE) as harness:
            history = History(harness)
            await history.rotate()
            await history.declare()
            for deed in (*deeds, stepping):
                await deed(history)

    asyncio.run(main())


def test_a_conflict_outlives_a_source_that_is_missing_for_a_while() -> None:
    edited = [stepping, writing(COLUMNS, "fresh"), declaring({"columns": 5}), stepping]

    check_history([*edited, removing, stepping, rotating])


@pytest.mark.parametrize("awaits", KILLS)
def test_what_another_writer_removes_right_after_it_was_made_stays_away(awaits: int) -> None:
    check_history([killing(awaits), writing(CAPTION, "removed")])


@pytest.mark.parametrize("awaits", KILLS)
def test_and_when_it_was_made_anew(awaits: int) -> None:
    restart_wait = [stepping, drifting(GALLERY, "deletes"), declaring({"captions": {"a": "two"}}), killing(awaits)]

    check_history([*restart_wait, writing(CAPTION, "removed")])
    check_history([*restart_wait, writing(CAPTION, "fresh")])
    check_history([*restart_wait, declaring({"captions": {"a": "one"}})])


@pytest.mark.parametrize("awaits", KILLS)
def test_what_was_written_by_a_step_that_died_is_known_after_one_that_was_in_trouble(awaits: int) -> None:
    check_history([killing(awaits), declaring({"columns": 4}), removing, stepping, declaring({"certificate": ""})])


@pytest.mark.parametrize("awaits", KILLS)
def test_a_conflict_outlives_a_step_that_died(awaits: int) -> None:
    torn = [stepping, writing(COLUMNS, "fresh"), declaring({"columns": 5, "captions": {"b": "two"}}), killing(awaits)]

    check_history(torn)
    check_history([*torn, declaring({"columns": 4})])
