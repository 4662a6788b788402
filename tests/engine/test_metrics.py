"""What is measured of a step."""

import asyncio
from dataclasses import dataclass, field, replace

from setpoint.engine.step.reconcile import step
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.step_harness import harness_for


@dataclass
class Tally:
    """Metrics kept in a list."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        assert seconds >= 0
        self.lines.append((kind, outcome, decision))


def test_every_step_is_told_with_its_kind_outcome_decision_and_time() -> None:
    tally = Tally()

    async def play() -> None:
        async with harness_for(GadgetFixture()) as harness:
            engine = replace(harness.engine, metrics=tally)
            await step(harness.fixture.ref, engine)
            await harness.apply()
            await step(harness.fixture.ref, engine)

    asyncio.run(play())

    assert tally.lines == [("Gadget", "gone", ""), ("Gadget", "settled", "create")]
