"""A running process at one moment, as far as people want to know."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from setpoint.clients.budgets import Budgets, Snapshot
from setpoint.core.conditions import find_condition, from_data
from setpoint.core.decide import Decision
from setpoint.engine.ports import Metrics, Note
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.manager import Manager
from setpoint.runtime.priorities import Priority

READY, NOT_READY, DELETING = "ready", "not ready", "deleting"
# Others have their turn after so many.
_SLICE: Final = 1000


@dataclass(slots=True)
class StepCount:
    """Counts steps on their way to the metrics."""

    behind: Metrics
    all: int = 0
    hits: int = 0
    misses: int = 0

    def stepped(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See Metrics."""
        self.all += 1
        if decision:
            is_hit = decision == Decision.IN_SYNC.value
            self.hits += is_hit
            self.misses += not is_hit
        self.behind.stepped(kind, outcome, decision, seconds)


@dataclass(frozen=True, slots=True)
class Busy:
    """A step that is being taken: why, and for how long."""

    ref: ResourceRef
    trigger: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Trouble:
    """A resource that is not as it should be, and what its status says."""

    ref: ResourceRef
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What has to be counted or read: too dear to do all the time."""

    # By kind, and by one of the words above.
    resources: Mapping[tuple[str, str], int] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything. `delayed` looks are planned; `retries` were, so far, because of a failure."""

    phase: str
    seconds: float
    kinds: tuple[str, ...]
    depth: Mapping[Priority, int]
    # The longest first.
    busy: tuple[Busy, ...]
    # Those that are to be retried, and why.
    retrying: tuple[tuple[ResourceRef, str], ...]
    delayed: int
    retries: int
    steps: StepCount
    services: Snapshot
    survey: Survey
    # How many are held here, and how many there are; none for a process that looks after everything.
    shards: tuple[int, int] | None = None


def glance_at(manager: Manager, began: float, steps: StepCount, budgets: Budgets, survey: Survey) -> Glance:
    """The process now, with the last `survey` of it."""
    queues = {one: one.queue.snapshot() for one in manager.controllers.values()}
    depth: Counter[Priority] = Counter()
    for snapshot in queues.values():
        depth.update(snapshot.depth)
    return Glance(
        phase=manager.phase.value,
        seconds=manager.world.clock.monotonic() - began,
        kinds=tuple(one.name for one in queues),
        depth=depth,
        busy=_busy(manager),
        retrying=_retrying(manager),
        delayed=sum(one.delayed for one in queues.values()),
        retries=sum(one.retries for one in queues.values()),
        steps=steps,
        services=budgets.snapshot(),
        survey=survey,
        shards=None if manager.replica is None else (len(manager.replica.held), manager.replica.number),
    )


def _busy(manager: Manager) -> tuple[Busy, ...]:
    now = manager.world.clock.monotonic()
    working = [pair for one in manager.controllers.values() for pair in one.working.items()]
    found = [Busy(ref, trigger, now - since) for ref, (trigger, since) in working]
    return tuple(sorted(found, key=lambda one: -one.seconds))


def _retrying(manager: Manager) -> tuple[tuple[ResourceRef, str], ...]:
    troubles = [pair for one in manager.controllers.values() for pair in one.troubles.items()]
    return tuple((ref, str(error)) for ref, error in troubles)


async def survey_of(manager: Manager, most: int) -> Survey:
    """Everything counted, and at most so many troubles and notes."""
    counts: Counter[tuple[str, str]] = Counter()
    unready: list[ResourceRef] = []
    for number, ref in enumerate(tuple(manager.heads), start=1):
        head = manager.heads.get(ref)
        if head is not None and (ref.group, ref.kind) in manager.controllers:
            how = DELETING if head.is_deleting else READY if head.is_ready else NOT_READY
            counts[ref.kind, how] += 1
            if how != READY and len(unready) < most:
                unready.append(ref)
        if number % _SLICE == 0:
            await asyncio.sleep(0)
    troubles = [await _trouble(ref, manager) for ref in unready]
    notes = await manager.world.store.notes()
    return Survey(counts, tuple(troubles), notes[-most:])


async def _trouble(ref: ResourceRef, manager: Manager) -> Trouble:
    resource = await manager.world.store.get(ref)
    ready = None if resource is None else find_condition(from_data(resource.status.get("conditions")), "Ready")
    return Trouble(ref, ready.reason, ready.message) if ready is not None else Trouble(ref, "NotLookedAt", "")
