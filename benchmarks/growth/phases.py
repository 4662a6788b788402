"""What happens to the fleet, in virtual time: a restart, a period of rest, drift of 1 %, an outage of the service."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import click
import msgspec

from benchmarks.growth.computing_loop import ComputingLoop
from benchmarks.growth.simulated_service import SimulatedStorage
from benchmarks.growth.simulated_store import SimulatedStore, ref_of
from benchmarks.process_memory import proc_status_bytes
from setpoint.runtime.controller import Controller
from setpoint.runtime.manager import Manager, freeze_index
from simulation.virtual_time import VirtualClock

# One drifts of so many.
DRIFT_SHARE: Final = 100
REST_SECONDS: Final = 450.0
OUTAGE_SECONDS: Final = 600.0
# Between two samples of the queue; and between two looks whether a phase is over, or a restart.
SAMPLE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 1.0
_RESTART_POLL_SECONDS: Final = 0.02
# A phase that takes longer never ends.
_LONGEST: Final = 24 * 3600.0
# How often another replica writes the status of a resource whose drift it corrects, and in how many seconds for all.
_WRITES_PER_DRIFT: Final = 2
_DRIFT_SECONDS: Final = 300.0


class Phase(StrEnum):
    """The phases, in their order."""

    RESTART = "restart"
    REST = "rest"
    DRIFT = "drift"
    OUTAGE = "outage"
    RECOVERY = "recovery"


# When a phase begins at the earliest, in seconds since the start: a fleet of any size is at the same point of its
# resyncs then, of which an outage meets the more the later it is.
_BEGINNINGS: Final = {Phase.REST: 300.0, Phase.DRIFT: 300.0 + REST_SECONDS, Phase.OUTAGE: 1_800.0}


class PhaseUsage(msgspec.Struct, frozen=True):
    """What a phase took: CPU seconds, virtual seconds, and requests to the service, in all and in the busiest second.

    `depth` is the longest queue: its keys, and the resources that failed last time; one that failed and is due again
    counts twice. `memory` is the peak in bytes, `block` the longest time that the event loop was busy with one thing.
    """

    cpu: float
    seconds: float
    requests: int
    requests_peak: int
    depth: int
    memory: int
    block: float
    # When it began, in virtual time.
    began: float


class Sample(msgspec.Struct, frozen=True):
    """The process at one moment of virtual time: keys that are queued, resources that failed, requests so far."""

    at: float
    queued: int
    failing: int
    requests: int


class SimulatedReplica:
    """A running manager with its store and service. `is_own` tells which resources it has, `size` how many, and of all.

    The loop has to be a ComputingLoop.
    """

    def __init__(
        self,
        manager: Manager,
        store: SimulatedStore,
        service: SimulatedStorage,
        is_own: Callable[[int], bool],
        size: tuple[int, int],
    ) -> None:
        self.samples: list[Sample] = []
        self._manager = manager
        self._store = store
        self._service = service
        self._is_own = is_own
        self._own, self._count = size
        self._clock = VirtualClock()
        self._depth = 0

    @property
    def _controllers(self) -> Collection[Controller]:
        """That of buckets, once the first of them is known."""
        return self._manager.controllers.values()

    async def run_phases(self, wanted: Collection[Phase]) -> dict[Phase, PhaseUsage]:
        """The wanted phases, in their order."""
        running, freezing = asyncio.create_task(self._manager.run()), asyncio.create_task(freeze_index(self._manager))
        sampling = asyncio.create_task(self._sample())
        phases = {
            Phase.RESTART: self._restart,
            Phase.REST: self._rest,
            Phase.DRIFT: self._drift,
            Phase.OUTAGE: self._outage,
            Phase.RECOVERY: self._recovery,
        }
        usage, start = {}, self._clock.monotonic()
        for phase, run in phases.items():
            if phase not in wanted:
                continue
            await self._clock.sleep(max(0.0, start + _BEGINNINGS.get(phase, 0.0) - self._clock.monotonic()))
            usage[phase] = await self._measured(run)
            click.echo(f"  {phase}: {usage[phase]}", err=True)
        sampling.cancel()
        self._manager.stop()
        freezing.cancel()
        await running
        return usage

    async def _measured(self, phase: Callable[[], Awaitable[None]]) -> PhaseUsage:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ComputingLoop)
        reset_peak_memory()
        self._depth, loop.longest_block = 0, 0.0
        cpu, began, requests = time.process_time(), self._clock.monotonic(), self._service.requests
        await phase()
        cpu, ended = time.process_time() - cpu, self._clock.monotonic()
        block = loop.longest_block
        self._read()
        busiest = max((self._service.by_second[second] for second in range(int(began), int(ended) + 1)), default=0)
        memory = proc_status_bytes("VmHWM")
        return PhaseUsage(
            cpu, ended - began, self._service.requests - requests, busiest, self._depth, memory, block, began
        )

    # --- Phases -------------------------------------------------------------------------------------------------------

    async def _restart(self) -> None:
        """Until every resource of its shards was seen in sync."""
        await self._until(lambda: self._seen >= self._own, _RESTART_POLL_SECONDS)

    async def _rest(self) -> None:
        await self._clock.sleep(REST_SECONDS)

    async def _drift(self) -> None:
        """Until the drift of its own resources is corrected; the other replicas correct that of theirs."""
        drifted = range(0, self._count, DRIFT_SHARE)
        own = set(filter(self._is_own, drifted))
        self._service.drift(own)
        elsewhere = asyncio.create_task(self._correct_elsewhere([one for one in drifted if one not in own]))
        await self._until(lambda: not self._service.drifted)
        await elsewhere
        # The steps of the last corrections end.
        await self._clock.sleep(_POLL_SECONDS)

    async def _correct_elsewhere(self, numbers: Sequence[int]) -> None:
        pause = _DRIFT_SECONDS / max(1, len(numbers) * _WRITES_PER_DRIFT)
        for number in numbers:
            for _ in range(_WRITES_PER_DRIFT):
                await self._store.written_elsewhere(ref_of(number))
                await self._clock.sleep(pause)

    async def _outage(self) -> None:
        self._service.is_down = True
        await self._clock.sleep(OUTAGE_SECONDS)
        self._service.is_down = False

    async def _recovery(self) -> None:
        """Until no resource is left that failed last time."""
        await self._until(lambda: not self._failing)

    async def _until(self, holds: Callable[[], bool], poll: float = _POLL_SECONDS) -> None:
        end = self._clock.monotonic() + _LONGEST
        while not holds():
            if self._clock.monotonic() > end:
                raise TimeoutError(f"{self._samples_text()}: the phase did not end within a day")
            self._depth = max(self._depth, self._queue_depth)
            await self._clock.sleep(poll)

    def _samples_text(self) -> str:
        return str(self.samples[-1]) if self.samples else "no sample"

    # --- Samples ------------------------------------------------------------------------------------------------------

    async def _sample(self) -> None:
        while True:
            self._read()
            await self._clock.sleep(SAMPLE_SECONDS)

    def _read(self) -> None:
        self._depth = max(self._depth, self._queue_depth)
        failing = self._failing
        queued = self._queue_depth - failing
        self.samples.append(Sample(self._clock.monotonic(), queued, failing, self._service.requests))

    @property
    def _queue_depth(self) -> int:
        """The keys in the queue, and the resources that failed last time: most of these wait for their next try.

        One that is due for its next try is both, so that the sum may be more than all resources: these are the most.
        """
        queues = (one.queue.snapshot() for one in self._controllers)
        return min(self._own, sum(sum(queue.depth.values()) for queue in queues) + self._failing)

    @property
    def _seen(self) -> int:
        return sum(one.convergence.seen for one in self._controllers)

    @property
    def _failing(self) -> int:
        return sum(len(one.last_errors) for one in self._controllers)


def reset_peak_memory() -> None:
    """From now on `VmHWM` is the peak since this call. Linux only."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
