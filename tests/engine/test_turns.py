"""Steps of objects that exclude each other: what waits for its turn asks nothing, and a turn ends with what is sent."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from setpoint.engine.claims.object_claims import claim_keys_of
from setpoint.engine.contention.operation_queue import OperationScope
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Absent, Location, Present, Unchanged
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import OperationQueued, OperationRunning
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Gadget, GadgetKind, Service, gadget_ref


class ScopedKind(GadgetKind):
    """Gadgets of which one can be changed at a time. Calls `on_observe` before each observation."""

    on_observe: Callable[[Location], None] | None = None

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        if self.on_observe is not None:
            self.on_observe(location)
        return await super().observe(location, known)

    def operation_scope(self, _location: Location) -> OperationScope:
        return OperationScope("all")


class WatchedStore(MemoryStore):
    """Calls `on_update` before each update."""

    on_update: Callable[[], Awaitable[None]] | None = None

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        if self.on_update is not None:
            await self.on_update()
        return await super().update(resource, update)


@dataclass(slots=True)
class Harness:
    service: Service = field(default_factory=Service)
    clock: FakeClock = field(default_factory=FakeClock)
    kind: ScopedKind = field(init=False)
    store: WatchedStore = field(init=False)
    engine: EngineContext = field(init=False)

    def __post_init__(self) -> None:
        self.kind = kind = ScopedKind(self.service)
        self.store = WatchedStore(self.clock, iter([f"uid-{number}" for number in range(9)]).__next__)
        self.engine = EngineContext(self.store, self.clock, {(kind.group, kind.name): kind})

    async def apply(self, *names: str) -> None:
        for name in names:
            await self.store.apply(gadget(name, {"size": 1}))

    async def step(self, name: str) -> StepOutcome:
        return await step(gadget_ref(name), self.engine)

    def step_at_next_update(self, name: str, when: Callable[[], bool] = lambda: True) -> list[StepOutcome]:
        """Where the outcome of a step of `name` is put, taken within the next update of the store for which `when`."""
        outcomes: list[StepOutcome] = []

        async def step_of_the_other() -> None:
            if when():
                self.store.on_update = None
                outcomes.append(await self.step(name))

        self.store.on_update = step_of_the_other
        return outcomes

    def calls(self, name: str) -> list[str]:
        return [verb for verb, one in self.service.calls if one == name]


def play(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Harness())

    asyncio.run(main())


def is_queued(outcome: StepOutcome) -> bool:
    return isinstance(outcome, Stopped) and isinstance(outcome.error, OperationQueued)


def test_a_new_resource_that_waits_for_its_turn_asks_nothing_of_the_service() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        harness.service.slow = True
        assert isinstance(await harness.step("a"), Stopped)

        assert is_queued(await harness.step("b"))
        assert is_queued(await harness.step("b"))
        assert harness.calls("b") == []
        found = await harness.store.get(gadget_ref("b"))
        assert found is not None
        assert (found.status, found.finalizers) == ({}, ())

    play(scenario)


def test_a_deletion_that_waits_for_its_turn_asks_nothing_of_the_service() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        assert isinstance(await harness.step("a"), Settled)
        assert isinstance(await harness.step("b"), Settled)
        harness.service.slow = True
        for name in "ab":
            await harness.store.delete(gadget_ref(name))
        assert isinstance(await harness.step("a"), Stopped)
        before = harness.calls("b")

        assert is_queued(await harness.step("b"))
        assert harness.calls("b") == before

        # The operation of the first is over: it lets the other go on before it is gone itself.
        harness.service.finish()
        others = harness.step_at_next_update("b")
        assert await harness.step("a") == Gone()
        (other,) = others
        assert isinstance(other, Stopped)
        assert isinstance(other.error, OperationRunning)
        assert not is_queued(other)

    play(scenario)


@pytest.mark.parametrize("is_free", [True, False])
def test_a_turn_ends_before_the_result_is_on_record(*, is_free: bool) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        # The claim is on record before the object is created, and the result after it.
        others = harness.step_at_next_update("b", lambda: (("create", "a") in harness.service.calls) is is_free)
        assert isinstance(await harness.step("a"), Settled)

        assert is_queued(others[0]) is not is_free

    play(scenario)


def test_a_preview_takes_no_turn() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        await preview(gadget_ref("a"), harness.engine)

        assert isinstance(await harness.step("b"), Settled)

        harness.service.slow = True
        await harness.store.apply(gadget("b", {"size": 2}))
        assert isinstance(await harness.step("b"), Stopped)
        plan = await preview(gadget_ref("a"), harness.engine)
        assert [write.name for write in plan.writes] == ["create"]

    play(scenario)


def test_the_turn_of_a_deletion_without_an_operation_ends_with_its_answer() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        assert isinstance(await harness.step("a"), Settled)
        await harness.store.delete(gadget_ref("a"))
        others = harness.step_at_next_update("b")
        assert await harness.step("a") == Gone()

        assert [type(one) for one in others] == [Settled]

    play(scenario)


def test_nothing_waits_for_a_step_whose_claim_is_undecided() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.apply("a", "b")
        claims, kind = harness.engine.claims, harness.kind
        with ExitStack() as other:

            def claim_by_another(location: Location) -> None:
                if location == "a":
                    other.enter_context(claims.claiming(gadget_ref("other"), claim_keys_of(kind, location, {})))

            kind.on_observe = claim_by_another
            undecided = await harness.step("a")

            assert isinstance(await harness.step("b"), Settled)
        assert isinstance(undecided, Stopped)
        assert str(undecided.error) == "a is being claimed by Gadget default/other, too"

    play(scenario)
