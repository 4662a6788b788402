"""The controller process that serves the page: its queues, rates and budgets, and the processes beside it."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from setpoint.app import OpenedEngine
from setpoint.clients.http import READ_METHODS
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import rfc3339
from setpoint.dashboard.api.models import (
    Budget,
    NextStepTimes,
    ProcessAnswer,
    ProcessLease,
    ProcessState,
    QueueDepth,
    Rates,
)
from setpoint.dashboard.peers import Peers
from setpoint.dashboard.views.rows import ref_of
from setpoint.dashboard.views.summary import NoProcess
from setpoint.engine.ports import Clock, Lease, Store
from setpoint.engine.resource import ResourceRef
from setpoint.errors import StoreError
from setpoint.library.inspection.looks import next_looks
from setpoint.runtime.manager import Manager
from setpoint.runtime.sharding.assignment import MEMBER_PREFIX
from setpoint.runtime.sharding.leases import LEASE_PREFIX, LEASE_SECONDS

_log: Final = logging.getLogger(__name__)
_WINDOW_SECONDS: Final = 60.0
_SAMPLE_SECONDS: Final = 5.0
# How long what the leases said is shown.
_LEASES_SECONDS: Final = 5.0
# How often what other processes do is shown anew while this one does nothing.
_OTHERS_SECONDS: Final = 15.0
_SHARD_PREFIX: Final = f"{LEASE_PREFIX}shard-"


@dataclass(frozen=True, slots=True)
class _Sample:
    """The counts of a process at one moment."""

    at: float
    steps: int
    writes: int
    requests: int
    errors: int
    calls: Mapping[str, int]


@dataclass(slots=True)
class RunningProcess:
    """See ProcessSource: this process. `steps` counts its steps."""

    manager: Manager
    opened: OpenedEngine
    steps: Callable[[], int]
    # The processes of the cluster; None where what they do is not asked for.
    peers: Peers | None = None
    _began: float = field(init=False)
    _samples: deque[_Sample] = field(default_factory=deque)
    _asked: float = float("-inf")
    _leases: Sequence[ProcessLease] = ()

    def __post_init__(self) -> None:
        self._began = self._clock.monotonic()
        self._samples.append(self._sample())

    @property
    def _clock(self) -> Clock:
        return self.manager.engine.clock

    def state(self) -> ProcessState | None:
        """See ProcessSource."""
        now = self._sample()
        samples = self._samples
        while len(samples) > 1 and samples[1].at <= now.at - _WINDOW_SECONDS:
            samples.popleft()
        before = samples[0]
        if now.at - samples[-1].at >= _SAMPLE_SECONDS:
            samples.append(now)
        return ProcessState(
            phase=self.manager.phase.value,
            uptime_seconds=int(now.at - self._began),
            rates=_rates(before, now),
            queue=tuple(self._queues()),
            budgets=tuple(self._budgets(before, now)),
        )

    def _sample(self) -> _Sample:
        counts = [pair for one in self.opened.requests for pair in tuple(one.items())]
        writes = sum(count for (method, _, _), count in counts if method not in READ_METHODS)
        errors = sum(count for (method, _, status), count in counts if _is_error(method, status))
        calls = {str(one.key): one.calls for one in self.opened.budgets.snapshot().budgets}
        requests = sum(count for _, count in counts)
        return _Sample(self._clock.monotonic(), self.steps(), writes, requests, errors, calls)

    def _queues(self) -> list[QueueDepth]:
        found = []
        for controller in self.manager.controllers.values():
            queue = controller.queue.snapshot()
            depth = sum(queue.depth.values())
            if depth or queue.processing:
                seconds = round(queue.longest_running_seconds, 1)
                found.append(QueueDepth(kind=controller.name, depth=depth, oldest_seconds=seconds))
        return found

    def _budgets(self, before: _Sample, now: _Sample) -> list[Budget]:
        snapshot = self.opened.budgets.snapshot()
        is_open = {one.service for one in snapshot.limiters if one.breaker is not BreakerState.CLOSED}
        seconds = max(now.at - before.at, 1.0)
        return [
            Budget(
                service=" ".join(filter(None, one.key)),
                used=round((one.calls - before.calls.get(str(one.key), 0)) / seconds, 1),
                limit=round(one.rate, 1),
                is_open=one.key.service in is_open,
            )
            for one in snapshot.budgets
        ]

    @property
    def identity(self) -> str | None:
        """See ProcessSource."""
        return None if self.manager.replica is None else self.manager.replica.identity

    @property
    def activity(self) -> object:
        """See ProcessSource; what the others do is asked for now and then, while a page is open."""
        state = self.state()
        turn = 0 if self.identity is None else self._clock.monotonic() // _OTHERS_SECONDS
        return None if state is None else (state.activity, turn)

    def seconds_until_step(self, ref: ResourceRef) -> float | None:
        """See ProcessSource."""
        controller = self.manager.controllers.get(ref.group_kind)
        return None if controller is None else controller.queue.seconds_until(ref)

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        """See StepSource."""
        queues = (one.queue for one in self.manager.controllers.values())
        return {ref: queue.seconds_until(ref) for queue in queues for ref in queue.take_rescheduled()}

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """See StepSource."""
        if self.peers is None:
            return {}
        found: dict[ResourceRef, str] = {}
        for token in tokens:
            for answer in await self.peers.ask("/next-steps", token, NextStepTimes):
                times = ((ref_of(one), time) for one, time in answer.times.items())
                found |= {ref: time for ref, time in times if ref is not None and time is not None}
        return found

    async def processes(self, token: str | None) -> Sequence[ProcessLease]:
        """See ProcessSource."""
        own, now = self.identity, self._clock.monotonic()
        if own is None:
            return ()
        if now - self._asked >= _LEASES_SECONDS:
            # Before it is asked: a page that is opened meanwhile shows what was known before.
            self._asked = now
            self._leases = await self._leases_with(own, token)
        return self._leases

    async def _leases_with(self, own: str, token: str | None) -> Sequence[ProcessLease]:
        try:
            found, states = await asyncio.gather(self.opened.engine.store.leases(LEASE_PREFIX), self._states(token))
        except StoreError:
            return self._leases
        states = {**states, own: self.state()}
        return processes_of(found, self._clock.now(), own, states)

    async def _states(self, token: str | None) -> Mapping[str, ProcessState | None]:
        """What the others do, by identity."""
        if self.peers is None or token is None:
            return {}
        found = await self.peers.ask("/process", token, ProcessAnswer)
        return {one.identity: one.state for one in found if one.identity is not None}


@dataclass(slots=True)
class LeasesInCluster:
    """See ProcessSource: the processes of a cluster, for a page that is served beside them, by the user's rights."""

    store: Store
    clock: Clock
    _asked: float = float("-inf")
    _leases: Sequence[ProcessLease] = ()

    @property
    def identity(self) -> str | None:
        """See ProcessSource."""
        return None

    @property
    def activity(self) -> object:
        """See ProcessSource."""
        return self.clock.monotonic() // _OTHERS_SECONDS

    def state(self) -> ProcessState | None:
        """See ProcessSource."""
        return None

    def seconds_until_step(self, ref: ResourceRef) -> float | None:
        """See ProcessSource."""
        return None

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        """See StepSource."""
        return {}

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """See StepSource; the processes of a cluster answer users that sign in there."""
        return {}

    async def processes(self, token: str | None) -> Sequence[ProcessLease]:
        """See ProcessSource; none for a user who may not list leases."""
        if (now := self.clock.monotonic()) - self._asked >= _LEASES_SECONDS:
            self._asked = now
            try:
                self._leases = processes_of(await self.store.leases(LEASE_PREFIX), self.clock.now())
            except StoreError as error:
                _log.debug("leases not read", extra={"why": str(error)})
        return self._leases


