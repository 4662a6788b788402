"""Processes that share the work on a real API server are killed and asked to end: nothing is lost, nothing done twice.

How long a shard has no owner is for `make soak ARGS="--cluster --kills 20"` to judge: here nothing is timed.
"""

import asyncio
from pathlib import Path

from soak.fleet.scenario import FleetPlan, Place, run
from tests.cluster.access import Access


def test_other_replicas_take_over_from_one_that_is_killed_or_terminated(
    cluster: Access, namespace: str, tmp_path: Path
) -> None:
    told: list[str] = []
    outcome = asyncio.run(run(FleetPlan(kills=2, at_once=2), Place(cluster, namespace, tmp_path), told.append))

    assert outcome.wrong == [], told


def test_two_processes_are_enough(cluster: Access, namespace: str, tmp_path: Path) -> None:
    told: list[str] = []
    plan = FleetPlan(kills=0, ends=2, replicas=2, resources=10)
    outcome = asyncio.run(run(plan, Place(cluster, namespace, tmp_path), told.append))

    assert outcome.wrong == [], told
