"""Labels of an object that no method of its service updates."""

import asyncio

from setpoint.catalogue.index import kinds_by_group
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import ImmutableFieldChanged
from setpoint.testing import contract_harness
from tests.catalogue_kinds.fixtures import fixture_of


def test_a_change_of_labels_is_refused_where_no_method_sets_them() -> None:
    async def play() -> tuple[object, list[str]]:
        fixture = fixture_of(next(name for name in kinds_by_group() if name[1] == "BatchJob"))
        async with contract_harness(fixture()) as harness:
            await harness.settle(labels={"team": "a"})
            await harness.apply(labels={"team": "b"})
            return await harness.step(), harness.writes

    outcome, writes = asyncio.run(play())

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ImmutableFieldChanged)
    assert "metadata.labels" in str(outcome.error)
    assert writes == ["create"]
