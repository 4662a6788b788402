"""A running manager of gadgets: a store in memory, a service without a network, virtual time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Absent, Location, Present, ResourceType, Unchanged
from setpoint.engine.metrics import StepCount
from setpoint.engine.ports import Store
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource
from setpoint.runtime.manager import Manager
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Gadget, GadgetKind, Service, gadget_ref

Spec = dict[str, Any]
# More virtual seconds than any test takes.
LONG = 3 * 24 * 3600.0


@dataclass(slots=True)
class RecordingKind(GadgetKind):
    """A gadget kind that records each observation in `observed`: when, and of which object. `before` may delay it."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    before: Callable[[str], Awaitable[None]] | None = None
    observed: list[tuple[float, str]] = field(default_factory=list)

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        self.observed.append((self.clock.monotonic(), location))
        if self.before is not None:
            await self.before(location)
        return await GadgetKind.observe(self, location, known)


@dataclass(slots=True)
class RecordingMetrics:
    """Records what is measured."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    convergences: list[float] = field(default_factory=list)
    drifts: list[float] = field(default_factory=list)
    listings: list[tuple[str, int]] = field(default_factory=list)

    def count(self, count: StepCount, kind: str) -> None:
        """The counts are asserted on the metrics page."""

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        self.steps.append((outcome, decision))

    def add_kind(self, kind: ResourceType) -> None:
        """Nothing of a kind is recorded."""

    def converged(self, kind: str, seconds: float) -> None:
        self.convergences.append(seconds)

    def drifted(self, kind: str, seconds: float) -> None:
        self.drifts.append(seconds)

    def listed(self, kind: str, ending: str, resyncs: int) -> None:
        self.listings.append((ending, resyncs))


@dataclass(slots=True)
class ManagerHarness:
    """A manager, its store and its service."""

    store: Store
    service: Service
    kind: RecordingKind
    metrics: RecordingMetrics
    clock: VirtualClock
    manager: Manager

    async def apply(self, name: str, spec: Spec | None = None, **metadata: Any) -> Resource:
        """The author applies a gadget."""
        return await self.store.apply(gadget(name, {"size": 1} if spec is None else spec, **metadata))

    async def secret(self, value: str) -> None:
        """The author applies the Secret `s`."""
        await self.store.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": value}}
        )

    async def status(self, name: str) -> Mapping[str, Any]:
        """The status of a gadget."""
        found = await self.store.get(gadget_ref(name))
        assert found is not None
        return found.status

    async def is_settled(self, name: str) -> bool:
        """Whether it is ready, for the spec that it has."""
        found = await self.store.get(gadget_ref(name))
        return found is not None and is_ready(found)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> float:
        """Waits until `holds`; when that was."""
        began = self.clock.monotonic()
        while not await holds():
            assert self.clock.monotonic() - began < LONG, "the condition never held"
            await self.clock.sleep(0.05)
        return self.clock.monotonic()

    async def settled(self, *names: str) -> float:
        """Waits until all of them are ready; when that was."""

        async def all_ready() -> bool:
            return all([await self.is_settled(name) for name in names])

        return await self.until(all_ready)

    def observations_of(self, name: str) -> list[float]:
        """When it was observed."""
        return [at for at, one in self.kind.observed if one == name]

    def writes(self, name: str) -> list[str]:
        """The writes of it that reached the service."""
        return [verb for verb, one in self.service.calls if one == name and verb not in ("get", "poll")]


def new_harness(store: Store | None = None, grace: float = 25.0, kind: RecordingKind | None = None) -> ManagerHarness:
    """A manager that was not started."""
    clock, metrics = VirtualClock(), RecordingMetrics()
    numbers = itertools.count(1)
    store = store or MemoryStore(clock, lambda: f"uid-{next(numbers)}")
    kind = kind or RecordingKind(Service())
    engine = EngineContext(store, clock, {(kind.group, kind.name): kind}, metrics=metrics)
    return ManagerHarness(store, kind.service, kind, metrics, clock, Manager(engine, metrics, grace, workers=10))


@asynccontextmanager
async def running(harness: ManagerHarness) -> AsyncIterator[ManagerHarness]:
    """The harness while its manager runs; stopped gracefully at the end."""
    async with running_manager(harness.manager):
        yield harness


@asynccontextmanager
async def running_manager(manager: Manager) -> AsyncIterator[None]:
    """Runs a manager: yields when it is ready, stops it gracefully at the end."""
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run())
        while not manager.is_ready:
            await asyncio.sleep(0)
        try:
            yield
        finally:
            manager.stop()


def play(scenario: Callable[[ManagerHarness], Awaitable[None]]) -> None:
    """Plays `scenario` with a running manager, in virtual time."""

    async def main() -> None:
        async with running(new_harness()) as harness:
            await scenario(harness)

    run(main())
