"""The steps of another process, followed by statuses alone, have the outcomes that a run of this process has."""

import asyncio
from collections.abc import Callable

import pytest

from setpoint.cli.views.outcome import OutcomeSummary, summarize_outcome
from setpoint.engine.drivers.follower import outcome_of, step_records
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import DependencyNotFound, DependencyNotReady, OperationRunning
from setpoint.stores.journal import StoreLimits
from setpoint.testing.faults import CallFault
from setpoint.testing.kind_parts import Spec
from simulation.virtual_time import VirtualClock, run
from tests.engine.follower_harness import FollowerHarness, play
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import gadget_ref

MANAGEMENT = "setpoint.dev/management"
A, B = gadget_ref("a"), gadget_ref("b")


# --- The same words as a run of one's own -----------------------------------------------------------------------------


def _nothing(_: GadgetFixture) -> None:
    """All is well."""


def _refusing(fixture: GadgetFixture) -> None:
    fixture.fail_next_calls(CallFault.REFUSED, ["create"])


def _stubborn(fixture: GadgetFixture) -> None:
    fixture.rewrite("size", 7)


ENDINGS: dict[str, tuple[Callable[[GadgetFixture], None], dict[str, tuple[Spec, dict[str, str]]]]] = {
    "created": (_nothing, {"a": ({"size": 1}, {})}),
    "in a row": (_nothing, {"a": ({"parentRef": "b"}, {}), "b": ({"parentRef": "c"}, {}), "c": ({}, {})}),
    "refused": (_refusing, {"a": ({"size": 1}, {})}),
    "not converged": (_stubborn, {"a": ({"size": 1}, {})}),
    "blocked": (_nothing, {"a": ({"parentRef": "nowhere"}, {}), "b": ({"parentRef": "a"}, {}), "c": ({}, {})}),
    "blocked by each other": (_nothing, {"a": ({"parentRef": "b"}, {}), "b": ({"parentRef": "a"}, {})}),
    "in a ring": (
        _nothing,
        {"a": ({"parentRef": "b"}, {}), "b": ({"parentRef": "c"}, {}), "c": ({"parentRef": "a"}, {})},
    ),
    "paused": (_nothing, {"a": ({"size": 1}, {MANAGEMENT: "paused"})}),
    "observed": (_nothing, {"a": ({"size": 1}, {MANAGEMENT: "observe"})}),
    "a word that means nothing": (_nothing, {"a": ({"size": 1}, {MANAGEMENT: "perhaps"})}),
}


def _states(outcomes: dict[str, StepOutcome]) -> dict[str, OutcomeSummary]:
    return {name: summarize_outcome(outcome) for name, outcome in outcomes.items()}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_follower_reports_the_outcomes_of_a_run(ending: str) -> None:
    prepare, specs = ENDINGS[ending]

    async def prepared() -> tuple[FollowerHarness, list[ResourceRef]]:
        harness = FollowerHarness()
        prepare(harness.fixture)
        pairs = [(name, spec, annotations) for name, (spec, annotations) in specs.items()]
        return harness, [await harness.apply(name, spec, annotations=given) for name, spec, given in pairs]

    async def scenario() -> None:
        harness, refs = await prepared()
        other, same_refs = await prepared()

        followed = await harness.follow_with_controller(refs)
        ran = await StepRunner(other.engine).until_done(same_refs, 60)

        assert _states(followed) == _states({ref.name: outcome for ref, outcome in ran.items()})

    run(scenario())


def test_an_immutable_change_has_the_outcome_of_a_run() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"zone": "x"})
        await harness.step(ref)
        await harness.apply("a", {"zone": "y"})

        outcomes = await harness.follow_with_controller([ref])

        assert _states(outcomes) == {"a": summarize_outcome(await harness.step(ref))}

    play(scenario)


def test_an_operation_is_reported_and_followed_to_its_end() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        harness.fixture.make_slow()
        ref = await harness.apply("a", {"size": 1})

        await harness.follow_with_controller([ref])

        states = [
            (state.word, state.detail) for state in (summarize_outcome(outcome) for _, outcome in harness.reported)
        ]
        assert states == [("waiting", "operation op-1 is running"), ("created", "")]

    play(scenario)


def test_an_edit_that_was_written_is_reported_as_updated() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        harness.follow.before = await step_records([ref], harness.store)
        await harness.apply("a", {"size": 2})

        outcomes = await harness.follow_with_controller([ref])

        assert summarize_outcome(outcomes["a"]).word == "updated"

    play(scenario)


# --- Which status speaks of now ---------------------------------------------------------------------------------------


def test_the_status_of_an_older_generation_is_no_outcome() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        await harness.apply("a", {"size": 2})

        assert outcome_of(await harness.resource(ref)) is None

    play(scenario)


def test_a_requested_reconcile_is_reported_once_its_request_is_handled() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        harness.follow.before = await step_records([ref], harness.store)
        await harness.ask([ref])
        unanswered = outcome_of(await harness.resource(ref))

        outcomes = await harness.follow_with_controller([ref])

        assert unanswered is None
        assert summarize_outcome(outcomes["a"]).word == "unchanged"

    play(scenario)


