"""A service, a store, and a follower of what another process does with it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.follower import StatusFollower
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.reconcile import step
from setpoint.stores.journal import StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.testing.kind_parts import Spec
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import GadgetFixture, gadget


@dataclass(slots=True)
class FollowerHarness:
    """A service, a store, and a follower of what another process does with it."""

    fixture: GadgetFixture = field(default_factory=GadgetFixture)
    limits: StoreLimits = field(default_factory=StoreLimits)
    reported: list[tuple[str, StepOutcome]] = field(default_factory=list)
    asked: list[Sequence[ResourceRef]] = field(default_factory=list)
    store: MemoryStore = field(init=False)
    follow: StatusFollower = field(init=False)
    _numbers: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.store = MemoryStore(VirtualClock(), lambda: f"uid-{next(self._numbers)}", self.limits)
        self.follow = StatusFollower(
            self.store, lambda ref, outcome: self.reported.append((ref.name, outcome)), self.ask
        )

    @property
    def engine(self) -> EngineContext:
        kind = self.fixture.kind
        return EngineContext(self.store, VirtualClock(), {(kind.group, kind.name): kind})

    async def apply(self, name: str, spec: Spec, **metadata: Any) -> ResourceRef:
        return (await self.store.apply(gadget(name, spec, **metadata))).ref

    async def ask(self, refs: Sequence[ResourceRef]) -> None:
        """Records a reconcile request, as the process does that takes the steps."""
        self.asked.append(refs)
        for ref in refs:
            await self.store.annotate(await self.resource(ref), {RECONCILE_REQUESTED: f"request {next(self._numbers)}"})

    async def resource(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None
        return found

    async def step(self, ref: ResourceRef) -> StepOutcome:
        return await step(ref, self.engine)

    async def run_controller(self) -> None:
        """The controller in another process: a step for each once a second, and operations that are over by then."""
        while True:
            for resource in (await self.store.list()).resources:
                await self.step(resource.ref)
            await asyncio.sleep(1)
            self.fixture.finish()

    async def follow_with_controller(self, refs: Sequence[ResourceRef], timeout: float = 60) -> dict[str, StepOutcome]:
        """The outcomes, while the controller runs in another process."""
        controller = asyncio.create_task(self.run_controller())
        outcomes = await self.follow.until_done(refs, timeout)
        controller.cancel()
        return {ref.name: outcome for ref, outcome in outcomes.items()}


def play(scenario: Callable[[FollowerHarness], Awaitable[None]], limits: StoreLimits | None = None) -> None:
    """Plays `scenario` in virtual time."""

    async def main() -> None:
        await scenario(FollowerHarness(limits=limits or StoreLimits()))

    run(main())
