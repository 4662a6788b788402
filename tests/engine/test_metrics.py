"""The metrics of steps."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from setpoint.engine.management import MANAGEMENT
from setpoint.engine.metrics import BUGS, TERMINAL_ERRORS, StepCount
from setpoint.engine.step.reconcile import step
from setpoint.testing.harness import contract_harness
from tests.engine.gadget_fixture import GadgetFixture


@dataclass
class Tally:
    """Metrics kept in a list."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)
    counts: list[tuple[StepCount, str]] = field(default_factory=list)

    def count(self, count: StepCount, kind: str) -> None:
        self.counts.append((count, kind))

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        assert seconds >= 0
        self.lines.append((kind, outcome, decision))


def test_every_step_is_measured_with_its_kind_outcome_decision_and_time() -> None:
    tally = Tally()

    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            engine = replace(harness.engine, metrics=tally)
            await step(harness.ref, engine)
            await harness.apply()
            await step(harness.ref, engine)

    asyncio.run(play())

    assert tally.lines == [("Gadget", "gone", ""), ("Gadget", "settled", "create")]


def test_errors_that_only_an_edit_ends_and_bugs_are_counted() -> None:
    tally = Tally()

    async def play() -> None:
        async with contract_harness(GadgetFixture()) as harness:
            engine = replace(harness.engine, metrics=tally)
            await harness.apply(annotations={MANAGEMENT: "sometimes"})
            await step(harness.ref, engine)
            await harness.apply()
            broken: Any = object()
            await step(harness.ref, replace(engine, kinds={harness.ref.group_kind: broken}))

    asyncio.run(play())

    assert tally.counts == [(TERMINAL_ERRORS, "Gadget"), (BUGS, "Gadget")]
