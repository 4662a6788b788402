"""Withheld writes: a rule names fields, reason and time; plan, condition, record and requeue follow from it."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import pytest

from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Hold, Plan, PlannedWrite
from setpoint.core.values.paths import Path
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.context import StepContext
from setpoint.engine.step import hold
from setpoint.engine.step.change_cause import ChangeCause, change_cause
from setpoint.engine.step.hold import HOLD_RULES, HeldField, HoldRule, seconds_until_retry, withhold
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture

OPENS = "2026-01-01T02:00:00Z"


def _drift_before_the_window(plan: Plan, intent: str, context: StepContext) -> Iterator[HeldField]:
    for change in plan.changes:
        is_drift = change_cause(change, plan.decision, intent, context) is ChangeCause.DRIFT
        if is_drift and context.engine.clock.now() < OPENS:
            yield HeldField(str(change.path), Hold.PAUSED, OPENS)


def _window_message(paths: Sequence[str], until: str) -> str:
    return f"{', '.join(paths)}: not written before the maintenance window at {until}"


def _window_condition(because: str) -> ReadyCondition:
    return ReadyCondition("False", "MaintenanceWindow", because)


WINDOW = HoldRule(Hold.PAUSED, _drift_before_the_window, _window_message, _window_condition)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reason to withhold writes, as a contributor would add it."""
    monkeypatch.setattr(hold, "HOLD_RULES", (*HOLD_RULES, WINDOW))


def _play(
    fixture: GadgetFixture, *, drifts: bool, is_open: bool = False, requested: bool = False, steps: int = 1
) -> tuple[StepOutcome, list[str], dict[str, object]]:
    """The outcome of a step after drift, or after an edit of the author; the writes so far; and the step record."""

    async def play() -> tuple[StepOutcome, list[str], dict[str, object]]:
        async with contract_harness(fixture) as harness:
            await harness.settle()
            if drifts:
                await harness.drift()
            else:
                await harness.change()
            harness.clock.seconds += 7200 if is_open else 0
            outcomes = [await harness.step(requested=requested) for _ in range(steps)]
            return outcomes[-1], list(fixture.writes), await _record(harness)

    return asyncio.run(play())


async def _record(harness: ContractHarness) -> dict[str, object]:
    state = (await harness.resource()).status["setpoint"]
    assert isinstance(state, dict)
    found = state["step"]
    assert isinstance(found, dict)
    return found


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("fixture", [GadgetFixture, StatelessGadgetFixture])
def test_drift_of_a_field_waits_for_its_rule_in_every_step(fixture: type[GadgetFixture], steps: int) -> None:
    outcome, writes, record = _play(fixture(), drifts=True, steps=steps)

    because = f"spec.size: not written before the maintenance window at {OPENS}"
    assert isinstance(outcome, Settled)
    assert writes == ["create"]
    assert outcome.ready == ReadyCondition("False", "MaintenanceWindow", because)
    assert [str(change.path) for change in outcome.plan.withheld] == ["spec.size"]
    assert (outcome.plan.held, outcome.plan.because) == (Hold.PAUSED, because)
    assert outcome.requeue_after is not None
    assert 7190 < outcome.requeue_after < 7200
    assert (record["writes"], record["because"]) == ([], because)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize("fixture", [GadgetFixture, StatelessGadgetFixture])
def test_a_change_by_the_author_is_written_at_once(fixture: type[GadgetFixture]) -> None:
    outcome, writes, _ = _play(fixture(), drifts=False)

    assert isinstance(outcome, Settled)
    assert (writes, outcome.plan.withheld, outcome.requeue_after) == (["create", "update"], (), None)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize(("is_open", "requested"), [(True, False), (False, True)])
def test_drift_is_corrected_when_its_time_has_come_or_a_reconcile_is_requested(
    *, is_open: bool, requested: bool
) -> None:
    outcome, writes, _ = _play(GadgetFixture(), drifts=True, is_open=is_open, requested=requested)

    assert isinstance(outcome, Settled)
    assert (writes, outcome.plan.withheld) == (["create", "update"], ())


def _changes(*paths: str) -> tuple[FieldChange, ...]:
    return tuple(FieldChange(Path.parse(path), 1, 2) for path in paths)


def _plan(changes: Iterable[FieldChange]) -> Plan:
    return Plan(Decision.DRIFTED, (PlannedWrite(Action.UPDATE, "update", tuple(changes)),))


@pytest.mark.usefixtures("window")
def test_each_reason_names_its_own_fields_and_the_first_time_counts() -> None:
    changes = _changes("spec.a", "spec.b", "spec.c")
    held = [
        HeldField("spec.a", Hold.OSCILLATING, "2026-01-01T05:00:00Z"),
        HeldField("spec.b", Hold.PAUSED, OPENS),
        HeldField("spec.b", Hold.PAUSED),
        HeldField("spec.a", Hold.PAUSED, OPENS),
    ]

    plan = withhold(_plan(()), changes, held)

    # `spec.c` is only written together with a held field.
    first, second = plan.because.split("; ")
    assert first.startswith("spec.a, spec.c: changed after each revert, and not reverted again before 2026-01-01T05")
    assert second == f"spec.b: not written before the maintenance window at {OPENS}"
    assert (plan.held, plan.retry_at, plan.withheld) == (Hold.OSCILLATING, OPENS, changes)


def test_a_time_that_has_passed_during_the_step_means_at_once() -> None:
    plan = withhold(_plan(()), _changes("spec.a"), [HeldField("spec.a", Hold.OSCILLATING, OPENS)])

    assert seconds_until_retry(plan, "2026-01-01T01:59:00Z") == 60.0
    assert seconds_until_retry(plan, "2026-01-01T02:00:01Z") == 0.0


def test_without_a_time_the_resync_decides() -> None:
    plan = withhold(_plan(()), _changes("spec.a"), [HeldField("spec.a", Hold.OSCILLATING)])

    assert seconds_until_retry(plan, "2026-01-01T00:00:00Z") is None
    assert seconds_until_retry(_plan(()), "2026-01-01T00:00:00Z") is None
