"""The preview of an owner is its step stopped before it writes: its plan is the plan of the step that follows it."""

from collections.abc import Awaitable, Callable

import pytest

from setpoint.core.plan import Action
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Stopped
from setpoint.testing.owners.owner_harness import OwnerHarness
from tests.engine.owners.settings import Setting, everywhere


async def _new(harness: OwnerHarness) -> None:
    await harness.begin()


async def _unchanged(harness: OwnerHarness) -> None:
    await harness.settle()


async def _changed_by_the_author(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.change()


async def _with_a_managed_field_changed(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.drift()


async def _with_an_edit_that_is_kept(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.write()


async def _with_a_child_deleted(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.remove(harness.fixture.readiness_child)


async def _only_observed(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.apply(annotations={MANAGEMENT: "observe"})


async def _paused(harness: OwnerHarness) -> None:
    await harness.settle()
    await harness.drift()
    await harness.apply(annotations={MANAGEMENT: "paused"})


async def _killed_in_the_middle(harness: OwnerHarness) -> None:
    await harness.begin()
    assert await harness.killed_after(4)
    await harness.restart()


@pytest.mark.parametrize(
    "situation",
    [
        _new,
        _unchanged,
        _changed_by_the_author,
        _with_a_managed_field_changed,
        _with_an_edit_that_is_kept,
        _with_a_child_deleted,
        _only_observed,
        _paused,
        _killed_in_the_middle,
    ],
    ids=lambda situation: situation.__name__.strip("_").replace("_", " "),
)
@everywhere
def test_the_plan_of_a_preview_is_the_plan_of_the_step_that_follows_it(
    setting: Setting, situation: Callable[[OwnerHarness], Awaitable[None]]
) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await situation(harness)
        revision = await harness.revision()
        previewed = await harness.preview()
        assert await harness.revision() == revision

        outcome = await harness.settled()

        assert outcome.plan == previewed
        if previewed.writes:
            record = StoredState.of(await harness.resource()).step
            assert record is not None
            assert {name: record[name] for name in previewed.to_data()} == previewed.to_data()

    setting.play(scenario)


@everywhere
def test_the_plan_of_a_deletion_names_the_children_that_the_step_deletes(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        await harness.store.delete(harness.ref)
        before = await harness.children()

        previewed = await harness.preview()

        assert await harness.children() == before
        assert {write.action for write in previewed.writes} <= {Action.DELETE}
        outcome = await harness.step()
        every = {f"{one.ref.kind}/{one.ref.name}" for one in (await harness.store.list()).resources}
        going = set(before) - every
        # What has finalizers of its own is marked, and still there.
        marked = {key for key in before if key in every and (await harness.child(key)).is_deleting}
        assert {write.name for write in previewed.writes} == going | marked
        assert isinstance(outcome, Stopped) == bool(marked)

    setting.play(scenario)
