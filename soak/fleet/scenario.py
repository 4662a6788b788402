"""Processes are killed one after the other while an author edits; then the checks run."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soak.fleet import results
from soak.fleet.api import Api, Tree
from soak.fleet.author import Author
from soak.fleet.cloud import MultiEndpointCloud
from soak.fleet.cluster_objects import ObjectWatch
from soak.fleet.fleet import Fleet, Loss
from soak.fleet.leases import LeaseWatch
from soak.fleet.process import RunProcess, surroundings
from soak.fleet.subjects import make_instance, subjects
from tests.cluster.access import Access

_TIMEOUT_SECONDS = 120.0
Print = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """How many of everything. After the kills, `ends` processes are terminated, one by one."""

    kills: int
    # How many are killed at once.
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
    """A namespace of a cluster that knows our kinds, and a folder for logs.

    `kubeconfig` is the one of the processes: without it, they are the administrator's.
    """

    access: Access
    namespace: str
    folder: Path
    kubeconfig: Path | None = None
    audit_log: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Failed checks, and what took too long, as texts."""

    wrong: list[str]
    late: list[str]


async def run(plan: FleetPlan, place: Place, report: Print) -> Outcome:
    """Runs the scenario; `report` gets its progress."""
    async with _fleet(plan, place) as fleet:
        await fleet.start()
        await fleet.author.declare(fleet.subjects)
        report(f"{len(fleet.subjects)} declared, {plan.replicas} processes, {plan.shards} shards")
        await _run_actors(plan, fleet, report)
        await fleet.until_all_run()
        wrong = results.problems(fleet, fleet.author, await _until_settled(fleet))
        await fleet.stop()
        wrong += [f"a process ended with {code}" for code in fleet.codes if code != 0]
        for name, value in results.summary(fleet, fleet.author).items():
            report(f"{name}: {value}")
    return Outcome(wrong, results.too_late(fleet))


@asynccontextmanager
async def _fleet(plan: FleetPlan, place: Place) -> AsyncIterator[Fleet]:
    async with MultiEndpointCloud() as cloud, Api(place.access) as api:
        make_instance(cloud)
        watch = LeaseWatch.of(api, place.namespace)
        objects = ObjectWatch(api, place.namespace, place.audit_log)
        watching = [asyncio.create_task(one.watch_until_cancelled()) for one in (watch, objects)]
        author = Author(api, cloud, objects, random.Random(plan.seed))
        processes = [await _process(f"replica-{number}", plan, place, cloud) for number in range(plan.replicas)]
        try:
            yield Fleet(processes, plan.shards, watch, author, subjects(plan.resources), plan.shortens_leases)
        finally:
            for process in processes:
                if process.lives:
                    process.kill()
            for task in watching:
                task.cancel()
            for task in watching:
                with suppress(asyncio.CancelledError):
                    await task


async def _process(name: str, plan: FleetPlan, place: Place, cloud: MultiEndpointCloud) -> RunProcess:
    endpoint = await cloud.open_endpoint(name)
    environment = surroundings(place.kubeconfig or place.access.kubeconfig, place.namespace, endpoint, place.folder)
    kinds = ",".join(sorted({one.kind for one in subjects(plan.resources)}))
    return RunProcess(name, place.folder, environment, ("--shards", str(plan.shards), "--kinds", kinds))


async def _run_actors(plan: FleetPlan, fleet: Fleet, report: Print) -> None:
    editing = asyncio.create_task(fleet.author.edit_until_stopped(fleet.subjects, plan.pause))
    try:
        killed = 0
        while killed < plan.kills:
            loss = await fleet.kill(min(plan.at_once, plan.kills - killed))
            killed += len(loss.holders)
            report(f"killed {killed} of {plan.kills}: {_names(loss)}, with {len(loss.shards)} shards")
        for _ in range(plan.ends):
            loss = await fleet.end_one()
            report(f"asked to end: {_names(loss)}, with {len(loss.shards)} shards")
    finally:
        fleet.author.is_stopping = True
        await editing


def _names(loss: Loss) -> str:
    return ", ".join(sorted(loss.holders))


async def _until_settled(fleet: Fleet) -> list[Tree]:
    """The resources, once the status of each is of its newest generation, or after the timeout."""
    paths = {subject.resources(fleet.author.namespace) for subject in fleet.subjects}
    found: list[Tree] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                found = [one for path in paths for one in (await fleet.author.api.get(path))["items"]]
                if not results.unready(found):
                    break
                await asyncio.sleep(0.5)
    return found