@dataclass(frozen=True, slots=True)
class ProcessBeside(NoProcess):
    """See ProcessSource: the process that holds the store in a file, for a page that is served beside it."""

    store: Path

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """See StepSource; nothing while no process answers."""
        return await next_looks(refs, self.store)


def processes_of(
    leases: Sequence[Lease], now: str, own: str = "", states: Mapping[str, ProcessState | None] = MappingProxyType({})
) -> Sequence[ProcessLease]:
    """The processes that hold a lease at that time: members, and holders of shards."""
    held: dict[str, list[Lease]] = {}
    for lease in leases:
        if lease.name.startswith((MEMBER_PREFIX, _SHARD_PREFIX)) and lease.is_held(now):
            held.setdefault(lease.holder, []).append(lease)
    return [
        ProcessLease(
            identity=holder,
            shards=tuple(sorted(_shard(one) for one in found if one.name.startswith(_SHARD_PREFIX))),
            is_this=holder == own,
            renewed=rfc3339(int(max(one.expires for one in found) - LEASE_SECONDS)),
            state=states.get(holder),
        )
        for holder, found in sorted(held.items())
    ]


def _is_error(method: str, status: str) -> bool:
    """Whether a request failed. That there is no such object is an answer to a read."""
    return not status.startswith(("1", "2", "3")) and not (status == "404" and method in READ_METHODS)


def _shard(lease: Lease) -> int:
    text = lease.name.removeprefix(_SHARD_PREFIX)
    return int(text) if text.isdigit() else -1


def _rates(before: _Sample, now: _Sample) -> Rates:
    seconds = max(now.at - before.at, 1.0)
    return Rates(
        steps=round((now.steps - before.steps) / seconds, 2),
        writes=round((now.writes - before.writes) / seconds, 2),
        requests=round((now.requests - before.requests) / seconds, 2),
        errors=round((now.errors - before.errors) / seconds, 2),
    )
