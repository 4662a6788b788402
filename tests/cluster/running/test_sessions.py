"""Sessions on resources in a cluster: the controllers there take the steps, as for the commands."""

import asyncio
from typing import Any

import setpoint
from setpoint import ExitCode, ResultOutcome
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket, bucket_path

# Long enough for a busy machine: a deadline, not an assertion.
_TIMEOUT = 300.0


def opened(harness: ControllerHarness) -> setpoint.Session:
    """A session of the administrator, on one namespace: others on the same server have controllers of their own."""
    environment = harness.environment(harness.cloud.url)
    return setpoint.open(f"kubernetes?namespace={harness.kubectl.namespace}", environment=environment)


def test_a_session_hands_over_to_the_controllers_of_the_cluster(shared_harness: ControllerHarness) -> None:
    async def main() -> list[Any]:
        async with opened(shared_harness) as session:
            planned, applied = await session.plan(bucket("by-session")), await session.apply(bucket("by-session"))
            again = await session.apply(bucket("by-session"))
            ready = (await session.get("StorageBucket/by-session")).is_ready
            waited, deleted = await session.wait("StorageBucket/by-session"), await session.delete(bucket("by-session"))
            return [ready, *(one[0].outcome for one in (planned, applied, again, waited, deleted))]

    assert asyncio.run(main()) == [
        True,
        ResultOutcome.CREATE,
        ResultOutcome.CREATED,
        ResultOutcome.UNCHANGED,
        ResultOutcome.UNCHANGED,
        ResultOutcome.DELETED,
    ]


def test_without_a_controller_a_session_says_so_and_can_be_one(harness: ControllerHarness) -> None:
    async def main() -> None:
        async with opened(harness) as session:
            told = await session.apply(bucket("alone"), wait=False)
            assert told.exit_code is ExitCode.WAITING
            assert told.warnings[0].startswith("no controller is running for this cluster")
            since, stop = (await session.list()).revision, asyncio.Event()

            async def until_ready() -> None:
                async for change in session.watch("StorageBucket", since=since):
                    if change.resource.is_ready:
                        stop.set()
                        return

            # Ends with the first error of either.
            async with asyncio.timeout(_TIMEOUT), asyncio.TaskGroup() as group:
                group.create_task(session.run(stop=stop))
                group.create_task(until_ready())

    asyncio.run(main())

    assert harness.live(bucket_path("alone")) is not None
