"""The controller process that serves the page: its queues, rates and budgets, and the processes beside it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final

from setpoint.app import OpenedEngine
from setpoint.clients.http import READ_METHODS
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import rfc3339
from setpoint.dashboard.api.models import Budget, ProcessLease, ProcessState, QueueDepth, Rates
from setpoint.engine.ports import Clock, Lease
from setpoint.errors import StoreError
from setpoint.runtime.manager import Manager
from setpoint.runtime.sharding.leases import LEASE_PREFIX, LEASE_SECONDS

_WINDOW_SECONDS: Final = 60.0
_SAMPLE_SECONDS: Final = 5.0
# How long what the leases said is shown.
_LEASES_SECONDS: Final = 5.0
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
    _began: float = field(init=False)
    _samples: deque[_Sample] = field(default_factory=deque)
    _leases: tuple[float, Sequence[ProcessLease]] = (float("-inf"), ())

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
        errors = sum(count for (_, _, status), count in counts if not status.startswith(("1", "2", "3")))
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

    async def leases(self) -> Sequence[ProcessLease]:
        """See ProcessSource."""
        replica = self.manager.replica
        if replica is None:
            return ()
        now = self._clock.monotonic()
        if now - self._leases[0] >= _LEASES_SECONDS:
            try:
                found = await self.opened.engine.store.leases(_SHARD_PREFIX)
            except StoreError:
                # The page shows what was known before.
                return self._leases[1]
            self._leases = now, _processes(found, replica.identity)
        return self._leases[1]


def _processes(leases: Sequence[Lease], own: str) -> Sequence[ProcessLease]:
    shards: dict[str, list[Lease]] = {}
    for lease in leases:
        if lease.holder:
            shards.setdefault(lease.holder, []).append(lease)
    return [
        ProcessLease(
            identity=holder,
            shards=tuple(sorted(_shard(one) for one in held)),
            is_this=holder == own,
            renewed=rfc3339(int(max(one.expires for one in held) - LEASE_SECONDS)),
        )
        for holder, held in sorted(shards.items())
    ]


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
