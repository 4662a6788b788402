"""The process dies after any await of a step: the next one ends as if nothing had happened."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from setpoint.engine.context import Settled, Stopped
from setpoint.errors import StoreError
from tests.engine.interruptions import ENOUGH, Interruption, after_any_await
from tests.engine.owners.histories import (
    Deed,
    History,
    declaring,
    killing,
    meddling,
    removing,
    rotating,
    stepping,
    writing,
)
from tests.engine.owners.home import Home, home_of
from tests.engine.owners.model import GALLERY
from tests.engine.owners.settings import Setting, everywhere
from tests.engine.owners.stands import STANDS, WEBSITE, OwnerStand

pytestmark = pytest.mark.slow

Doing = Callable[[Home], Awaitable[None]]


async def making(home: Home) -> None:
    """Everything is to be made."""


async def changing(home: Home) -> None:
    await home.settled()
    await home.change()


async def following(home: Home) -> None:
    await home.settled()
    await home.rotate()


async def putting_back(home: Home) -> None:
    await home.settled()
    await home.meddle()
    await home.remove(home.stand.teller)


async def everything(home: Home) -> None:
    await putting_back(home)
    await home.change()
    await home.rotate()


DOINGS = pytest.mark.parametrize("doing", [making, changing, following, putting_back, everything])
THEN = pytest.mark.parametrize("then", [making, Home.change, Home.remove_source], ids=lambda one: one.__name__)


async def contents(home: Home) -> dict[str, Any]:
    """What there is of the children, apart from what is random."""
    found = await home.children()
    return {key: (one.spec, one.labels) for key, one in found.items()} | {
        key: one.document.get("data") for key, one in found.items() if key != home.stand.once
    }


@everywhere
@DOINGS
def test_killed_after_any_await_it_ends_as_if_nothing_had_happened(setting: Setting, doing: Doing) -> None:
    async def ends(home: Home, awaits: int) -> bool:
        await home.begin()
        await doing(home)
        was_killed = awaits > 0 and await home.killed_after(awaits)
        await home.restart()
        await home.settled()
        assert (await home.conditions())["Edited"]["status"] == "False"
        assert (await home.settled()).plan.is_empty
        found.append(await contents(home))
        await home.store.delete(home.ref)
        await home.step()
        return was_killed

    async def scenario(home: Home) -> None:
        await ends(home, 0)
        for awaits in range(1, ENOUGH):
            if not await ends(home, awaits):
                assert awaits > 4
                assert [one for one in found if one != found[0]] == []
                return
        pytest.fail("a step never ended")

    found: list[dict[str, Any]] = []
    setting.play(scenario)


@pytest.mark.parametrize("stand", STANDS, ids=str)
@DOINGS
@THEN
def test_nor_does_it_take_its_own_values_for_a_persons_whatever_comes_next(
    stand: OwnerStand, doing: Doing, then: Doing
) -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with home_of(stand) as home:
            await home.begin()
            await doing(home)
            was_killed = await home.killed_after(awaits)
            await then(home)
            await home.step()
            await home.change()
            await home.store.apply(stand.source)
            await home.settled()

            assert (await home.conditions())["Edited"]["status"] == "False"
            return was_killed

    after_any_await(is_killed_after, least=1)


@pytest.mark.parametrize("stand", STANDS, ids=str)
@DOINGS
def test_a_store_that_fails_after_any_call_stops_the_step_and_loses_nothing(stand: OwnerStand, doing: Doing) -> None:
    error = StoreError("the disk is full")

    async def fail() -> None:
        raise error

    async def fails_after(awaits: int) -> bool:
        async with home_of(stand) as home:
            await home.begin()
            await doing(home)
            store, interruption = home.store, Interruption(awaits, fail)
            home.store = interruption.wrap(store)
            outcome = await home.step()
            home.store = store

            assert outcome == Stopped(error) or not interruption.has_happened
            assert isinstance(await home.step(), Settled)
            assert (await home.conditions())["Edited"]["status"] == "False"
            assert (await home.settled()).plan.is_empty
            return interruption.has_happened

    after_any_await(fails_after, least=1)


# --- Histories that went wrong once -----------------------------------------------------------------------------------

COLUMNS, CAPTION = (GALLERY, ("columns", "")), (GALLERY, ("captions", "a"))
KILLS = range(1, 20)


def told(history: list[Deed]) -> None:
    """The model agrees, whatever the model is."""

    async def main() -> None:
        async with home_of(WEBSITE) as home:
            told = History(home)
            await told.rotate()
            await told.declare()
            for deed in (*history, stepping):
                await deed(told)

    asyncio.run(main())


def test_a_conflict_outlives_a_source_that_is_missing_for_a_while() -> None:
    edited = [stepping, writing(COLUMNS, "fresh"), declaring({"columns": 5}), stepping]

    told([*edited, removing, stepping, rotating])


@pytest.mark.parametrize("awaits", KILLS)
def test_what_a_person_removes_right_after_it_was_made_stays_away(awaits: int) -> None:
    told([killing(awaits), writing(CAPTION, "removed")])


@pytest.mark.parametrize("awaits", KILLS)
def test_and_when_it_was_made_anew(awaits: int) -> None:
    restart_wait = [stepping, meddling(GALLERY, "deletes"), declaring({"captions": {"a": "two"}}), killing(awaits)]

    told([*restart_wait, writing(CAPTION, "removed")])
    told([*restart_wait, writing(CAPTION, "fresh")])
    told([*restart_wait, declaring({"captions": {"a": "one"}})])


@pytest.mark.parametrize("awaits", KILLS)
def test_what_was_written_by_a_step_that_died_is_known_after_one_that_was_in_trouble(awaits: int) -> None:
    told([killing(awaits), declaring({"columns": 4}), removing, stepping, declaring({"certificate": ""})])


@pytest.mark.parametrize("awaits", KILLS)
def test_a_conflict_outlives_a_step_that_died(awaits: int) -> None:
    torn = [stepping, writing(COLUMNS, "fresh"), declaring({"columns": 5, "captions": {"b": "two"}}), killing(awaits)]

    told(torn)
    told([*torn, declaring({"columns": 4})])
