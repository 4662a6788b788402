"""Another writer that changes a field, and the oscillation that follows."""

from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import StepOutcome
from tests.engine.step_harness import StepHarness

MINUTE, HOUR = 60, 3600


async def drift_and_step(harness: StepHarness, times: int = 1) -> StepOutcome:
    """Another writer changes the field so many times, and a step or more follows each time."""
    for _ in range(times - 1):
        await drift_and_step(harness)
    harness.fixture.drift()
    return await harness.go_on()


async def oscillation_message(harness: StepHarness) -> str | None:
    """The message of the condition Contested; None when there is none."""
    condition = (await harness.conditions()).get("Contested")
    assert condition is None or (condition["status"], condition["reason"]) == ("True", "Oscillation")
    return None if condition is None else str(condition["message"])


async def ready_now(harness: StepHarness) -> tuple[str, str, str]:
    condition = (await harness.conditions())["Ready"]
    return condition["status"], condition["reason"], condition["message"]


async def counts(harness: StepHarness) -> list[int]:
    """How often each oscillating field was reverted."""
    return [oscillation.count for oscillation in StoredState.of(await harness.resource()).oscillations.fields]


def updates(harness: StepHarness) -> int:
    return harness.fixture.writes.count("update")
