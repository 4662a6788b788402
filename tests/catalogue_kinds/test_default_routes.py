"""The default routes of a network: deleted once, where the spec says so, whenever a kill comes."""

import asyncio

from setpoint.catalogue.index import kinds_by_group
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.step.outcomes import Settled
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.testing import contract_harness
from setpoint.testing.interruptions import after_any_await, killed_after
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.row_fixture import RowFixture


def _fixture() -> RowFixture:
    return fixture_of(next(name for name in kinds_by_group() if name[1] == "ComputeNetwork"))()


def _add_routes(made: RowFixture) -> None:
    """The routes that the service will have: two of the network are default ones."""
    own, other = made._key.partition("/")[2], "projects/some-project/global/networks/other"
    for name, network, destination in (
        ("default-1", own, "0.0.0.0/0"),
        ("default-2", own, "0.0.0.0/0"),
        ("local", own, "10.0.0.0/8"),
        ("of-another", other, "0.0.0.0/0"),
    ):
        link = f"https://www.googleapis.com/compute/v1/{network}"
        body = {"name": name, "network": link, "destRange": destination}
        key = f"{made._key.rpartition('/networks/')[0]}/routes/{name}"
        made.cloud.google.state.objects[key] = CatalogueObject(body)


def _routes(made: RowFixture) -> list[str]:
    return [key.rpartition("/")[2] for key in made.cloud.google.state.objects if "/routes/" in key]


def test_only_the_default_routes_of_the_network_go() -> None:
    async def play(is_wanted: bool) -> list[str]:
        made = _fixture()
        async with contract_harness(made) as harness:
            _add_routes(made)
            await harness.settle({**made.minimal, "deleteDefaultRoutesOnCreate": is_wanted})
            return _routes(made)

    assert asyncio.run(play(True)) == ["local", "of-another"]
    assert asyncio.run(play(False)) == ["default-1", "default-2", "local", "of-another"]


def test_they_go_whenever_the_process_is_killed() -> None:
    async def killed_in_creation(awaits: int) -> bool:
        made = _fixture()
        async with contract_harness(made) as harness:
            _add_routes(made)
            await harness.apply({**made.minimal, "deleteDefaultRoutesOnCreate": True})
            was_killed = await killed_after(awaits, harness)
            outcome = (await StepRunner(harness.engine).until_done([harness.ref], timeout=60))[harness.ref]
            assert isinstance(outcome, Settled), f"killed after await {awaits}: {outcome}"
            assert _routes(made) == ["local", "of-another"], f"killed after await {awaits}"
            return was_killed

    asyncio.run(after_any_await(killed_in_creation, least=4))
