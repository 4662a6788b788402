"""A service that insists on its default."""

import asyncio

from setpoint.testing.harness import contract_harness
from tests.engine.gadget_fixture import GadgetFixture


def test_a_service_insists_on_a_value_and_not_on_a_field() -> None:
    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            other = harness.fixture.unlisted
            await harness.rewrite(other.member, other.theirs)
            await harness.settle()
            assert (await harness.resource()).status["serverDefaults"] == ["spec.mode"]
            await harness.recover()
            await harness.edit(other.member, "another writer's")
            await harness.go_on()

            assert await harness.read(other.member) == "auto"
            assert "serverDefaults" not in (await harness.resource()).status

    asyncio.run(play())
