"""The process dies after any await of a run that waits, replaces or gives way: nothing is lost or done twice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import Settled, StepOutcome, Stopped
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, RemoteOperation, Unchanged
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteUnavailable, StoreError, WaitTimedOut
from tests.engine.interruptions import Interruption, Killed, die
from tests.engine.shore import ADDRESS, Shore
from tests.engine.things import Thing, ThingKind, thing_ref, value_of
from tests.runtime.virtual_time import run

pytestmark = pytest.mark.slow

T = TypeVar("T")
# No run here has more awaits than this.
ENOUGH = 300
FOR_ADDRESS = {"field": ADDRESS, "timeout": "10s"}


@dataclass(slots=True)
class FragileKind(ThingKind):
    """A kind with an eye on the end of every call."""

    interruption: Interruption = field(default_factory=lambda: Interruption(0, die))

    async def _told(self, call: Awaitable[T]) -> T:
        answer = await call
        await self.interruption.tick()
        return answer

    async def dry_run(self, intent: Intent, look: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        return await self._told(ThingKind.dry_run(self, intent, look, decision))

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Thing] | Unchanged:
        return await self._told(ThingKind.observe(self, location, known))

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        return await self._told(ThingKind.create(self, intent, wanted))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Thing]
    ) -> RemoteOperation | None:
        if write.name == "replace":
            # What it calls in turn is watched itself.
            return await ThingKind.update(self, intent, wanted, write, before)
        return await self._told(ThingKind.update(self, intent, wanted, write, before))

    async def delete(self, location: Location, before: Present[Thing], resource: Resource) -> RemoteOperation | None:
        return await self._told(ThingKind.delete(self, location, before, resource))

    async def poll(self, operation: RemoteOperation) -> bool:
        return await self._told(ThingKind.poll(self, operation))


async def _run(shore: Shore, names: str, interruption: Interruption | None = None) -> dict[str, StepOutcome]:
    """The outcomes of a run in a process of its own, which may die."""
    engine = shore.engine
    if interruption is not None:
        kind = FragileKind(shore.service, interruption=interruption)
        engine = replace(engine, store=interruption.wrap(shore.store), kinds={(kind.group, kind.name): kind})
    outcomes = await StepRunner(engine).until_done([thing_ref(name) for name in names], 600)
    return {ref.name: outcome for ref, outcome in outcomes.items()}


async def _dies_after(awaits: int, shore: Shore, names: str) -> bool:
    """Whether the process died; False when there were not so many awaits."""
    try:
        await _run(shore, names, Interruption(awaits, die))
    except* Killed:
        pass
    else:
        return False
    # What was under way is cut off, too.
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return True


def _after_any_await(begin: Callable[[Shore], Awaitable[str]], end: Callable[[Shore], Awaitable[None]]) -> None:
    """`begin` sets the scene and names who runs; a run dies after any of its awaits, and `end` follows."""

    async def is_killed_after(awaits: int) -> bool:
        shore = Shore()
        names = await begin(shore)
        was_killed = await _dies_after(awaits, shore, names)
        await end(shore)
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

        shore, interruption = Shore(), Interruption(awaits, fail)
        await shore.apply("a", {"host": value_of("z", ADDRESS)})
        await shore.apply("z", waitFor={"field": ADDRESS, "timeout": "60s"})
        shore.service.made = lambda name: shore.after(7, lambda: shore.service.set_status(name, address="10.0.0.1"))
        kind = FragileKind(shore.service, interruption=interruption if side == "the service" else Interruption(0, die))
        store = interruption.wrap(shore.store) if side == "the store" else shore.store
        engine = replace(shore.engine, store=store, kinds={(kind.group, kind.name): kind})

        outcomes = await StepRunner(engine).until_done([thing_ref("a"), thing_ref("z")], 600)

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values()), outcomes
        assert shore.live("a") == {"host": "10.0.0.1"}
        assert [call for call in shore.service.writes if call[0] == "create"] == [("create", "z"), ("create", "a")]
        return interruption.has_happened

    for awaits in range(1, ENOUGH):
        if not run(fails_after(awaits)):
            assert awaits > 8
            return
    pytest.fail("a run never ended")


def test_a_wait_goes_on_where_it_was_and_its_dependant_is_made_once() -> None:
    async def begin(shore: Shore) -> str:
        await shore.apply("a", {"host": value_of("z", ADDRESS)})
        await shore.apply("z", waitFor=FOR_ADDRESS)
        return "az"

    async def end(shore: Shore) -> None:
        has_to_go_on = asyncio.get_running_loop().time() > 6
        shore.after(3, lambda: shore.service.set_status("z", address="10.0.0.1"))
        outcomes = await _run(shore, "az")
        if has_to_go_on:
            outcomes = await _run(shore, "az")

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values()), outcomes
        assert shore.service.writes == [("create", "z"), ("create", "a")]
        assert shore.live("a") == {"host": "10.0.0.1"}

    _after_any_await(begin, end)


def test_its_time_goes_on_whoever_dies_meanwhile() -> None:
    async def begin(shore: Shore) -> str:
        await shore.apply("z", waitFor=FOR_ADDRESS)
        return "z"

    async def end(shore: Shore) -> None:
        died_at = asyncio.get_running_loop().time()

        outcomes = await _run(shore, "z")

        assert isinstance(outcomes["z"], Stopped)
        assert isinstance(outcomes["z"].error, WaitTimedOut)
        # A run that begins after the end has all of the time again; any other has what is left.
        end = died_at + 10 if died_at >= 10 else 10
        # The record is to the second.
        assert end - 1 < asyncio.get_running_loop().time() < end + 2
        assert shore.service.writes == [("create", "z")]

    _after_any_await(begin, end)


def test_a_value_that_vanishes_and_comes_back_is_never_half_known() -> None:
    async def begin(shore: Shore) -> str:
        await shore.apply("a", {"host": value_of("z", ADDRESS)})
        await shore.apply("z", waitFor=FOR_ADDRESS)
        shore.after(1, lambda: shore.service.set_status("z", address="10.0.0.1"))
        await _run(shore, "az")
        shore.service.set_status("z", address=None)
        return "az"

    async def end(shore: Shore) -> None:
        assert shore.live("a") == {"host": "10.0.0.1"}
        shore.service.set_status("z", address="10.0.0.2")
        outcomes = await _run(shore, "az")

        assert all(isinstance(outcome, Settled) for outcome in outcomes.values())
        assert shore.service.writes == [("create", "z"), ("create", "a"), ("update", "a")]

    _after_any_await(begin, end)


@pytest.mark.parametrize("held", [False, True], ids=["at once", "slowly"])
def test_a_replacement_ends_with_the_one_object_that_is_wanted(held: bool) -> None:
    async def begin(shore: Shore) -> str:
        await shore.apply("a", {"zone": "x"}, replace=True)
        await _run(shore, "a")
        await shore.apply("a", {"zone": "y"}, replace=True)
        _hold(shore, "a", held=held)
        return "a"

    async def end(shore: Shore) -> None:
        outcomes = await _run(shore, "a")

        assert isinstance(outcomes["a"], Settled)
        assert {name: one["spec"] for name, one in shore.service.objects.items()} == {"a": {"zone": "y"}}
        assert [verb for verb, _ in shore.service.writes].count("create") == 2
        assert shore.service.deleted == ["uid-1"]

    _after_any_await(begin, end)


@pytest.mark.parametrize("held", [False, True], ids=["at once", "slowly"])
def test_whoever_gives_way_is_gone_and_the_other_is_there(held: bool) -> None:
    async def begin(shore: Shore) -> str:
        await shore.apply("a", {"size": 1}, called="old", replace=True)
        await _run(shore, "a")
        await shore.apply("a", {"size": 1}, called="new", replace=True)
        _hold(shore, "old", held=held)
        return "a"

    async def end(shore: Shore) -> None:
        outcomes = await _run(shore, "a")

        assert isinstance(outcomes["a"], Settled)
        assert list(shore.service.objects) == ["new"]
        assert [call for call in shore.service.writes if call[0] == "create"] == [("create", "old"), ("create", "new")]
        assert shore.service.deleted == ["uid-1"]

    _after_any_await(begin, end)


def _hold(shore: Shore, name: str, *, held: bool) -> None:
    if held:
        shore.service.held.add(name)
        shore.after(4, lambda: shore.service.let_go(name))
