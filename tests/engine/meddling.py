"""Somebody else who changes a field, and what can be seen of the contest that follows."""

from setpoint.engine.context import StepOutcome
from setpoint.engine.state import StoredState
from tests.engine.bench import Bench

MINUTE, HOUR = 60, 3600


async def meddle(bench: Bench, times: int = 1) -> StepOutcome:
    """Somebody changes the field so many times, and a step or more follows each time."""
    for _ in range(times - 1):
        await meddle(bench)
    bench.stand.drift()
    return await bench.go_on()


async def contested(bench: Bench) -> str | None:
    """What the condition Contested says; None when there is none."""
    condition = (await bench.conditions()).get("Contested")
    assert condition is None or (condition["status"], condition["reason"]) == ("True", "Oscillation")
    return None if condition is None else str(condition["message"])


async def ready_now(bench: Bench) -> tuple[str, str, str]:
    condition = (await bench.conditions())["Ready"]
    return condition["status"], condition["reason"], condition["message"]


async def counts(bench: Bench) -> list[int]:
    """How often each field on record was put back."""
    return [contest.count for contest in StoredState.of(await bench.resource()).oscillations.fields]


def updates(bench: Bench) -> int:
    return bench.stand.writes.count("update")
