"""Processes are killed one after the other while an author edits; then a verdict."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soak.fleet import verdict
from soak.fleet.api import Api, Tree
from soak.fleet.author import Author
from soak.fleet.cloud import DoorCloud
from soak.fleet.fleet import Fleet, Loss
from soak.fleet.leases import LeaseWatch
from soak.fleet.process import RunProcess, surroundings
from soak.fleet.subjects import make_instance, subjects
from tests.cluster.access import Access

_PATIENCE = 120.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """How many of everything. After the kills, as many processes as `ends` says are asked to end, one by one."""

    kills: int
    # How many are killed at the same moment.
    at_once: int = 1
    ends: int = 1
    replicas: int = 3
    shards: int = 4
    resources: int = 30
    pause: float = 0.3
    # Leases of killed processes expire after a second: for tests, which measure no time.
    shortens_leases: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace of a cluster that knows our kinds, and a folder for logs."""

    access: Access
    namespace: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What went wrong, and what came too late, in words."""

    wrong: list[str]
    late: list[str]


async def run(plan: FleetPlan, place: Place, tell: Tell) -> Outcome:
    """How it went; what happens is told."""
    async with _fleet(plan, place) as fleet:
        await fleet.start()
        await fleet.author.declare(fleet.subjects)
        tell(f"{len(fleet.subjects)} declared, {plan.replicas} processes, {plan.shards} shards")
        await _meddle(plan, fleet, tell)
        await fleet.until_all_run()
        wrong = verdict.problems(fleet, fleet.author, await _until_settled(fleet))
        await fleet.stop()
        wrong += [f"a process ended with {code}" for code in fleet.codes if code != 0]
        for name, value in verdict.summary(fleet, fleet.author).items():
            tell(f"{name}: {value}")
    return Outcome(wrong, verdict.too_late(fleet))


@asynccontextmanager
async def _fleet(plan: FleetPlan, place: Place) -> AsyncIterator[Fleet]:
    async with DoorCloud() as cloud, Api(place.access) as api:
        make_instance(cloud)
        watch = LeaseWatch.of(api, place.namespace)
        watching = asyncio.create_task(watch.watch_for_ever())
        author = Author(api, cloud, place.namespace, random.Random(plan.seed))
        processes = [await _process(f"replica-{number}", plan, place, cloud) for number in range(plan.replicas)]
        try:
            yield Fleet(processes, plan.shards, watch, author, subjects(plan.resources), plan.shortens_leases)
        finally:
            for process in processes:
                if process.lives:
                    process.kill()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def _process(name: str, plan: FleetPlan, place: Place, cloud: DoorCloud) -> RunProcess:
    door = await cloud.open_door(name)
    environment = surroundings(place.access.kubeconfig, place.namespace, door, place.folder)
    return RunProcess(name, place.folder, environment, ("--shards", str(plan.shards)))


async def _meddle(plan: FleetPlan, fleet: Fleet, tell: Tell) -> None:
    editing = asyncio.create_task(fleet.author.edit_until_enough(fleet.subjects, plan.pause))
    try:
        killed = 0
        while killed < plan.kills:
            loss = await fleet.kill(min(plan.at_once, plan.kills - killed))
            killed += len(loss.holders)
            tell(f"killed {killed} of {plan.kills}: {_names(loss)}, with {len(loss.shards)} shards")
        for _ in range(plan.ends):
            loss = await fleet.end_one()
            tell(f"asked to end: {_names(loss)}, with {len(loss.shards)} shards")
    finally:
        fleet.author.has_enough = True
        await editing


def _names(loss: Loss) -> str:
    return ", ".join(sorted(loss.holders))


async def _until_settled(fleet: Fleet) -> list[Tree]:
    """The resources, once the status of each speaks of its newest generation, or patience ends."""
    paths = {subject.resources(fleet.author.namespace) for subject in fleet.subjects}
    found: list[Tree] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while True:
                found = [one for path in paths for one in (await fleet.author.api.get(path))["items"]]
                if not verdict.unready(found):
                    break
                await asyncio.sleep(0.5)
    return found
