"""A service that insists on its default."""

import asyncio

from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.step_harness import harness_for


def test_a_service_insists_on_a_value_and_not_on_a_field() -> None:
    async def play() -> None:
        async with harness_for(GadgetFixture()) as harness:
            other = harness.fixture.unlisted
            harness.fixture.rewrite(other.member, other.theirs)
            await harness.settle()
            assert (await harness.resource()).status["serverDefaults"] == ["spec.mode"]
            harness.fixture.calm()
            harness.fixture.edit(other.member, "another writer's")
            await harness.go_on()

            assert harness.fixture.read(other.member) == "auto"
            assert "serverDefaults" not in (await harness.resource()).status

    asyncio.run(play())
