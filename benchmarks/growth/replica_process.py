"""One replica of `setpoint run` with its share of the fleet, in a process that does nothing else.

`python -m benchmarks.growth.replica_process JOB` prints what it used, as JSON.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.growth.computing_loop import ComputingLoop
from benchmarks.growth.phases import Phase, PhaseUsage, Sample, SimulatedReplica
from benchmarks.growth.simulated_service import SimulatedStorage
from benchmarks.growth.simulated_store import FleetDigests, SettledRecords, SimulatedStore, engine_context, ref_of
from benchmarks.process_memory import resident_bytes
from setpoint.runtime import logs
from setpoint.runtime.manager import GRACE_SECONDS, Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.assignment import MEMBER_PREFIX, shard_of, shard_winner
from setpoint.runtime.sharding.leases import LEASE_PREFIX
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.step_log import StepLog
from simulation.virtual_time import VirtualClock, run

# Parts in which replicas share the fleet: enough for shares of about the same size.
SHARDS: Final = 64
_ROOT: Final = Path(__file__).resolve().parents[2]


class ReplicaJob(msgspec.Struct, frozen=True):
    """A fleet of `count` buckets, and which of how many replicas this one is. `workers` as in --concurrency."""

    digests: str
    count: int
    replica: int
    replicas: int
    workers: int
    phases: tuple[Phase, ...] = tuple(Phase)

    @property
    def identities(self) -> Sequence[str]:
        """Those of all replicas."""
        return [f"replica-{number}" for number in range(self.replicas)]

    @property
    def identity(self) -> str:
        """That of this one."""
        return self.identities[self.replica]


class ReplicaUsage(msgspec.Struct, frozen=True):
    """What a replica used: `own` resources, the bytes of the process before it had any, and the phases."""

    own: int
    memory_at_start: int
    phases: dict[Phase, PhaseUsage]
    samples: list[Sample]


def run_replica(job: ReplicaJob) -> ReplicaUsage:
    """The usage of a replica in a new process."""
    command = (sys.executable, "-m", "benchmarks.growth.replica_process", msgspec.json.encode(job).decode())
    completed = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(completed.stdout, type=ReplicaUsage)


async def _measure(job: ReplicaJob) -> ReplicaUsage:
    clock, winners = VirtualClock(), [shard_winner(shard, job.identities) for shard in range(SHARDS)]

    def is_own(number: int) -> bool:
        return job.replicas == 1 or winners[shard_of(ref_of(number), SHARDS)] == job.identity

    own = sum(map(is_own, range(job.count)))
    records = SettledRecords(job.count, FleetDigests(Path(job.digests)))
    await records.settle(clock)
    store, service = SimulatedStore(clock, records, _leases_of_others(job, winners)), SimulatedStorage(job.count)
    google = service.client()
    telemetry = Telemetry([google.budgets], [service.counts])
    engine = replace(engine_context(store, google, clock), metrics=telemetry, reporter=StepLog())
    shared = None if job.replicas == 1 else ControllerReplica(store, clock, job.identity, SHARDS)
    manager = Manager(engine, telemetry, GRACE_SECONDS, job.workers, shared)
    telemetry.watch(manager)
    replica = SimulatedReplica(manager, store, service, is_own, (own, job.count))
    at_start = resident_bytes()
    return ReplicaUsage(own, at_start, await replica.run_phases(job.phases), replica.samples)


def _leases_of_others(job: ReplicaJob, winners: Sequence[str | None]) -> list[tuple[str, str]]:
    """The leases of the other replicas, each with its holder: their membership, and their shards."""
    members = [(f"{MEMBER_PREFIX}{number}", name) for number, name in enumerate(job.identities) if name != job.identity]
    shards = [(f"{LEASE_PREFIX}shard-{shard}", name) for shard, name in enumerate(winners) if name != job.identity]
    return [*members, *((lease, name) for lease, name in shards if name is not None)]


def main() -> None:
    """Runs the job that is the only argument, as JSON."""
    job = msgspec.json.decode(sys.argv[1], type=ReplicaJob)
    with Path(os.devnull).open("w", encoding="utf-8") as stream:
        # As `setpoint run` does: a line costs as much as it does there, but for the disk.
        logs.configure(logs.LogFormat.JSON, logging.INFO, stream)
        usage = run(_measure(job), ComputingLoop)
    print(msgspec.json.encode(usage).decode())


if __name__ == "__main__":
    main()
