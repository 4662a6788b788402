"""A call that is cancelled at any point leaves what was begun on record: the next goes on, nothing is made twice."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import setpoint
from setpoint import ResultOutcome
from tests.library.worlds import World, bucket, world

pytestmark = pytest.mark.slow

# No call has as many turns of the event loop.
ENOUGH = 2000

EXPECTED = {ResultOutcome.CREATED, ResultOutcome.ADOPTED, ResultOutcome.UNCHANGED}

Call = Callable[[setpoint.Session], Coroutine[Any, Any, setpoint.CommandResult]]


async def cancelled_after(turns: int, work: Coroutine[Any, Any, object]) -> bool:
    """Whether the work was cancelled after so many turns of the event loop; False when it ended before."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def interrupted_again_and_again(call: Call, here: World, begin: Call | None) -> int:
    """How often the call was cancelled: after each turn of the event loop, in a new session. It is completed then."""
    for turns in range(ENOUGH):
        here.cloud.reset()
        async with here.open() as session:
            if begin is not None:
                await begin(session)
            if not await cancelled_after(turns, call(session)):
                return turns
            result = await call(session)
            assert (result.is_done, (await session.plan()).is_done) == (True, True), f"after {turns} turns"
    pytest.fail("the call never ended")


def test_an_apply_that_is_cancelled_at_any_point_is_completed_by_the_next() -> None:
    async def apply(session: setpoint.Session) -> setpoint.CommandResult:
        result = await session.apply(bucket(versioning={"enabled": True}), bucket("more"))
        assert {one.outcome for one in result} <= {
            ResultOutcome.CREATED,
            ResultOutcome.ADOPTED,
            ResultOutcome.UNCHANGED,
        }
        return result

    async def main() -> None:
        async with world() as here:
            assert await interrupted_again_and_again(apply, here, None) > 10
            creations = [one for one in here.cloud.journal.entries if one.method == "POST" and one.status == 200]
            assert here.buckets == ["logs", "more"]
            assert len(creations) <= 2

    asyncio.run(main())


def test_a_deletion_that_is_cancelled_at_any_point_is_completed_by_the_next() -> None:
    async def begin(session: setpoint.Session) -> setpoint.CommandResult:
        return await session.apply(bucket())

    async def delete(session: setpoint.Session) -> setpoint.CommandResult:
        return await session.delete("StorageBucket/logs", ignore_not_found=True)

    async def main() -> None:
        async with world() as here:
            assert await interrupted_again_and_again(delete, here, begin) > 5
            assert here.buckets == []

    asyncio.run(main())


def test_a_store_in_a_file_is_consistent_after_every_cancelled_apply(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here:
            cancelled = 0
            for number in range(12):
                async with here.open() as session:
                    cancelled += await cancelled_after(number * 3, session.apply(bucket(f"b-{number}")))
            async with here.open() as session:
                declared = await session.list()
                result = await session.apply([bucket(f"b-{number}") for number in range(12)])

                assert (cancelled > 2, len(declared) <= 12, result.is_done) == (True, True, True)
                assert here.buckets == sorted(f"b-{number}" for number in range(12))

    asyncio.run(main())


def test_a_call_that_waits_for_its_turn_can_be_cancelled() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            results = await asyncio.gather(
                session.apply(bucket()),
                cancelled_after(3, session.apply(bucket("more"))),
                session.apply(bucket("last")),
            )

            assert (results[1], here.buckets) == (True, ["last", "logs"])

    asyncio.run(main())
