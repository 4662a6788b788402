"""Scenarios: the time until a process is ready, and until an edit has reached the service."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.buckets import USUAL, Size, manifest_of, name_of
from benchmarks.comparison import WrongResult
from benchmarks.scenarios import Measurement, Unit
from benchmarks.setpoint_process import SetpointProcess, running_process
from benchmarks.settled_store import in_sync_service
from setpoint.core.decide import Decision

COLD_START: Final = "cold start: from opening the store with 10,000 buckets until ready"
COLD_CPU: Final = f"{USUAL.label}: CPU time"
EDIT: Final = "an edit, 10,000 buckets at rest"
_STARTS: Final = 3
_TIME_LIMIT_SECONDS: Final = 5.0


def cold_start(path: Path, count: int, size: Size) -> tuple[Measurement, ...]:
    """The CPU time and duration of a start, the best of a few."""
    service, best_cpu, best_wall = in_sync_service(count, size), float("inf"), float("inf")
    started_at = time.monotonic()
    for _ in range(_STARTS):
        gc.collect()
        cpu, wall = time.process_time(), time.monotonic()
        with running_process(path, service) as process:
            process.wait_until_ready()
            best_cpu = min(best_cpu, time.process_time() - cpu)
            best_wall = min(best_wall, time.monotonic() - wall)
            if len(process.manager.index) != count:
                raise WrongResult(f"the process knows of {len(process.manager.index)} buckets, not {count}")
        if time.monotonic() - started_at > _TIME_LIMIT_SECONDS:
            break
    return (
        Measurement(COLD_START, f"{size.label}: CPU time", best_cpu, Unit.SECONDS),
        Measurement(COLD_START, f"{size.label}: by the clock", best_wall, Unit.SECONDS),
    )


class WriteTimes:
    """The time of the first write of each bucket to the service."""

    def __init__(self) -> None:
        self.by_name: dict[str, float] = {}
        self.first_write = asyncio.Event()

    def record(self, name: str) -> None:
        """Records a write now."""
        self.by_name.setdefault(name, time.monotonic())
        self.first_write.set()


def edit_latency(
    process: SetpointProcess, numbers: Sequence[int], size: Size, write_times: WriteTimes
) -> tuple[Measurement, ...]:
    """The latency and CPU time of edits, made one after the other, each until it is settled."""
    latencies, cpu, before = [], [], Counter(process.decisions())
    for number in numbers:
        cpu_before, started_at = time.process_time(), time.monotonic()
        process.loop.run_until_complete(_edit(process, number, size, write_times))
        cpu.append(time.process_time() - cpu_before)
        latencies.append(write_times.by_name[name_of(number)] - started_at)
    decisions = Counter(process.decisions()) - before
    if decisions != {Decision.INTENT_CHANGED.value: len(numbers)}:
        raise WrongResult(f"{len(numbers)} edits, decided as {dict(decisions)}")
    return (
        Measurement(
            EDIT, "until its first write reaches the service: half of all", _quantile(latencies, 0.5), Unit.SECONDS
        ),
        Measurement(EDIT, "99 of 100", _quantile(latencies, 0.99), Unit.SECONDS),
        Measurement(EDIT, "CPU time until it is settled: half of all", _quantile(cpu, 0.5), Unit.SECONDS),
    )


async def _edit(process: SetpointProcess, number: int, size: Size, write_times: WriteTimes) -> None:
    write_times.first_write.clear()
    await process.store.apply(manifest_of(number, size, versioning=False))
    await write_times.first_write.wait()
    await process.controller.queue.drained()


def _quantile(values: Sequence[float], share: float) -> float:
    """The quantile of `values` at `share`, between 0 and 1."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
