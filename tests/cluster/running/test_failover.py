"""Replicas on a real API server are killed and terminated: no edit is lost, no write is repeated.

How long a shard has no holder is measured by `make soak ARGS="--cluster --kills 20"`; these tests measure no time.
"""

import asyncio
from pathlib import Path

from soak.fleet.scenario import FleetPlan, Place, run
from tests.cluster.access import Access


def test_other_replicas_take_over_from_one_that_is_killed_or_terminated(
    cluster: Access, namespace: str, tmp_path: Path
) -> None:
    progress: list[str] = []
    outcome = asyncio.run(
        run(FleetPlan(kills=2, at_once=2, shortens_leases=True), Place(cluster, namespace, tmp_path), progress.append)
    )

    assert outcome.wrong == [], progress


def test_two_replicas_take_over_from_each_other(cluster: Access, namespace: str, tmp_path: Path) -> None:
    progress: list[str] = []
    plan = FleetPlan(kills=0, ends=2, replicas=2, resources=10)
    outcome = asyncio.run(run(plan, Place(cluster, namespace, tmp_path), progress.append))

    assert outcome.wrong == [], progress
