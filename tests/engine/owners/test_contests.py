"""Somebody changes what is managed after each put-back: it is noticed, and put back less and less often."""

import pytest

from setpoint.core.values.paths import Path
from setpoint.engine.context import Settled
from setpoint.engine.oscillation import EXPIRES_AFTER, FIRST_BACKOFF, LONGEST_BACKOFF
from setpoint.engine.state import StoredState
from tests.engine.owners.home import Home
from tests.engine.owners.settings import Setting, everywhere, in_memory, where_edits_are_told

pytestmark = pytest.mark.slow


async def meddle(home: Home, times: int) -> Settled:
    """Somebody changes what is managed, and a step follows; so many times."""
    for _ in range(times - 1):
        await meddle(home, times=1)
    await home.meddle()
    return await home.settled()


def place(home: Home) -> str:
    return str(Path((home.stand.managed.key, *home.stand.managed.path.steps)))


async def counts(home: Home) -> list[int]:
    return [one.count for one in StoredState.of(await home.resource()).oscillations.fields]


@everywhere
def test_the_third_put_back_is_noticed_and_the_fourth_waits(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=2)
        assert "Contested" not in await home.conditions()
        await meddle(home, times=1)
        reported = (await home.conditions())["Contested"]["message"]

        outcome = await meddle(home, times=1)

        assert reported.startswith(f"{place(home)} was put back 3 times since")
        assert outcome.plan.is_empty
        assert [str(one.path) for one in outcome.plan.withheld] == [place(home)]
        ready = (await home.conditions())["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "Contested")
        assert "Contested" in await home.reasons()
        assert (await home.preview()).withheld == outcome.plan.withheld

    setting.play(scenario)


@everywhere
def test_while_it_waits_nothing_is_written(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=4)
        revision, notes = await home.revision(), await home.store.events()

        for _ in range(20):
            await home.settled()

        assert await home.revision() == revision
        assert await home.store.events() == notes
        home.clock.seconds += FIRST_BACKOFF
        assert [write.name for write in (await home.settled()).plan.writes] == [home.stand.managed.key]
        assert await counts(home) == [4]

    setting.play(scenario)


@in_memory
def test_in_a_day_of_meddling_put_backs_become_rare(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        put_back, is_ours = 0, True
        while home.clock.seconds < 24 * LONGEST_BACKOFF:
            if is_ours:
                await home.meddle()
            is_ours = bool((await home.settled()).plan.writes)
            put_back += is_ours
            home.clock.seconds += 30 if home.clock.seconds < LONGEST_BACKOFF else 600

        assert 24 < put_back < 36

    setting.play(scenario)


@everywhere
def test_the_other_children_are_put_right_meanwhile(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=4)
        other = next(key for key in await home.children() if key != home.stand.managed.key)
        await home.remove(other)

        outcome = await home.settled()

        assert [write.name for write in outcome.plan.writes] == [other]
        assert [str(one.path) for one in outcome.plan.withheld] == [place(home)]
        assert other in await home.children()

    setting.play(scenario)


@where_edits_are_told
def test_while_it_waits_what_people_removed_is_still_known(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.edit(home.stand.managed.key, home.stand.entries, {})
        assert (await meddle(home, times=4)).plan.withheld
        home.clock.seconds += FIRST_BACKOFF

        assert (await home.settled()).plan.writes

        live = await home.child(home.stand.managed.key)
        assert live.spec[str(home.stand.entries.steps[-1])] == {}
        assert str(home.stand.entries) in (await home.conditions())["Edited"]["message"]

    setting.play(scenario)


@everywhere
def test_whoever_asks_has_it_put_back_now(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=4)

        outcome = await home.step(requested=True)

        assert isinstance(outcome, Settled)
        assert [write.name for write in outcome.plan.writes] == [home.stand.managed.key]

    setting.play(scenario)


@everywhere
def test_an_edit_of_the_author_is_a_new_beginning(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=4)
        await home.change()

        outcome = await home.settled()

        assert home.stand.managed.key in [write.name for write in outcome.plan.writes]
        assert "Contested" not in await home.conditions()
        assert (await meddle(home, times=1)).plan.writes

    setting.play(scenario)


@everywhere
def test_what_stays_as_it_should_be_is_forgotten(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await meddle(home, times=3)
        home.clock.seconds += EXPIRES_AFTER

        await home.settled()

        assert "Contested" not in await home.conditions()
        assert await counts(home) == []

    setting.play(scenario)


@where_edits_are_told
def test_what_people_may_edit_is_never_contested(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        for number in range(8):
            await home.edit(home.stand.theirs.key, home.stand.theirs.path, number % 2 + 5)
            assert (await home.settled()).plan.is_empty

        assert await counts(home) == []

    setting.play(scenario)


@in_memory
@pytest.mark.parametrize(("before", "in_all"), [(0, 3), (2, 3), (3, 4)])
def test_killed_after_any_await_no_put_back_is_lost_or_counted_twice(
    setting: Setting, before: int, in_all: int
) -> None:
    async def scenario(home: Home) -> None:
        for awaits in range(1, 60):
            await home.begin()
            await home.settled()
            await meddle(home, times=before) if before else None
            home.clock.seconds += FIRST_BACKOFF
            await home.meddle()
            was_killed = await home.killed_after(awaits)
            await home.restart()

            await meddle(home, times=6)

            assert await counts(home) == [in_all]
            assert "Contested" in await home.conditions()
            await home.store.delete(home.ref)
            await home.step()
            if not was_killed:
                assert awaits > 4
                return
        pytest.fail("a step never ended")

    setting.play(scenario)
