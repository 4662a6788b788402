"""What a process knows of its looks at live objects: from its queue and its steps, told by the admin API."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

import pytest

from setpoint.clients.admin_api import MOST_LOOKS, ResourceLook, ResourceName
from setpoint.core.decide import Decision
from setpoint.core.plan import Hold, Plan
from setpoint.engine import conditions
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import RemoteUnavailable
from setpoint.runtime.metrics.convergence import ConvergenceTracker
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.workqueue.queue import WorkQueue
from setpoint.runtime.workqueue.scheduling import Priority
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadgets import gadget_ref
from tests.runtime.admin_api_harness import AdminApiProcess

A, B = gadget_ref("a"), gadget_ref("b")
IN_SYNC: Final = Settled(Plan(Decision.IN_SYNC), conditions.UP_TO_DATE)
WITHHELD: Final = Settled(Plan(Decision.DRIFTED, held=Hold.OBSERVED), conditions.observed(("spec.a",), is_there=True))
PAUSED: Final = Settled(Plan(Decision.IN_SYNC, held=Hold.PAUSED), conditions.PAUSED)
UNAVAILABLE: Final = Stopped(RemoteUnavailable("GET /: refused"))


def test_looks_are_told_of_those_that_are_known_and_nothing_is_written() -> None:
    async def scenario(folder: Path) -> None:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            process.looks[A] = ResourceLook(ResourceName(*A), "2026-01-31T12:00:00Z", "2026-01-31T12:10:00Z")
            before = await process.store.list()

            assert list(await process.client.looks([ResourceName(*A), ResourceName(*B)])) == [process.looks[A]]
            # So many are asked for at once, and no more are answered for.
            others = [ResourceName(*gadget_ref(f"g-{number}")) for number in range(MOST_LOOKS)]
            assert list(await process.client.looks([*others, ResourceName(*A)])) == []
            assert await process.store.list() == before

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


def test_the_next_step_is_now_while_a_key_waits_or_is_processed_else_when_its_add_is_due() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock)
        assert queue.next_in("a") is None
        queue.schedule("a", 60.0, Priority.RESYNC, "test")
        await clock.sleep(20.0)
        assert queue.next_in("a") == 40.0
        queue.add("a", Priority.EDIT, "test")
        assert queue.next_in("a") == 0.0
        assert queue.take() is not None
        assert queue.next_in("a") == 0.0
        queue.done("a")
        assert queue.next_in("a") == 40.0
        queue.forget("a")
        assert queue.next_in("a") is None

    run(scenario())


@pytest.mark.parametrize(
    ("outcome", "is_look"), [(IN_SYNC, True), (WITHHELD, True), (PAUSED, False), (UNAVAILABLE, False)]
)
def test_a_step_is_a_look_if_the_service_answered(outcome: StepOutcome, is_look: bool) -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        tracker = ConvergenceTracker("Gadget", Telemetry(), clock)
        tracker.seen_in_sync(A, clock.monotonic())
        first = tracker.last_look(A)
        await clock.sleep(5.0)
        tracker.step_finished(A, outcome)
        assert tracker.last_look(A) == (clock.monotonic() if is_look else first)
        await clock.sleep(5.0)
        tracker.seen_in_sync(A, clock.monotonic())
        assert tracker.last_look(A) == clock.monotonic()
        tracker.forget(A)
        assert tracker.last_look(A) is None

    run(scenario())
