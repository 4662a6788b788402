"""`python -m soak`: some minutes of faults, edits, drift and kills, and then the checks."""

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from soak.actors import AnySubject, Author, FaultInjector, OtherWriter
from soak.catalogue_subjects import catalogue_subjects, make_containers
from soak.cloud import OPERATION_SECONDS, SoakCloud
from soak.commits import CommitPlan, run_commits
from soak.fleet.own_cluster import own_cluster
from soak.fleet.scenario import FleetPlan
from soak.fleet.scenario import run as run_fleet
from soak.process import Process
from soak.results import problems, summary, until_settled
from soak.subjects import make_instances, subjects

_SHOWN = 20
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a soak."""

    resources: int
    seconds: float
    kills: int
    seed: int
    # How many kinds of the catalogue are among the resources.
    catalogue: int = 0


@click.command()
@click.option("--resources", type=int, help="How many are declared: 2000, or 30 in a cluster.")
@click.option("--seconds", default=180.0, show_default=True, help="How long all actors run.")
@click.option("--kills", default=0, show_default=True, help="How often a process is killed with kill -9.")
@click.option("--catalogue", default=0, show_default=True, help="How many kinds of the catalogue are among them.")
@click.option("--commits", default=0, show_default=True, help="Instead: so many random commits of a repository.")
@click.option("--seed", default=None, type=int, help="The same again: the actors draw the same.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep store and log here.")
@click.option("--cluster", is_flag=True, help="Many processes on a real API server; the kills say how long.")
@click.option("--replicas", default=3, show_default=True, help="How many processes, in a cluster.")
@click.option("--shards", default=4, show_default=True, help="How many parts of the work, in a cluster.")
def main(folder: Path | None, **options: Any) -> None:  # noqa: ANN401 - what click makes of the options
    """Runs the real `setpoint run` under faults, edits and drift. Exit 1 when a check fails."""
    seed = random.randrange(10**6) if options["seed"] is None else options["seed"]
    with tempfile.TemporaryDirectory(prefix="setpoint-soak-") as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        if options["cluster"]:
            sys.exit(_kill_a_fleet(options, seed, place))
        if options["commits"]:
            sys.exit(_follow_commits(options, seed, place))
        plan = Plan(options["resources"] or 2_000, options["seconds"], options["kills"], seed, options["catalogue"])
        sys.exit(asyncio.run(soak(plan, place)))


def _follow_commits(options: dict[str, Any], seed: int, folder: Path) -> int:
    """The exit code."""
    plan = CommitPlan(options["resources"] or 500, options["commits"], seed)
    _print(f"{plan}, logs in {folder}")
    outcome = asyncio.run(run_commits(plan, folder, _print))
    for problem in outcome.wrong[:_SHOWN]:
        _print(f"WRONG: {problem}")
    if not outcome.wrong:
        _print("after every commit the world was that of the last good one")
    return 1 if outcome.wrong else 0


def _kill_a_fleet(options: dict[str, Any], seed: int, folder: Path) -> int:
    """The exit code."""
    resources, kills, replicas = options["resources"] or 30, options["kills"], options["replicas"]
    plan = FleetPlan(kills=kills, replicas=replicas, shards=options["shards"], resources=resources, seed=seed)
    _print(f"{plan}, logs in {folder}")
    with own_cluster(folder, _print) as place:
        outcome = asyncio.run(run_fleet(plan, place, _print))
    for problem in (*outcome.wrong, *outcome.late)[:_SHOWN]:
        _print(f"WRONG: {problem}")
    if not (outcome.wrong or outcome.late):
        _print("every edit was executed once, and no shard was without a holder for long")
    return 1 if outcome.wrong or outcome.late else 0


async def soak(plan: Plan, folder: Path) -> int:
    """The exit code."""
    draw = random.Random(plan.seed)
    _print(f"{plan}, log and store in {folder}")
    async with SoakCloud() as cloud:
        everything = _declared(plan, cloud)
        process = Process(folder, cloud.url)
        await process.start()
        author, fault_injector = Author(process, cloud, draw), FaultInjector(cloud, draw)
        await author.declare_all(everything)
        _print(f"{len(everything)} declared")
        await _run_actors(plan, everything, author, fault_injector)
        fault_injector.clear()
        _print(f"no more faults after {fault_injector.faults} faults and {process.kills} kills")
        # A request that was sent under a fault may take effect later: after that everything is reconciled.
        await asyncio.sleep(2 * OPERATION_SECONDS)
        await author.request_reconciles()
        left = await until_settled(process, author)
        code = await process.stop()
        found = await problems(process, author, cloud)
        process.check_store()
        found += [f"setpoint run ended with {code}"] if code else []
        for name, value in summary(author, cloud, everything).items():
            _print(f"{name}: {value}")
    return _report(found, left)


def _declared(plan: Plan, cloud: SoakCloud) -> tuple[AnySubject, ...]:
    """All resources of the soak; what they are in is made. Two of three are of the catalogue, if any are."""
    made = catalogue_subjects(plan.catalogue, plan.resources * 2 // 3) if plan.catalogue else ()
    make_instances(cloud)
    make_containers(made, cloud)
    return (*subjects(plan.resources - len(made)), *made)


async def _run_actors(
    plan: Plan, everything: tuple[AnySubject, ...], author: Author, fault_injector: FaultInjector
) -> None:
    """All actors at once, until the time is over."""
    other_writer = OtherWriter(author.cloud, author.draw)
    editing = asyncio.create_task(author.edit(everything, _PAUSE))
    tasks = [
        asyncio.create_task(other_writer.write_until_cancelled(everything, _PAUSE)),
        asyncio.create_task(fault_injector.inject_until_cancelled()),
    ]
    try:
        await asyncio.gather(asyncio.sleep(plan.seconds), _kill(plan, author))
    finally:
        author.is_stopping = True
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(editing, *tasks, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            raise one
    _print(f"the author made {author.edits} edits, another writer {other_writer.changes} changes")


async def _kill(plan: Plan, author: Author) -> None:
    """Kills and starts again, as often as planned, spread over the time."""
    for number in range(plan.kills):
        await asyncio.sleep(author.draw.random() * 2 * plan.seconds / (plan.kills + 1) * 0.9)
        await author.process.kill()
        await author.process.start()
        _print(f"killed {number + 1} of {plan.kills} times: the store is whole")


def _report(found: list[str], left: int) -> int:
    for problem in found[:_SHOWN]:
        _print(f"WRONG: {problem}")
    if found:
        _print(f"{len(found)} things are wrong, {left} resources are not settled")
        return 1
    _print("every resource is settled, both sides are equal, nothing is lost, nothing was done twice")
    return 0


def _print(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}")


if __name__ == "__main__":
    main()
