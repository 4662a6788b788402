"""Waits and values in one `apply`: by steps of one's own, and by those of another process. Both come to the same."""

from typing import Final

from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import ManifestInvalid, RemoteRefused
from setpoint.library.outcome import ExitCode, summarize_outcome
from tests.engine.either_way import By, apply_pair, codes, either_way, ends, time_now
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS, T0, RunnerHarness, play
from tests.engine.things import value_of

AFTER: Final = "setpoint.dev/depends-on"
FAILED: Final = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many failures"}


@either_way
def test_a_dependant_is_made_with_the_value_once_it_arrives(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)
        harness.after(20, lambda: harness.service.set_status("z", address="10.0.0.1"))

        outcomes = await by(harness)("a", "z")

        assert ends(outcomes) == {"a": "Settled", "z": "Settled"}
        assert harness.live("a") == {"host": "10.0.0.1"}
        assert harness.service.writes == [("create", "z"), ("create", "a")]
        assert 20 <= time_now() < 25

    play(scenario)


@either_way
def test_a_timeout_leaves_the_object_and_blocks_the_dependants_and_the_next_run_finishes(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)

        first = await by(harness)("a", "z")

        assert ends(first) == {"a": "Blocked", "z": "WaitTimedOut"}
        assert codes(first) == {"a": ExitCode.WAITING, "z": ExitCode.WAITING}
        assert 60 <= time_now() < 65
        assert list(harness.service.objects) == ["z"]
        again = time_now()
        harness.after(50, lambda: harness.service.set_status("z", address="10.0.0.1"))
        assert ends(await by(harness)("a", "z")) == {"a": "Settled", "z": "Settled"}
        assert 49.9 < time_now() - again < 55
        assert harness.service.writes == [("create", "z"), ("create", "a")]

    play(scenario)


@either_way
def test_a_blocked_dependant_says_what_it_waits_for_in_the_end(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)

        outcomes = await by(harness)("a", "z")

        message = (
            f"waiting for status.address of Thing default/z, unknown since {T0}: the wait timed out: not within 60 s: "
            "status.address is not there yet: the object has no status"
        )
        assert summarize_outcome(outcomes["a"]).detail == message
        assert (await harness.ready("a"))[2] == message

    play(scenario)


@either_way
def test_at_the_timeout_both_outcomes_are_returned_and_the_next_run_continues(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)

        outcomes = await by(harness)("a", "z", timeout=30)

        assert ends(outcomes) == {"a": "Blocked", "z": "StillWaiting"}
        assert codes(outcomes) == {"a": ExitCode.WAITING, "z": ExitCode.WAITING}
        again = time_now()
        assert ends(await by(harness)("a", "z")) == {"a": "Blocked", "z": "WaitTimedOut"}
        assert 29 <= time_now() - again < 35

    play(scenario)


@either_way
def test_a_failure_ends_the_wait_at_once_and_blocks_the_dependants(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)
        harness.service.put("z", {"size": 1})
        harness.service.objects["z"] |= {"apiVersion": "batch/v1", "kind": "Job"}
        harness.after(5, lambda: harness.service.set_status("z", conditions=[FAILED]))

        outcomes = await by(harness)("a", "z")

        assert ends(outcomes) == {"a": "Blocked", "z": "WaitFailed"}
        assert codes(outcomes) == {"a": ExitCode.WAITING, "z": ExitCode.FAILED}
        assert summarize_outcome(outcomes["z"]).detail == "BackoffLimitExceeded: too many failures"
        assert time_now() < 10

    play(scenario)


