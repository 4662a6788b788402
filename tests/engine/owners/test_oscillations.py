"""Another writer changes a managed field after each revert: it is reported, and reverted less and less often."""

import pytest

from setpoint.core.values.paths import Path, get_at
from setpoint.engine.contention.oscillation import EXPIRES_AFTER, FIRST_BACKOFF, LONGEST_BACKOFF
from setpoint.engine.state import StoredState
from setpoint.engine.step import hold
from setpoint.engine.step.hold import HOLD_RULES
from setpoint.engine.step.outcomes import Settled
from setpoint.testing.owners.owner_harness import OwnerHarness
from tests.engine.owners.settings import Setting, everywhere, in_memory, where_edits_are_reported
from tests.engine.test_hold import WINDOW

pytestmark = pytest.mark.slow


async def drift_and_step(harness: OwnerHarness, times: int) -> Settled:
    """Another writer changes a managed field, and a step follows; so many times."""
    for _ in range(times - 1):
        await drift_and_step(harness, times=1)
    await harness.drift()
    return await harness.settled()


def place(harness: OwnerHarness) -> str:
    return str(Path((harness.fixture.managed.key, *harness.fixture.managed.path.steps)))


async def counts(harness: OwnerHarness) -> list[int]:
    return [one.count for one in StoredState.of(await harness.resource()).oscillations.fields]


@everywhere
def test_the_third_revert_is_reported_and_the_fourth_is_withheld(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=2)
        assert "Contested" not in await harness.conditions()
        await drift_and_step(harness, times=1)
        reported = (await harness.conditions())["Contested"]["message"]

        outcome = await drift_and_step(harness, times=1)

        assert reported.startswith(f"{place(harness)} was reverted 3 times since")
        assert outcome.plan.is_empty
        assert [str(one.path) for one in outcome.plan.withheld] == [place(harness)]
        ready = (await harness.conditions())["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "Contested")
        assert "Contested" in await harness.reasons()
        assert (await harness.preview()).withheld == outcome.plan.withheld

    setting.play(scenario)


@everywhere
def test_while_it_waits_nothing_is_written(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=4)
        revision, notes = await harness.revision(), await harness.store.events()

        for _ in range(20):
            await harness.settled()

        assert await harness.revision() == revision
        assert await harness.store.events() == notes
        harness.clock.seconds += FIRST_BACKOFF
        assert [write.name for write in (await harness.settled()).plan.writes] == [harness.fixture.managed.key]
        assert await counts(harness) == [4]

    setting.play(scenario)


@in_memory
def test_in_a_day_of_oscillation_reverts_become_rare(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        reverts, is_ours = 0, True
        while harness.clock.seconds < 24 * LONGEST_BACKOFF:
            if is_ours:
                await harness.drift()
            is_ours = bool((await harness.settled()).plan.writes)
            reverts += is_ours
            harness.clock.seconds += 30 if harness.clock.seconds < LONGEST_BACKOFF else 600

        assert 24 < reverts < 36

    setting.play(scenario)


@everywhere
def test_the_other_children_are_corrected_meanwhile(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=4)
        other = next(key for key in await harness.children() if key != harness.fixture.managed.key)
        await harness.remove(other)

        outcome = await harness.settled()

        assert [write.name for write in outcome.plan.writes] == [other]
        assert [str(one.path) for one in outcome.plan.withheld] == [place(harness)]
        assert other in await harness.children()

    setting.play(scenario)


@where_edits_are_reported
def test_during_the_backoff_removed_entries_are_still_known(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.edit(harness.fixture.managed.key, Path.parse(harness.fixture.entries), {})
        assert (await drift_and_step(harness, times=4)).plan.withheld
        harness.clock.seconds += FIRST_BACKOFF

        assert (await harness.settled()).plan.writes

        live = await harness.child(harness.fixture.managed.key)
        assert get_at(live.document, Path.parse(harness.fixture.entries)) == {}
        assert harness.fixture.entries in (await harness.conditions())["Edited"]["message"]

    setting.play(scenario)


@everywhere
def test_a_request_has_it_reverted_now(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=4)

        outcome = await harness.step(requested=True)

        assert isinstance(outcome, Settled)
        assert [write.name for write in outcome.plan.writes] == [harness.fixture.managed.key]

    setting.play(scenario)


@everywhere
def test_an_edit_of_the_author_is_a_new_beginning(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=4)
        await harness.change()

        outcome = await harness.settled()

        assert harness.fixture.managed.key in [write.name for write in outcome.plan.writes]
        assert "Contested" not in await harness.conditions()
        assert (await drift_and_step(harness, times=1)).plan.writes

    setting.play(scenario)


@everywhere
def test_what_stays_as_it_should_be_is_forgotten(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await drift_and_step(harness, times=3)
        harness.clock.seconds += EXPIRES_AFTER

        await harness.settled()

        assert "Contested" not in await harness.conditions()
        assert await counts(harness) == []

    setting.play(scenario)


@where_edits_are_reported
def test_an_editable_field_never_oscillates(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        for number in range(8):
            await harness.edit(harness.fixture.editable.key, harness.fixture.editable.path, number % 2 + 5)
            assert (await harness.settled()).plan.is_empty

        assert await counts(harness) == []

    setting.play(scenario)


@in_memory
@pytest.mark.parametrize(("before", "in_all"), [(0, 3), (2, 3), (3, 4)])
def test_killed_after_any_await_no_revert_is_lost_or_counted_twice(setting: Setting, before: int, in_all: int) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        for awaits in range(1, 60):
            await harness.begin()
            await harness.settled()
            await drift_and_step(harness, times=before) if before else None
            harness.clock.seconds += FIRST_BACKOFF
            await harness.drift()
            was_killed = await harness.killed_after(awaits)
            await harness.restart()

            await drift_and_step(harness, times=6)

            assert await counts(harness) == [in_all]
            assert "Contested" in await harness.conditions()
            await harness.store.delete(harness.ref)
            await harness.step()
            if not was_killed:
                assert awaits > 4
                return
        pytest.fail("a step never ended")

    setting.play(scenario)


@in_memory
def test_another_rule_that_withholds_drift_applies_to_children(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        monkeypatch.setattr(hold, "HOLD_RULES", (*HOLD_RULES, WINDOW))

        outcome = await drift_and_step(harness, times=1)

        assert outcome.plan.is_empty
        assert [str(one.path) for one in outcome.plan.withheld] == [place(harness)]
        assert outcome.ready.reason == "MaintenanceWindow"
        assert outcome.requeue_after is not None
        assert 0 < outcome.requeue_after < 7200

    setting.play(scenario)
