"""A resource that moves to another location: its object is replaced."""

import pytest

from setpoint.core.plan import Action
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import ImmutableFieldChanged, LocationChanged, OperationRunning, RemoteRefused
from tests.engine.runner_harness import FOR_ADDRESS, RunnerHarness, play


async def _moved(harness: RunnerHarness, annotations: dict[str, str] | None = None, *, replace: bool = True) -> None:
    """The thing `a`, first called `old` and then `new`."""
    await harness.apply("a", annotations=annotations, called="old", replace=replace)
    await harness.run("a")
    await harness.apply("a", annotations=annotations, called="new", replace=replace)


def test_without_permission_in_the_spec_a_move_is_refused_and_nothing_is_written() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness, replace=False)

        outcome = await harness.step("a")

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, LocationChanged)
        assert list(harness.service.objects) == ["old"]
        with pytest.raises(LocationChanged):
            await harness.plan("a")

    play(scenario)


def test_the_old_one_is_gone_before_the_new_one_is_made() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert harness.service.writes == [("create", "old"), ("delete", "old"), ("create", "new")]

    play(scenario)


def test_as_long_as_the_old_one_is_held_the_new_one_is_not_made() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        harness.service.held.add("old")

        outcomes = await harness.run("a", timeout=60)

        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, OperationRunning)
        assert list(harness.service.objects) == ["old"]
        assert harness.service.writes == [("create", "old"), ("delete", "old")]
        harness.service.let_go("old")
        assert isinstance((await harness.run("a"))["a"], Settled)
        assert list(harness.service.objects) == ["new"]

    play(scenario)


def test_the_old_one_is_deleted_even_if_the_service_refuses_the_new_one_beside_it() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        harness.service.exclusive = True
        with pytest.raises(RemoteRefused, match="old uses the same address"):
            await harness.plan("a")

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert harness.service.writes == [("create", "old"), ("delete", "old"), ("create", "new")]

    play(scenario)


def test_the_plan_says_that_it_is_a_replacement_and_writes_nothing() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        calls = len(harness.service.writes)

        plan = await harness.plan("a")

        assert [write.action for write in plan.writes] == [Action.REPLACE]
        assert [str(change.path) for change in plan.changes] == ["spec.size"]
        assert len(harness.service.writes) == calls

    play(scenario)


def test_the_plan_says_so_where_the_new_one_is_there_already() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        harness.service.put("new", {"size": 1})

        plan = await harness.plan("a")

        assert [write.action for write in plan.writes] == [Action.REPLACE]
        assert isinstance((await harness.run("a"))["a"], Settled)
        assert list(harness.service.objects) == ["new"]

    play(scenario)


def test_an_abandoned_object_stays_when_its_resource_moves() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness, {"cnrm.cloud.google.com/deletion-policy": "abandon"})

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(harness.service.objects) == ["new", "old"]
        assert ("delete", "old") not in harness.service.writes

    play(scenario)


def test_an_object_that_was_never_adopted_is_not_deleted() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        harness.service.put("old", {"size": 9})
        await harness.apply("a", called="old", replace=True)
        harness.service.down, harness.service.down_for = "no route", ("update",)
        await harness.step("a")
        harness.service.down = ""
        await harness.apply("a", called="new", replace=True)

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(harness.service.objects) == ["new", "old"]
        assert harness.service.deleted == []

    play(scenario)


def test_the_state_of_the_old_object_says_nothing_about_the_new_one() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        harness.service.put("new", {"size": 9})
        harness.service.down, harness.service.down_for = "no route", ("update",)
        await harness.run("a", timeout=5)
        assert list(harness.service.objects) == ["new"]
        harness.service.down = ""
        await harness.apply("a", called="newest", replace=True)

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(harness.service.objects) == ["new", "newest"]

    play(scenario)


def test_an_edit_back_to_the_old_name_creates_the_old_object_again() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        await harness.step("a")
        await harness.apply("a", called="old", replace=True)

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert list(harness.service.objects) == ["old"]

    play(scenario)


def test_an_observed_object_is_not_replaced() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _moved(harness)
        await harness.apply("a", annotations={"setpoint.dev/management": "observe"}, called="new", replace=True)

        outcome = await harness.step("a")

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, LocationChanged)
        assert list(harness.service.objects) == ["old"]

    play(scenario)


def test_a_new_object_is_waited_for_from_its_own_beginning() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", called="old", replace=True, waitFor=FOR_ADDRESS)
        await harness.step("a")
        harness.service.set_status("old", address="10.0.0.1")
        await harness.run("a")
        await harness.apply("a", called="new", replace=True, waitFor=FOR_ADDRESS)
        harness.after(5, lambda: harness.service.set_status("new", address="10.0.0.2"))

        outcomes = await harness.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert (await harness.resource("a")).status["output"] == {
            "state": "known",
            "value": {"status": {"address": "10.0.0.2"}},
        }

    play(scenario)


def test_an_immutable_field_is_refused_unless_its_author_lets_the_object_go() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"zone": "x"})
        await harness.run("a")
        await harness.apply("a", {"zone": "y"})
        outcome = await harness.step("a")
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, ImmutableFieldChanged)

        await harness.apply("a", {"zone": "y"}, replace=True)

        assert isinstance((await harness.run("a"))["a"], Settled)
        assert harness.live("a") == {"zone": "y"}
        assert harness.service.writes == [("create", "a"), ("delete", "a"), ("create", "a")]

    play(scenario)
