"""A resource that is to stand for another object than before."""

import pytest

from setpoint.core.plan import Action
from setpoint.engine.context import Settled, Stopped
from setpoint.errors import ImmutableFieldChanged, LocationChanged, OperationRunning
from tests.engine.shore import FOR_ADDRESS, Shore, play


async def _moved(shore: Shore, annotations: dict[str, str] | None = None, *, replace: bool = True) -> None:
    """The thing `a`, first called `old` and then `new`."""
    await shore.apply("a", annotations=annotations, called="old", replace=replace)
    await shore.run("a")
    await shore.apply("a", annotations=annotations, called="new", replace=replace)


def test_without_a_word_of_its_author_it_is_refused_and_nothing_is_touched() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore, replace=False)

        outcome = await shore.step("a")

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, LocationChanged)
        assert list(shore.service.objects) == ["old"]
        with pytest.raises(LocationChanged):
            await shore.plan("a")

    play(scenario)


def test_the_old_one_is_gone_before_the_new_one_is_made() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert shore.service.writes == [("create", "old"), ("delete", "old"), ("create", "new")]

    play(scenario)


def test_as_long_as_the_old_one_is_held_the_new_one_is_not_made() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        shore.service.held.add("old")

        outcomes = await shore.run("a", timeout=60)

        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, OperationRunning)
        assert list(shore.service.objects) == ["old"]
        assert shore.service.writes == [("create", "old"), ("delete", "old")]
        shore.service.let_go("old")
        assert isinstance((await shore.run("a"))["a"], Settled)
        assert list(shore.service.objects) == ["new"]

    play(scenario)


def test_the_plan_says_that_it_is_a_replacement_and_writes_nothing() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        calls = len(shore.service.writes)

        plan = await shore.plan("a")

        assert [write.action for write in plan.writes] == [Action.REPLACE]
        assert [str(change.path) for change in plan.changes] == ["spec.size"]
        assert len(shore.service.writes) == calls

    play(scenario)


def test_the_plan_says_so_where_the_new_one_is_there_already() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        shore.service.put("new", {"size": 1})

        plan = await shore.plan("a")

        assert [write.action for write in plan.writes] == [Action.REPLACE]
        assert isinstance((await shore.run("a"))["a"], Settled)
        assert list(shore.service.objects) == ["new"]

    play(scenario)


def test_what_is_to_outlive_its_resource_stays_where_it_is() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore, {"cnrm.cloud.google.com/deletion-policy": "abandon"})

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(shore.service.objects) == ["new", "old"]
        assert ("delete", "old") not in shore.service.writes

    play(scenario)


def test_an_object_that_was_somebody_elses_all_the_time_stays_theirs() -> None:
    async def scenario(shore: Shore) -> None:
        shore.service.put("old", {"size": 9})
        await shore.apply("a", called="old", replace=True)
        shore.service.down, shore.service.down_for = "no route", ("update",)
        await shore.step("a")
        shore.service.down = ""
        await shore.apply("a", called="new", replace=True)

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(shore.service.objects) == ["new", "old"]
        assert shore.service.deleted == []

    play(scenario)


def test_what_was_ours_elsewhere_makes_no_other_object_ours() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        shore.service.put("new", {"size": 9})
        shore.service.down, shore.service.down_for = "no route", ("update",)
        await shore.run("a", timeout=5)
        assert list(shore.service.objects) == ["new"]
        shore.service.down = ""
        await shore.apply("a", called="newest", replace=True)

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert sorted(shore.service.objects) == ["new", "newest"]

    play(scenario)


def test_an_author_who_changes_his_mind_meanwhile_has_the_old_one_again() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        await shore.step("a")
        await shore.apply("a", called="old", replace=True)

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert list(shore.service.objects) == ["old"]

    play(scenario)


def test_what_is_only_observed_gives_way_to_nobody() -> None:
    async def scenario(shore: Shore) -> None:
        await _moved(shore)
        await shore.apply("a", annotations={"setpoint.dev/management": "observe"}, called="new", replace=True)

        outcome = await shore.step("a")

        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, LocationChanged)
        assert list(shore.service.objects) == ["old"]

    play(scenario)


def test_a_new_object_is_waited_for_from_its_own_beginning() -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("a", called="old", replace=True, waitFor=FOR_ADDRESS)
        await shore.step("a")
        shore.service.set_status("old", address="10.0.0.1")
        await shore.run("a")
        await shore.apply("a", called="new", replace=True, waitFor=FOR_ADDRESS)
        shore.after(5, lambda: shore.service.set_status("new", address="10.0.0.2"))

        outcomes = await shore.run("a")

        assert isinstance(outcomes["a"], Settled)
        assert (await shore.resource("a")).status["output"] == {
            "state": "known",
            "value": {"status": {"address": "10.0.0.2"}},
        }

    play(scenario)


def test_an_immutable_field_is_refused_unless_its_author_lets_the_object_go() -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("a", {"zone": "x"})
        await shore.run("a")
        await shore.apply("a", {"zone": "y"})
        outcome = await shore.step("a")
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, ImmutableFieldChanged)

        await shore.apply("a", {"zone": "y"}, replace=True)

        assert isinstance((await shore.run("a"))["a"], Settled)
        assert shore.live("a") == {"zone": "y"}
        assert shore.service.writes == [("create", "a"), ("delete", "a"), ("create", "a")]

    play(scenario)
