"""The preview of an owner is its step stopped before it writes: its plan is the plan of the step that follows it."""

from collections.abc import Awaitable, Callable

import pytest

from setpoint.core.plan import Action
from setpoint.engine.context import MANAGEMENT, Stopped
from setpoint.engine.state import StoredState
from tests.engine.owners.home import Home
from tests.engine.owners.settings import Setting, everywhere


async def _new(home: Home) -> None:
    await home.begin()


async def _unchanged(home: Home) -> None:
    await home.settle()


async def _changed_by_the_author(home: Home) -> None:
    await home.settle()
    await home.change()


async def _with_a_managed_field_changed(home: Home) -> None:
    await home.settle()
    await home.meddle()


async def _with_an_edit_that_is_kept(home: Home) -> None:
    await home.settle()
    await home.write()


async def _with_a_child_deleted(home: Home) -> None:
    await home.settle()
    await home.remove(home.stand.teller)


async def _only_observed(home: Home) -> None:
    await home.settle()
    await home.meddle()
    await home.apply(annotations={MANAGEMENT: "observe"})


async def _paused(home: Home) -> None:
    await home.settle()
    await home.meddle()
    await home.apply(annotations={MANAGEMENT: "paused"})


async def _killed_in_the_middle(home: Home) -> None:
    await home.begin()
    assert await home.killed_after(4)
    await home.restart()


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
    setting: Setting, situation: Callable[[Home], Awaitable[None]]
) -> None:
    async def scenario(home: Home) -> None:
        await situation(home)
        revision = await home.revision()
        previewed = await home.preview()
        assert await home.revision() == revision

        outcome = await home.settled()

        assert outcome.plan == previewed
        if previewed.writes:
            record = StoredState.of(await home.resource()).step
            assert record is not None
            assert {name: record[name] for name in previewed.to_data()} == previewed.to_data()

    setting.play(scenario)


@everywhere
def test_the_plan_of_a_deletion_names_the_children_that_the_step_deletes(setting: Setting) -> None:
    async def scenario(home: Home) -> None:
        await home.settle()
        await home.store.delete(home.ref)
        before = await home.children()

        previewed = await home.preview()

        assert await home.children() == before
        assert {write.action for write in previewed.writes} <= {Action.DELETE}
        outcome = await home.step()
        every = {f"{one.ref.kind}/{one.ref.name}" for one in (await home.store.list()).resources}
        going = set(before) - every
        # What has finalizers of its own is marked, and still there.
        marked = {key for key in before if key in every and (await home.child(key)).is_deleting}
        assert {write.name for write in previewed.writes} == going | marked
        assert isinstance(outcome, Stopped) == bool(marked)

    setting.play(scenario)
