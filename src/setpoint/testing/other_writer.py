"""Another writer that changes a field, and the oscillation that follows."""

from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.testing.harness import ContractHarness

MINUTE, HOUR = 60, 3600


async def drift_and_step(harness: ContractHarness, times: int = 1) -> StepOutcome:
    """Another writer changes the field so many times, and a step or more follows each time."""
    for _ in range(times - 1):
        await drift_and_step(harness)
    await harness.drift()
    return await harness.go_on()


async def oscillation_message(harness: ContractHarness) -> str | None:
    """The message of the condition Contested; None when there is none."""
    condition = (await harness.conditions()).get("Contested")
    assert condition is None or (condition["status"], condition["reason"]) == ("True", "Oscillation")
    return None if condition is None else str(condition["message"])


async def ready_now(harness: ContractHarness) -> tuple[str, str, str]:
    condition = (await harness.conditions())["Ready"]
    return condition["status"], condition["reason"], condition["message"]


async def counts(harness: ContractHarness) -> list[int]:
    """How often each oscillating field was reverted."""
    return [oscillation.count for oscillation in StoredState.of(await harness.resource()).oscillations.fields]


def updates(harness: ContractHarness) -> int:
    return harness.writes.count("update")
