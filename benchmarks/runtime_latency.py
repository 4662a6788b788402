"""Surveys: how long until a process is ready, and until an edit has reached the service."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.buckets import USUAL, Size, manifest_of, name_of
from benchmarks.measuring import Disagreement
from benchmarks.running import Running, running
from benchmarks.settled import service_of
from benchmarks.surveys import Reading, Unit
from setpoint.core.decide import Decision

COLD_START: Final = "cold start: from opening the store with 10,000 buckets until ready"
COLD_CPU: Final = f"{USUAL.label}: CPU time"
EDIT: Final = "an edit, 10,000 buckets at rest"
_STARTS: Final = 3
_ENOUGH_SECONDS: Final = 5.0


def cold_start(path: Path, count: int, size: Size) -> tuple[Reading, ...]:
    """The best of a few starts."""
    service, best_cpu, best_wall = service_of(count, size), float("inf"), float("inf")
    began = time.monotonic()
    for _ in range(_STARTS):
        gc.collect()
        cpu, wall = time.process_time(), time.monotonic()
        with running(path, service) as process:
            process.until_ready()
            best_cpu = min(best_cpu, time.process_time() - cpu)
            best_wall = min(best_wall, time.monotonic() - wall)
            if len(process.manager.index) != count:
                raise Disagreement(f"the process knows of {len(process.manager.index)} buckets, not {count}")
        if time.monotonic() - began > _ENOUGH_SECONDS:
            break
    return (
        Reading(COLD_START, f"{size.label}: CPU time", best_cpu, Unit.SECONDS),
        Reading(COLD_START, f"{size.label}: by the clock", best_wall, Unit.SECONDS),
    )


class Arrivals:
    """When a change of each bucket first reached the service."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.news = asyncio.Event()

    def note(self, name: str) -> None:
        """It is there."""
        self.at.setdefault(name, time.monotonic())
        self.news.set()


def edits(process: Running, numbers: Sequence[int], size: Size, arrivals: Arrivals) -> tuple[Reading, ...]:
    """One after the other, each to its end."""
    waits, cpu, before = [], [], Counter(process.decisions())
    for number in numbers:
        used, began = time.process_time(), time.monotonic()
        process.loop.run_until_complete(_edit(process, number, size, arrivals))
        cpu.append(time.process_time() - used)
        waits.append(arrivals.at[name_of(number)] - began)
    found = Counter(process.decisions()) - before
    if found != {Decision.INTENT_CHANGED.value: len(numbers)}:
        raise Disagreement(f"{len(numbers)} edits came to {dict(found)}")
    return (
        Reading(EDIT, "until its first write reaches the service: half of all", _quantile(waits, 0.5), Unit.SECONDS),
        Reading(EDIT, "99 of 100", _quantile(waits, 0.99), Unit.SECONDS),
        Reading(EDIT, "CPU time until it is settled: half of all", _quantile(cpu, 0.5), Unit.SECONDS),
    )


async def _edit(process: Running, number: int, size: Size, arrivals: Arrivals) -> None:
    arrivals.news.clear()
    await process.store.apply(manifest_of(number, size, versioning=False))
    await arrivals.news.wait()
    await process.controller.queue.drained()


def _quantile(found: Sequence[float], share: float) -> float:
    """What that share of all does not exceed."""
    return sorted(found)[min(len(found) - 1, int(share * len(found)))]
