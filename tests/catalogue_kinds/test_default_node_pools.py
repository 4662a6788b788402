"""The node pool that GKE makes with a cluster: removed once, where the annotation says so, whenever a kill comes."""

import asyncio

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Settled
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.testing import contract_harness
from setpoint.testing.interruptions import after_any_await, killed_after
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.row_fixture import RowFixture

REMOVED = {"cnrm.cloud.google.com/remove-default-node-pool": "true"}


def _fixture() -> RowFixture:
    return fixture_of(next(name for name in kinds_by_group() if name[1] == "ContainerCluster"))()


def _pools(made: RowFixture) -> list[str]:
    return [key.rpartition("/")[2] for key in made.cloud.google.state.objects if "/nodePools/" in key]


@pytest.mark.parametrize(("annotations", "expected"), [(REMOVED, []), ({}, ["default-pool"])])
def test_the_default_node_pool_goes_where_the_annotation_says_so(
    annotations: dict[str, str], expected: list[str]
) -> None:
    async def play() -> list[str]:
        made = _fixture()
        async with contract_harness(made) as harness:
            await harness.settle(annotations=annotations)
            return _pools(made)

    assert asyncio.run(play()) == expected


def test_it_goes_whenever_the_process_is_killed() -> None:
    async def killed_in_creation(awaits: int) -> bool:
        made = _fixture()
        async with contract_harness(made) as harness:
            await harness.apply(annotations=REMOVED)
            was_killed = await killed_after(awaits, harness)
            outcome = (await StepRunner(harness.engine).until_done([harness.ref], timeout=60))[harness.ref]
            assert isinstance(outcome, Settled), f"killed after await {awaits}: {outcome}"
            assert _pools(made) == [], f"killed after await {awaits}"
            return was_killed

    asyncio.run(after_any_await(killed_in_creation, least=4))


def test_a_pool_of_that_name_that_comes_later_is_left_alone() -> None:
    async def play() -> list[str]:
        made = _fixture()
        async with contract_harness(made) as harness:
            await harness.settle(annotations=REMOVED)
            key = next(key for key in made.cloud.google.state.objects if "/clusters/" in key)
            made.cloud.google.state.objects[f"{key}/nodePools/default-pool"] = CatalogueObject({"name": "default-pool"})
            await harness.go_on(requested=True)
            return _pools(made)

    assert asyncio.run(play()) == ["default-pool"]
