"""A service that insists on its default."""

import asyncio

from tests.engine.bench import bench_with
from tests.engine.gadget_stand import GadgetStand


def test_a_service_insists_on_a_value_and_not_on_a_field() -> None:
    async def play() -> None:
        async with bench_with(GadgetStand()) as bench:
            other = bench.stand.unlisted
            bench.stand.rewrite(other.member, other.theirs)
            await bench.settle()
            assert (await bench.resource()).status["serverDefaults"] == ["spec.mode"]
            bench.stand.calm()
            bench.stand.edit(other.member, "somebody else's")
            await bench.go_on()

            assert bench.stand.read(other.member) == "auto"
            assert "serverDefaults" not in (await bench.resource()).status

    asyncio.run(play())
