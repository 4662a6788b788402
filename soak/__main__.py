"""`python -m soak`: some minutes of everything that can go wrong, and then a verdict."""

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from soak.actors import Author, Stranger, Weather
from soak.cloud import OPERATION_SECONDS, SoakCloud
from soak.fleet.own_cluster import own_cluster
from soak.fleet.story import FleetPlan
from soak.fleet.story import run as run_fleet
from soak.process import Process
from soak.subjects import Subject, make_instances, subjects
from soak.verdict import problems, summary, until_settled

_SHOWN = 20
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """How much, how long, how often."""

    resources: int
    seconds: float
    kills: int
    seed: int


@click.command()
@click.option("--resources", type=int, help="How many are declared: 2000, or 30 in a cluster.")
@click.option("--seconds", default=180.0, show_default=True, help="How long all actors run.")
@click.option("--kills", default=0, show_default=True, help="How often a process is killed with kill -9 meanwhile.")
@click.option("--seed", default=None, type=int, help="The same again: the actors draw the same.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep store and log here.")
@click.option("--cluster", is_flag=True, help="Many processes on a real API server; the kills say how long.")
@click.option("--replicas", default=3, show_default=True, help="How many processes, in a cluster.")
@click.option("--shards", default=4, show_default=True, help="How many parts of the work, in a cluster.")
def main(folder: Path | None, **options: Any) -> None:  # noqa: ANN401 - what click makes of the options
    """Runs the real `setpoint run` in bad weather. Exit 1 when anything is not as it should be."""
    seed = random.randrange(10**6) if options["seed"] is None else options["seed"]
    with tempfile.TemporaryDirectory(prefix="setpoint-soak-") as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        if options["cluster"]:
            sys.exit(_kill_a_fleet(options, seed, place))
        plan = Plan(options["resources"] or 2_000, options["seconds"], options["kills"], seed)
        sys.exit(asyncio.run(soak(plan, place)))


def _kill_a_fleet(options: dict[str, Any], seed: int, folder: Path) -> int:
    """The exit code."""
    resources, kills, replicas = options["resources"] or 30, options["kills"], options["replicas"]
    plan = FleetPlan(kills=kills, replicas=replicas, shards=options["shards"], resources=resources, seed=seed)
    _tell(f"{plan}, logs in {folder}")
    with own_cluster(folder, _tell) as place:
        outcome = asyncio.run(run_fleet(plan, place, _tell))
    for problem in (*outcome.wrong, *outcome.late)[:_SHOWN]:
        _tell(f"WRONG: {problem}")
    if not (outcome.wrong or outcome.late):
        _tell("every edit was carried out once, and no shard was without a holder for long")
    return 1 if outcome.wrong or outcome.late else 0


async def soak(plan: Plan, folder: Path) -> int:
    """The exit code."""
    draw = random.Random(plan.seed)
    _tell(f"{plan}, log and store in {folder}")
    async with SoakCloud() as cloud:
        everything = subjects(plan.resources)
        make_instances(cloud)
        process = Process(folder, cloud.url)
        await process.start()
        author, weather = Author(process, cloud, draw), Weather(cloud, draw)
        await author.declare_all(everything)
        _tell(f"{len(everything)} declared")
        await _meddle(plan, everything, author, weather)
        weather.clear()
        _tell(f"the sky is blue again after {weather.faults} faults and {process.kills} kills")
        # What was begun in bad weather, its answer unheard, takes effect when it does: then everything is looked at.
        await asyncio.sleep(2 * OPERATION_SECONDS)
        await author.ask_for_looks()
        left = await until_settled(process, author)
        code = await process.stop()
        found = await problems(process, author, cloud)
        process.check_store()
        found += [f"setpoint run ended with {code}"] if code else []
        for name, value in summary(author, cloud, everything).items():
            _tell(f"{name}: {value}")
    return _verdict(found, left)


async def _meddle(plan: Plan, everything: tuple[Subject, ...], author: Author, weather: Weather) -> None:
    """All actors at once, until the time is over."""
    stranger = Stranger(author.cloud, author.draw)
    editing = asyncio.create_task(author.edit(everything, _PAUSE))
    tasks = [
        asyncio.create_task(stranger.meddle_for_ever(everything, _PAUSE)),
        asyncio.create_task(weather.change_for_ever()),
    ]
    try:
        await asyncio.gather(asyncio.sleep(plan.seconds), _kill(plan, author))
    finally:
        author.has_enough = True
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(editing, *tasks, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            raise one
    _tell(f"the author made {author.edits} edits, a stranger {stranger.changes} changes")


async def _kill(plan: Plan, author: Author) -> None:
    """Kills and starts again, as often as planned, spread over the time."""
    for number in range(plan.kills):
        await asyncio.sleep(author.draw.random() * 2 * plan.seconds / (plan.kills + 1) * 0.9)
        await author.process.kill()
        await author.process.start()
        _tell(f"killed {number + 1} of {plan.kills} times: the store is whole")


def _verdict(found: list[str], left: int) -> int:
    for problem in found[:_SHOWN]:
        _tell(f"WRONG: {problem}")
    if found:
        _tell(f"{len(found)} things are wrong, {left} resources are not settled")
        return 1
    _tell("every resource is settled, both sides are equal, nothing is lost, nothing was done twice")
    return 0


def _tell(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}")


if __name__ == "__main__":
    main()