def test_a_later_request_that_was_taken_up_answers_an_earlier_one() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.ask([ref])
        await harness.ask([ref])
        await harness.step(ref)

        assert isinstance(outcome_of(await harness.resource(ref)), Settled)

    play(scenario)


def test_what_was_said_before_a_deletion_is_not_said_of_it() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        await harness.store.delete(ref)

        assert outcome_of(await harness.resource(ref)) is None

    play(scenario)


# --- Deletion ---------------------------------------------------------------------------------------------------------


def test_a_deletion_is_followed_until_the_resource_is_gone() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        harness.fixture.make_slow()
        await harness.store.delete(ref)

        outcomes = await harness.follow_with_controller([ref])

        words = [
            (state.word, state.detail) for state in (summarize_outcome(outcome) for _, outcome in harness.reported)
        ]
        assert words == [("waiting", "operation op-1 is running"), ("deleted", "")]
        assert outcomes == {"a": Gone()}

    play(scenario)


def test_a_refused_deletion_is_reported() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        harness.fixture.fail_next_calls(CallFault.REFUSED, ["delete"])
        await harness.store.delete(ref)

        outcomes = await harness.follow_with_controller([ref])

        assert (summarize_outcome(outcomes["a"]).word, summarize_outcome(outcomes["a"]).detail) == (
            "failed",
            "delete a: 403",
        )

    play(scenario)


def test_one_that_was_made_anew_is_not_the_one_that_was_deleted() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        await harness.step(ref)
        await harness.store.delete(ref)
        following = asyncio.create_task(harness.follow.until_done([ref], 60))
        await asyncio.sleep(1)
        await harness.step(ref)
        await harness.apply("a", {"size": 1})

        assert await following == {ref: Gone()}

    play(scenario)


# --- The end ----------------------------------------------------------------------------------------------------------


def test_blocked_resources_are_reconciled_once_more_after_the_last_is_done() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        refs = [await harness.apply("a", {"parentRef": "nowhere"}), await harness.apply("c", {})]

        outcomes = await harness.follow_with_controller(refs)

        assert harness.asked == [[A]]
        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["c"], Settled)

    play(scenario)


def test_a_resource_that_was_blocked_before_another_was_done_is_still_followed() -> None:
    """The status of the one that waits is written last, and speaks of the time before."""

    async def scenario(harness: FollowerHarness) -> None:
        refs = [await harness.apply("a", {"parentRef": "b"}), await harness.apply("b", {})]
        await harness.step(A)
        waiting = (await harness.resource(A)).status
        await harness.store.update_status(await harness.resource(A), {})
        await harness.step(B)
        await harness.store.update_status(await harness.resource(A), waiting)

        following = asyncio.create_task(harness.follow.until_done(refs, 60))
        await asyncio.sleep(1)
        await harness.step(A)

        assert {ref.name: type(outcome) for ref, outcome in (await following).items()} == {"a": Settled, "b": Settled}

    play(scenario)


def test_a_time_out_leaves_the_last_word_of_each() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        harness.fixture.make_slow()
        refs = [await harness.apply("a", {"size": 1}), await harness.apply("b", {"parentRef": "a"})]
        following = asyncio.create_task(harness.follow.until_done(refs, 30))
        await harness.step(A)
        await harness.step(B)

        outcomes = await following

        assert {ref: type(one.error) for ref, one in outcomes.items() if isinstance(one, Stopped)} == {
            A: OperationRunning,
            B: DependencyNotReady,
        }
        assert VirtualClock().monotonic() == 30

    play(scenario)


def test_an_unavailable_service_is_no_outcome() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        harness.fixture.fail_next_calls(CallFault.CUT)
        ref = await harness.apply("a", {"size": 1})

        assert await harness.follow_with_controller([ref], timeout=30) == {}

    play(scenario)


def test_the_first_word_of_each_can_be_enough() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        harness.fixture.make_slow()
        refs = [await harness.apply("a", {"size": 1}), await harness.apply("b", {"parentRef": "nowhere"})]
        controller = asyncio.create_task(harness.run_controller())

        outcomes = await harness.follow.until_first_outcome(refs, 60)

        controller.cancel()
        assert {ref: type(one.error) for ref, one in outcomes.items() if isinstance(one, Stopped)} == {
            A: OperationRunning,
            B: DependencyNotFound,
        }
        assert harness.asked == []

    play(scenario)


def test_a_watch_that_fell_behind_begins_anew() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        following = asyncio.create_task(harness.follow.until_done([ref], 60))
        await asyncio.sleep(1)
        for number in range(5):
            await harness.apply("b", {"size": number})
        await harness.step(ref)

        assert isinstance((await following)[ref], Settled)

    play(scenario, StoreLimits(changes=1))


def test_current_statuses_can_be_read_at_the_end() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        following = asyncio.create_task(harness.follow.until_done([ref], 60))
        await asyncio.sleep(1)
        following.cancel()
        await harness.step(ref)

        await harness.follow.refresh()

        assert isinstance(harness.follow.outcomes[ref], Settled)

    play(scenario)
