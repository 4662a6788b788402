"""Errors of another process are reported, though they are in no status."""

import asyncio

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import Bug, RemoteUnavailable
from tests.engine.follower_harness import FollowerHarness, play


def test_an_error_that_is_in_no_status_is_reported_until_a_status_has_an_outcome() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        following = asyncio.create_task(harness.follow.until_done([ref], 60))
        await asyncio.sleep(1)
        down, still_down = RemoteUnavailable("GET a: 503"), RemoteUnavailable("GET a: 503")
        harness.follow.record_error(ref, down)
        harness.follow.record_error(ref, still_down)
        reported = list(harness.reported)
        await harness.step(ref)
        await following
        harness.follow.record_error(ref, down)

        assert [outcome for _, outcome in reported] == [Stopped(down)]
        assert isinstance(harness.follow.outcomes[ref], Settled)

    play(scenario)


def test_a_bug_in_the_other_process_ends_the_follower() -> None:
    async def scenario(harness: FollowerHarness) -> None:
        ref = await harness.apply("a", {"size": 1})
        following = asyncio.create_task(harness.follow.until_done([ref], 60))
        await asyncio.sleep(1)
        harness.follow.record_error(ref, Bug("broke"))
        following.cancel()

        assert harness.follow.left == []
        assert [
            type(outcome.error) for outcome in harness.follow.outcomes.values() if isinstance(outcome, Stopped)
        ] == [Bug]

    play(scenario)
