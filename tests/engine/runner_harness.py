"""An engine with things: their service, a store, and runs of steps. All of it in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from setpoint.core.plan import Plan
from setpoint.core.wait import outputs
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.follower import StatusFollower
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.idle_cache import IdleCache
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import SetpointError
from setpoint.stores.memory import MemoryStore
from setpoint.testing.harness import StoreRevisions
from simulation.virtual_time import VirtualClock, run
from tests.engine.things import Service, ThingKind, thing, thing_ref

T0 = "2026-01-01T00:00:00Z"
ADDRESS = "status.address"
FOR_ADDRESS: Mapping[str, Any] = {"field": ADDRESS, "timeout": "60s"}
FOR_READY: Mapping[str, Any] = {"condition": "Ready", "timeout": "60s"}
NOT_THERE = "status.address is not there yet"
NO_STATUS = f"{NOT_THERE}: the object has no status"
READY: Mapping[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
UNREADY: Mapping[str, Any] = {"conditions": [{"type": "Ready", "status": "False"}]}


@dataclass(slots=True)
class RunnerHarness:
    """Things by name. A new `world` over the same store and service is a process that starts anew."""

    service: Service = field(default_factory=lambda: Service(VirtualClock()))
    store: Store = field(init=False)
    reported: list[tuple[str, StepOutcome]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _idle_cache: IdleCache | None = None
    _revisions: StoreRevisions | None = None

    def __post_init__(self) -> None:
        self.store = MemoryStore(VirtualClock(), lambda: f"r-{next(self._numbers)}")

    @property
    def engine(self) -> EngineContext:
        kind = ThingKind(self.service)
        return EngineContext(self.store, VirtualClock(), {(kind.group, kind.name): kind}, idle_cache=self._idle_cache)

    def run_continuously(self) -> None:
        """From now on steps use an idle cache, as in a controller."""
        self._revisions = StoreRevisions(self.store)
        self._idle_cache = IdleCache(self._revisions)

    # --- The author --------------------------------------------------------------------------------------------------

    async def apply(self, name: str, wanted: Mapping[str, Any] | None = None, **spec: Any) -> ResourceRef:
        return (await self.store.apply(thing(name, {"size": 1} if wanted is None else wanted, **spec))).ref

    # --- Taking steps ------------------------------------------------------------------------------------------------

    async def step(self, name: str, *, requested: bool = False, restart_wait: bool = False) -> StepOutcome:
        if self._revisions is not None:
            await self._revisions.refresh()
        return await step(thing_ref(name), self.engine, requested=requested, restart_wait=restart_wait)

    async def plan(self, name: str) -> Plan:
        return await preview(thing_ref(name), self.engine)

    async def run(self, *names: str, timeout: float | None = 600, requested: bool = False) -> dict[str, StepOutcome]:
        """The outcomes of one `apply` of these."""
        refs = [thing_ref(name) for name in names]
        outcomes = await StepRunner(self.engine, self._report, requested=requested).until_done(refs, timeout)
        return {ref.name: outcome for ref, outcome in outcomes.items()}

    async def follow(self, *names: str, timeout: float | None = 600) -> dict[str, StepOutcome]:
        """The outcomes of one `apply` of these while another process takes the steps: one for each, every second."""
        refs = [thing_ref(name) for name in names]
        await self._ask([ref for ref in refs if (await self.resource(ref.name)).status])
        controller = asyncio.create_task(self._run_controller())
        outcomes = await StatusFollower(self.store, self._report, self._ask).until_done(refs, timeout)
        controller.cancel()
        return {ref.name: outcome for ref, outcome in outcomes.items()}

    async def _run_controller(self) -> None:
        while True:
            for resource in (await self.store.list()).resources:
                await step(resource.ref, self.engine)
            await asyncio.sleep(1)

    async def _ask(self, refs: Iterable[ResourceRef]) -> None:
        for ref in refs:
            await self.store.annotate(
                await self.resource(ref.name), {RECONCILE_REQUESTED: f"request {next(self._numbers)}"}
            )

    def _report(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        self.reported.append((ref.name, outcome))

    # --- What can be seen --------------------------------------------------------------------------------------------

    async def resource(self, name: str) -> Resource:
        found = await self.store.get(thing_ref(name))
        assert found is not None
        return found

    async def output(self, name: str) -> outputs.OutputState:
        return outputs.from_data((await self.resource(name)).status["output"])

    async def ready(self, name: str) -> tuple[str, str, str]:
        conditions: Any = (await self.resource(name)).status["conditions"]
        (ready,) = (one for one in conditions if one["type"] == "Ready")
        return ready["status"], ready["reason"], ready["message"]

    async def is_settled(self, names: Sequence[str]) -> bool:
        """Whether one more step of each writes to none of them."""
        before = [await self.revision(name) for name in names]
        for name in names:
            await self.step(name)
        return [await self.revision(name) for name in names] == before

    async def revision(self, name: str) -> str:
        return (await self.resource(name)).revision

    def live(self, name: str) -> Any:
        return self.service.objects[name]["spec"]

    def after(self, seconds: float, happening: Callable[[], object]) -> None:
        """Does that, so much later."""
        asyncio.get_running_loop().call_later(seconds, happening)


def play(scenario: Callable[[RunnerHarness], Awaitable[None]]) -> None:
    """Plays `scenario` on a new shore."""

    async def main() -> None:
        await scenario(RunnerHarness())

    run(main())


def error_of(outcome: StepOutcome) -> SetpointError:
    """Why a step stopped."""
    assert isinstance(outcome, Stopped), outcome
    return outcome.error


async def settled(harness: RunnerHarness, wait: Mapping[str, Any] | None = FOR_ADDRESS) -> None:
    """The thing `a` with an address and ready, and a wait for that."""
    await harness.apply("a", **({} if wait is None else {"waitFor": wait}))
    await harness.step("a")
    harness.service.set_status("a", address="10.0.0.1", **READY)
    await harness.step("a")
    assert (await harness.ready("a"))[1] == "UpToDate"
