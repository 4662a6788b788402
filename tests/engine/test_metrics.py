"""What is measured of a step."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from setpoint.engine.reconcile import step
from tests.engine.bench import bench_with
from tests.engine.gadget_stand import GadgetStand


@dataclass
class Tally:
    """Metrics kept in a list."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        self.lines.append((name, labels["kind"], labels["outcome"]))

    def observe(self, name: str, seconds: float, labels: Mapping[str, str]) -> None:
        assert seconds >= 0
        self.lines.append((name, labels["kind"], labels["outcome"]))


def test_every_step_is_counted_and_timed_by_kind_and_outcome() -> None:
    tally = Tally()

    async def play() -> None:
        async with bench_with(GadgetStand()) as bench:
            world = replace(bench.world, metrics=tally)
            await step(bench.stand.ref, world)
            await bench.apply()
            await step(bench.stand.ref, world)

    asyncio.run(play())

    assert tally.lines == [
        ("setpoint_steps_total", "Gadget", "gone"),
        ("setpoint_step_seconds", "Gadget", "gone"),
        ("setpoint_steps_total", "Gadget", "settled"),
        ("setpoint_step_seconds", "Gadget", "settled"),
    ]
