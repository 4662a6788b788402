"""The process dies after any await of a run that waits, replaces or gives way: nothing is lost or done twice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, RemoteOperation, Unchanged
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import RemoteUnavailable, StoreError, WaitTimedOut
from setpoint.testing.interruptions import Interruption, Killed, die
from simulation.virtual_time import run
from tests.engine.runner_harness import ADDRESS, RunnerHarness
from tests.engine.things import Thing, ThingKind, thing_ref, value_of

pytestmark = pytest.mark.slow

T = TypeVar("T")
# No run here has more awaits than this.
ENOUGH = 300
FOR_ADDRESS = {"field": ADDRESS, "timeout": "10s"}


@dataclass(slots=True)
class FragileKind(ThingKind):
    """A kind with an eye on the end of every call."""

    interruption: Interruption = field(default_factory=lambda: Interruption(0, die))

    async def _interruptible(self, call: Awaitable[T]) -> T:
        answer = await call
        await self.interruption.tick()
        return answer

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        return await self._interruptible(ThingKind.dry_run(self, intent, observed, decision))

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Thing] | Unchanged:
        return await self._interruptible(ThingKind.observe(self, location, known))

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        return await self._interruptible(ThingKind.create(self, intent, wanted))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Thing]
    ) -> RemoteOperation | None:
        if write.name == "replace":
            # What it calls in turn is watched itself.
            return await ThingKind.update(self, intent, wanted, write, before)
        return await self._interruptible(ThingKind.update(self, intent, wanted, write, before))

    async def delete(self, location: Location, before: Present[Thing], resource: Resource) -> RemoteOperation | None:
        return await self._interruptible(ThingKind.delete(self, location, before, resource))

    async def poll(self, operation: RemoteOperation) -> bool:
        return await self._interruptible(ThingKind.poll(self, operation))


async def _run(harness: RunnerHarness, names: str, interruption: Interruption | None = None) -> dict[str, StepOutcome]:
    """The outcomes of a run in a process of its own, which may die."""
    engine = harness.engine
    if interruption is not None:
        kind = FragileKind(harness.service, interruption=interruption)
        engine = replace(engine, store=interruption.wrap(harness.store), kinds={(kind.group, kind.name): kind})
    outcomes = await StepRunner(engine).until_done([thing_ref(name) for name in names], 600)
    return {ref.name: outcome for ref, outcome in outcomes.items()}


async def _dies_after(awaits: int, harness: RunnerHarness, names: str) -> bool:
    """Whether the process died; False when there were not so many awaits."""
    try:
        await _run(harness, names, Interruption(awaits, die))
    except* Killed:
        pass
    else:
        return False
    # What was under way is cut off, too.
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return True


def _after_any_await(
    begin: Callable[[RunnerHarness], Awaitable[str]], end: Callable[[RunnerHarness], Awaitable[None]]
) -> None:
    """`begin` prepares the store and returns the names to run; a run dies after any await, and `end` follows."""

    async def is_killed_after(awaits: int) -> bool:
        harness = RunnerHarness()
        names = await begin(harness)
        was_killed = await _dies_after(awaits, harness, names)
        await end(harness)
        return was_killed

    for awaits in range(1, ENOUGH):
        if not run(is_killed_after(awaits)):
            assert awaits > 8
            return
    pytest.fail("a run never ended")


FAILURES = {"the store": StoreError("the disk is full"), "the service": RemoteUnavailable("the line went dead")}


@pytest.mark.parametrize("side", FAILURES)
def test_a_failure_after_any_await_is_waited_out_in_the_same_run(side: str) -> None:
    async def fails_after(awaits: int) -> bool:
        async def fail() -> None:
            raise FAILURES[side]

        harness, interruption = RunnerHarness(), Interruption(awaits, fail)
        await harness.apply("a", {"host": value_of("z", ADDRESS)})
        await harness.apply("z", waitFor={"field": ADDRESS, "timeout": "60s"})
        harness.service.made = lambda name: harness.after(
            7, lambda: harness.service.set_status(name, address="10.0.0.1")
        )
        kind = FragileKind(
            harness.service, interruption=interruption if side == "the service" else Interruption(0, die)
        )
        store = interruption.wrap(harness.store) if side == "the store" else harness.store
        engine = replace(harness.engine, store=store, kinds={(kind.group, kind.name): kind})

        outcomes = await StepRunner(engine).until_done([thing_ref("a"), thing_ref("z")], 600)

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values()), outcomes
        assert harness.live("a") == {"host": "10.0.0.1"}
        assert [call for call in harness.service.writes if call[0] == "create"] == [("create", "z"), ("create", "a")]
        return interruption.has_happened

    for awaits in range(1, ENOUGH):
        if not run(fails_after(awaits)):
            assert awaits > 8
            return
    pytest.fail("a run never ended")


def test_a_wait_continues_where_it_was_and_its_dependant_is_created_once() -> None:
    async def begin(harness: RunnerHarness) -> str:
        await harness.apply("a", {"host": value_of("z", ADDRESS)})
        await harness.apply("z", waitFor=FOR_ADDRESS)
        return "az"

    async def end(harness: RunnerHarness) -> None:
        has_to_go_on = asyncio.get_running_loop().time() > 6
        harness.after(3, lambda: harness.service.set_status("z", address="10.0.0.1"))
        outcomes = await _run(harness, "az")
        if has_to_go_on:
            outcomes = await _run(harness, "az")

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values()), outcomes
        assert harness.service.writes == [("create", "z"), ("create", "a")]
        assert harness.live("a") == {"host": "10.0.0.1"}

    _after_any_await(begin, end)


def test_its_timeout_counts_on_when_the_process_dies() -> None:
    async def begin(harness: RunnerHarness) -> str:
        await harness.apply("z", waitFor=FOR_ADDRESS)
        return "z"

    async def end(harness: RunnerHarness) -> None:
        died_at = asyncio.get_running_loop().time()

        outcomes = await _run(harness, "z")

        assert isinstance(outcomes["z"], Stopped)
        assert isinstance(outcomes["z"].error, WaitTimedOut)
        # A run that begins after the end has all of the time again; any other has what is left.
        end = died_at + 10 if died_at >= 10 else 10
        # The record is to the second.
        assert end - 1 < asyncio.get_running_loop().time() < end + 2
        assert harness.service.writes == [("create", "z")]

    _after_any_await(begin, end)


def test_a_value_that_vanishes_and_comes_back_is_never_half_known() -> None:
    async def begin(harness: RunnerHarness) -> str:
        await harness.apply("a", {"host": value_of("z", ADDRESS)})
        await harness.apply("z", waitFor=FOR_ADDRESS)
        harness.after(1, lambda: harness.service.set_status("z", address="10.0.0.1"))
        await _run(harness, "az")
        harness.service.set_status("z", address=None)
        return "az"

    async def end(harness: RunnerHarness) -> None:
        assert harness.live("a") == {"host": "10.0.0.1"}
        harness.service.set_status("z", address="10.0.0.2")
        outcomes = await _run(harness, "az")

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values())
        assert harness.service.writes == [("create", "z"), ("create", "a"), ("update", "a")]

    _after_any_await(begin, end)


@pytest.mark.parametrize("held", [False, True], ids=["at once", "slowly"])
def test_a_replacement_ends_with_the_one_object_that_is_wanted(held: bool) -> None:
    async def begin(harness: RunnerHarness) -> str:
        await harness.apply("a", {"zone": "x"}, replace=True)
        await _run(harness, "a")
        await harness.apply("a", {"zone": "y"}, replace=True)
        _hold(harness, "a", held=held)
        return "a"

    async def end(harness: RunnerHarness) -> None:
        outcomes = await _run(harness, "a")

        assert isinstance(outcomes["a"], Settled)
        assert {name: one["spec"] for name, one in harness.service.objects.items()} == {"a": {"zone": "y"}}
        assert [verb for verb, _ in harness.service.writes].count("create") == 2
        assert harness.service.deleted == ["uid-1"]

    _after_any_await(begin, end)


@pytest.mark.parametrize("held", [False, True], ids=["at once", "slowly"])
def test_the_replaced_object_is_gone_and_the_other_is_there(held: bool) -> None:
    async def begin(harness: RunnerHarness) -> str:
        await harness.apply("a", {"size": 1}, called="old", replace=True)
        await _run(harness, "a")
        await harness.apply("a", {"size": 1}, called="new", replace=True)
        _hold(harness, "old", held=held)
        return "a"

    async def end(harness: RunnerHarness) -> None:
        outcomes = await _run(harness, "a")

        assert isinstance(outcomes["a"], Settled)
        assert list(harness.service.objects) == ["new"]
        assert [call for call in harness.service.writes if call[0] == "create"] == [
            ("create", "old"),
            ("create", "new"),
        ]
        assert harness.service.deleted == ["uid-1"]

    _after_any_await(begin, end)


def _hold(harness: RunnerHarness, name: str, *, held: bool) -> None:
    if held:
        harness.service.held.add(name)
        harness.after(4, lambda: harness.service.let_go(name))
