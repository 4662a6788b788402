"""A snapshot of the running process: queues, running steps, retries, rate limits, resources that are not ready."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final

from setpoint.clients.ratelimit.limiter import LimiterSnapshot, QuotaBudgets
from setpoint.core.conditions import ConditionType
from setpoint.core.decide import Decision
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.conditions import NO_STEP_YET, condition_of
from setpoint.engine.metrics import StepCount, StepMetrics
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.manager import Manager
from setpoint.runtime.workqueue.scheduling import Priority

READY, NOT_READY, DELETING = "ready", "not ready", "deleting"
# The event loop gets its turn after so many resources.
_YIELD_EVERY: Final = 1000


@dataclass(slots=True)
class StepCounter:
    """Counts steps and cookie hits, and passes each step on to the metrics."""

    behind: StepMetrics
    # The kinds without cookies: their steps compare everything, and are neither hits nor misses.
    stateless: Collection[str] = ()
    all: int = 0
    hits: int = 0
    misses: int = 0

    def count(self, count: StepCount, kind: str) -> None:
        """See StepMetrics."""
        self.behind.count(count, kind)

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See StepMetrics."""
        self.all += 1
        if decision and kind not in self.stateless:
            is_hit = decision == Decision.IN_SYNC.value
            self.hits += is_hit
            self.misses += not is_hit
        self.behind.step_finished(kind, outcome, decision, seconds)


@dataclass(frozen=True, slots=True)
class RunningStep:
    """A step that is being taken: its trigger, and for how long."""

    ref: ResourceRef
    trigger: str
    seconds: float


@dataclass(frozen=True, slots=True)
class UnreadyResource:
    """A resource that is not ready, with the reason and message of its status."""

    ref: ResourceRef
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """Counts and statuses of the whole store: too expensive to collect with every redraw."""

    # By kind, and by one of the words above.
    resources: Mapping[tuple[str, str], int] = field(default_factory=dict)
    troubles: tuple[UnreadyResource, ...] = ()
    notes: tuple[EventRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """The process at one moment. `delayed` steps are scheduled; `retries` were made so far after a failure."""

    phase: str
    seconds: float
    kinds: tuple[str, ...]
    depth: Mapping[Priority, int]
    # The longest first.
    busy: tuple[RunningStep, ...]
    # Those that are to be retried, and why.
    retrying: tuple[tuple[ResourceRef, str], ...]
    delayed: int
    retries: int
    steps: StepCounter
    services: LimiterSnapshot
    summary: StoreSummary
    # The shards that this process holds, and all shards; None for a process without sharding.
    shards: tuple[int, int] | None = None


def snapshot_process(
    manager: Manager, began: float, steps: StepCounter, budgets: QuotaBudgets, summary: StoreSummary
) -> ProcessSnapshot:
    """A snapshot of the process now, with the last summary of its store."""
    queues = {one: one.queue.snapshot() for one in manager.controllers.values()}
    depth: Counter[Priority] = Counter()
    for snapshot in queues.values():
        depth.update(snapshot.depth)
    return ProcessSnapshot(
        phase=manager.phase.value,
        seconds=manager.engine.clock.monotonic() - began,
        kinds=tuple(one.name for one in queues),
        depth=depth,
        busy=_running_steps(manager),
        retrying=_retrying(manager),
        delayed=sum(one.delayed for one in queues.values()),
        retries=sum(one.retries for one in queues.values()),
        steps=steps,
        services=budgets.snapshot(),
        summary=summary,
        shards=None if manager.replica is None else (len(manager.replica.held_shards), manager.replica.shard_count),
    )


def _running_steps(manager: Manager) -> tuple[RunningStep, ...]:
    now = manager.engine.clock.monotonic()
    running_steps = [pair for one in manager.controllers.values() for pair in one.running_steps.items()]
    found = [RunningStep(ref, trigger, now - since) for ref, (trigger, since) in running_steps]
    return tuple(sorted(found, key=lambda one: -one.seconds))


def _retrying(manager: Manager) -> tuple[tuple[ResourceRef, str], ...]:
    troubles = [pair for one in manager.controllers.values() for pair in one.last_errors.items()]
    return tuple((ref, str(error)) for ref, error in troubles)


async def summarize_store(manager: Manager, most: int) -> StoreSummary:
    """The counts of all resources, and at most so many unready resources and events."""
    counts: Counter[tuple[str, str]] = Counter()
    unready: list[ResourceRef] = []
    for number, ref in enumerate(tuple(manager.index), start=1):
        entry = manager.index.get(ref)
        if entry is not None and (ref.group, ref.kind) in manager.controllers:
            how = DELETING if entry.is_deleting else READY if entry.is_ready else NOT_READY
            counts[ref.kind, how] += 1
            if how != READY and len(unready) < most:
                unready.append(ref)
        if number % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    troubles = [await _unready_resource(ref, manager) for ref in unready]
    notes = await manager.engine.store.events()
    return StoreSummary(counts, tuple(troubles), notes[-most:])


async def _unready_resource(ref: ResourceRef, manager: Manager) -> UnreadyResource:
    resource = await manager.engine.store.get(ref)
    ready = None if resource is None else condition_of(resource, ConditionType.READY)
    return (
        UnreadyResource(ref, ready.reason, ready.message)
        if ready is not None
        else UnreadyResource(ref, NO_STEP_YET, "")
    )