@either_way
def test_a_dependant_of_a_wait_that_timed_out_is_not_created(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", annotations={AFTER: "Thing/z"})
        await harness.apply("z", waitFor={"condition": "Ready", "timeout": "10s"})

        outcomes = await by(harness)("a", "z")

        assert ends(outcomes) == {"a": "DependencyNotReady", "z": "WaitTimedOut"}
        assert "a" not in harness.service.objects

    play(scenario)


@either_way
def test_an_object_that_is_deleted_during_its_wait_fails_this_run_and_the_next_continues(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", waitFor=FOR_ADDRESS)
        harness.after(5, lambda: harness.service.remove("z"))

        assert ends(await by(harness)("z")) == {"z": "WaitFailed"}

        harness.after(5, lambda: harness.service.set_status("z", address="10.0.0.1"))
        assert ends(await by(harness)("z")) == {"z": "Settled"}

    play(scenario)


@either_way
def test_a_dependant_alone_is_blocked_by_what_nothing_else_here_moves(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", waitFor=FOR_ADDRESS)
        await harness.run("z", timeout=5)
        await harness.apply("a", {"host": value_of("z", ADDRESS)})
        begun = time_now()

        outcomes = await by(harness)("a")

        assert ends(outcomes) == {"a": "Blocked"}
        assert time_now() - begun < 5
        harness.service.set_status("z", address="10.0.0.1")
        await harness.run("z")
        assert ends(await by(harness)("a")) == {"a": "Settled"}

    play(scenario)


@either_way
def test_a_missing_wait_is_an_error_of_the_dependant_alone(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"host": value_of("z", ADDRESS)})
        await harness.apply("z")

        outcomes = await by(harness)("a", "z")

        assert codes(outcomes) == {"a": ExitCode.FAILED, "z": ExitCode.DONE}
        assert "add waitFor.field to Thing default/z" in summarize_outcome(outcomes["a"]).detail
        assert isinstance(outcomes["a"], Stopped)
        assert isinstance(outcomes["a"].error, ManifestInvalid | RemoteRefused)

    play(scenario)


@either_way
def test_a_chain_is_reported_to_its_end(by: By) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"host": value_of("m", ADDRESS)})
        await harness.apply("m", {"host": value_of("z", ADDRESS)}, waitFor=FOR_ADDRESS)
        await harness.apply("z", waitFor=FOR_ADDRESS)

        outcomes = await by(harness)("a", "m", "z", timeout=20)

        message = (
            "waiting for status.address of Thing default/m: it is not ready; it is blocked itself: waiting for "
            f"status.address of Thing default/z, unknown since {T0}: status.address is not there yet: the object has "
            "no status"
        )
        assert ends(outcomes) == {"a": "Blocked", "m": "Blocked", "z": "StillWaiting"}
        assert summarize_outcome(outcomes["a"]).detail == message

    play(scenario)


def test_a_run_ends_with_the_newest_value_whichever_is_reconciled_first() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        for source, dependant in (("z", "a"), ("b", "y")):
            await harness.apply(dependant, {"host": value_of(source, ADDRESS)})
            await harness.apply(source, waitFor=FOR_ADDRESS)
            harness.after(1, lambda source=source: harness.service.set_status(source, address="10.0.0.1"))  # type: ignore[misc]
        await harness.run("a", "b", "y", "z")
        harness.service.set_status("z", address="10.0.0.2")
        harness.service.set_status("b", address="10.0.0.2")

        assert set(ends(await harness.run("a", "b", "y", "z")).values()) == {"Settled"}

        assert harness.live("a") == harness.live("y") == {"host": "10.0.0.2"}
        assert harness.service.writes[4:] == [("update", "y"), ("update", "a")]

    play(scenario)


def test_an_update_of_the_source_is_over_before_its_value_is_taken() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)
        harness.after(1, lambda: harness.service.set_status("z", address="10.0.0.1", observedGeneration=1))
        await harness.run("a", "z")
        await harness.apply("z", {"size": 2}, waitFor=FOR_ADDRESS)
        harness.after(5, lambda: harness.service.set_status("z", address="10.0.0.2", observedGeneration=2))

        assert ends(await harness.run("a", "z")) == {"a": "Settled", "z": "Settled"}

        assert harness.live("a") == {"host": "10.0.0.2"}
        assert harness.service.writes == [("create", "z"), ("create", "a"), ("update", "z"), ("update", "a")]

    play(scenario)


def test_all_that_can_run_runs_at_once() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        names = [f"t{at}" for at in range(20)]
        for name in names:
            await harness.apply(name)
        await harness.apply("last", annotations={AFTER: ",".join(f"Thing/{name}" for name in names)})
        harness.service.latency = 1

        outcomes = await harness.run("last", *names)

        assert set(ends(outcomes).values()) == {"Settled"}
        assert harness.service.busiest == 20
        # Five calls each: observe, dry run, create, observe, dry run.
        assert time_now() == 10

    play(scenario)


def test_resources_that_wait_for_each_other_are_blocked_and_the_rest_is_done() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"host": value_of("b", ADDRESS)}, waitFor=FOR_ADDRESS)
        await harness.apply("b", annotations={AFTER: "Thing/a"}, waitFor=FOR_ADDRESS)
        await harness.apply("c")

        outcomes = await harness.run("a", "b", "c")

        assert ends(outcomes) == {"a": "Blocked", "b": "DependencyNotReady", "c": "Settled"}
        assert time_now() < 1

    play(scenario)
