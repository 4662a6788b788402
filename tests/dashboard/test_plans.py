"""Plans that are cancelled: by the user who asked for one, or the person at this machine, and by no other user."""

import asyncio
from dataclasses import dataclass

from setpoint.dashboard.access.viewer import LocalViewer
from setpoint.dashboard.plans import PlanMaker
from setpoint.engine.ports import SystemClock
from setpoint.localcloud.faults import AddLatency
from tests.dashboard.pages import dashboard_on
from tests.dashboard.test_stream import Events
from tests.library.worlds import bucket, until, world


@dataclass(frozen=True, slots=True)
class User(LocalViewer):
    """A user of a cluster, who may see everything, but not all that others do."""

    is_unrestricted: bool = False


def test_a_cancelled_plan_leaves_the_one_before_it_and_says_so() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            async with dashboard_on(session) as page:
                await page.post("/plan")
                await until(lambda: not page.backend.plans.is_running)
                before = await page.get("/plan")
                here.cloud.inject(AddLatency(seconds=3600.0, method="GET"))
                events = Events(page)
                assert (await page.post("/plan")).body["isRunning"] is True
                await until(lambda: {"done": 0, "total": 1} in events.of("plan"))
                cancelled = await page.post("/plan/cancel")
                await until(lambda: events.of("plan")[-1] is None)
                after = await page.get("/plan")

                assert cancelled.status == 200
                assert (before["isCancelled"], before["error"]) == (False, None)
                assert (after["isRunning"], after["isCancelled"]) == (False, True)
                assert after["error"] == "the plan was cancelled"
                assert (after["madeAt"], after["resources"]) == (before["madeAt"], before["resources"])

    asyncio.run(main())


def test_a_plan_is_made_again_after_one_was_cancelled() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            here.cloud.inject(AddLatency(seconds=3600.0, method="GET"))
            plans = PlanMaker(session, SystemClock(), lambda: None, kept_seconds=60.0)
            plans.start(LocalViewer())
            assert plans.cancel(LocalViewer())
            await until(lambda: not plans.is_running)
            here.cloud.faults.clear()
            plans.start(LocalViewer())
            await until(lambda: not plans.is_running)
            found = await plans.shown_to(LocalViewer())

            assert (found.is_cancelled, found.error, found.counts.nothing) == (False, None, 1)

    asyncio.run(main())


def test_a_user_cancels_a_plan_of_that_user_alone() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            here.cloud.inject(AddLatency(seconds=3600.0, method="GET"))
            plans, alice, bob = PlanMaker(session, SystemClock(), lambda: None), User(user="alice"), User(user="bob")
            plans.start(alice)
            assert not plans.cancel(bob)
            assert plans.is_running
            assert plans.cancel(alice)
            await until(lambda: not plans.is_running)
            found = await plans.shown_to(alice)

            # What is no secret: the operator need not look into a log for it.
            assert (found.is_cancelled, found.error) == (True, "the plan was cancelled")
            assert plans.cancel(bob)

    asyncio.run(main())
