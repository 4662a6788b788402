"""One `apply` of things, by steps of one's own and by those of another process: for claims that hold for both."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.library.outcome import ExitCode, summarize_outcome
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS, RunnerHarness
from tests.engine.things import value_of

Apply = Callable[..., Awaitable[dict[str, StepOutcome]]]
By = Callable[[RunnerHarness], Apply]


def _run(harness: RunnerHarness) -> Apply:
    return harness.run


def _follow(harness: RunnerHarness) -> Apply:
    return harness.follow


either_way = pytest.mark.parametrize("by", [_run, _follow], ids=["own steps", "another's steps"])


def ends(outcomes: dict[str, StepOutcome]) -> dict[str, str]:
    """How each ended, in a word."""
    return {
        name: type(outcome.error).__name__ if isinstance(outcome, Stopped) else type(outcome).__name__
        for name, outcome in sorted(outcomes.items())
    }


def codes(outcomes: dict[str, StepOutcome]) -> dict[str, ExitCode]:
    """What a command would exit with because of each."""
    return {name: summarize_outcome(outcome).code for name, outcome in sorted(outcomes.items())}


def time_now() -> float:
    """The seconds since the world began."""
    return asyncio.get_running_loop().time()


async def apply_pair(harness: RunnerHarness) -> None:
    """The thing `z` that waits for its address, and `a` that needs it."""
    await harness.apply("a", {"host": value_of("z", ADDRESS)})
    await harness.apply("z", waitFor=FOR_ADDRESS)
