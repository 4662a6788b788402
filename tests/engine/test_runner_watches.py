"""Watches while a run waits; and what holds a deletion up."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.kind import Location
from setpoint.errors import StillWaiting, WaitTimedOut
from setpoint.library.outcome import ExitCode, summarize_outcome
from tests.engine.either_way import By, apply_pair, either_way, ends, time_now
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS, RunnerHarness, play
from tests.engine.things import ThingKind, thing_ref

# --- Watches ----------------------------------------------------------------------------------------------------------


def test_a_change_is_watched_and_not_polled() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", waitFor={"field": ADDRESS, "timeout": "1h"})
        harness.after(1_000.5, lambda: harness.service.set_status("z", address="10.0.0.1"))

        await harness.run("z", timeout=None)

        assert time_now() == 1_000.5

    play(scenario)


def test_many_that_wait_share_one_line_and_it_is_closed_in_the_end() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        names = [f"t{at}" for at in range(50)]
        lines: list[int] = []
        for at, name in enumerate(names):
            await harness.apply(name, waitFor=FOR_ADDRESS)
            harness.after(30, lambda name=name: harness.service.set_status(name, address="10.0.0.1"))  # type: ignore[misc]
            harness.after(at, lambda: lines.append(harness.service.watches))

        outcomes = await harness.run(*names)

        assert set(ends(outcomes).values()) == {"Settled"}
        assert max(lines) == 1
        assert harness.service.watches == 0

    play(scenario)


def test_an_object_that_changes_all_the_time_is_observed_ten_times_a_second_at_most() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", waitFor={"field": ADDRESS, "timeout": "10s"})
        for beat in range(10_000):
            harness.after(0.001 * beat + 0.5, lambda beat=beat: harness.service.set_status("z", beat=beat))  # type: ignore[misc]

        await harness.run("z")

        assert len(harness.service.calls) < 120

    play(scenario)


class _BrokenWatch(ThingKind):
    """A kind with a watch that breaks at once."""

    async def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        if str(topic):
            raise ZeroDivisionError
        yield None


def test_a_watch_that_breaks_leaves_the_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        monkeypatch.setattr(ThingKind, "changes", _BrokenWatch.changes)
        await harness.apply("z", waitFor=FOR_ADDRESS)
        harness.after(20, lambda: harness.service.set_status("z", address="10.0.0.1"))

        outcomes = await harness.run("z")

        assert ends(outcomes) == {"z": "Settled"}
        assert len(harness.service.calls) < 15
        assert 20 <= time_now() < 36

    play(scenario)


def test_every_outcome_is_reported_in_order() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await apply_pair(harness)
        harness.after(2, lambda: harness.service.set_status("z", address="10.0.0.1"))

        await harness.run("a", "z")

        outcomes = [(name, ends({name: outcome})[name]) for name, outcome in harness.reported]
        assert outcomes[0] == ("z", "StillWaiting")
        assert outcomes[1] == ("a", "Blocked")
        assert outcomes[-2:] == [("z", "Settled"), ("a", "Settled")]

    play(scenario)


# --- Deletions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (StillWaiting("held by finalizer f", 10), "held by finalizer f", ExitCode.WAITING),
        (WaitTimedOut("held by finalizer f for 5m"), "held by finalizer f for 5m", ExitCode.WAITING),
    ],
)
@either_way
def test_what_holds_a_deletion_is_reported(
    by: By, error: StillWaiting | WaitTimedOut, message: str, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def delete(*_: Any) -> None:
        raise error

    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor={"field": ADDRESS, "timeout": "1s"})
        await harness.run("a")
        monkeypatch.setattr(ThingKind, "delete", delete)
        await harness.store.delete(thing_ref("a"))

        outcomes = await by(harness)("a", timeout=20)

        assert ends(outcomes) == {"a": type(error).__name__}
        assert (summarize_outcome(outcomes["a"]).detail, summarize_outcome(outcomes["a"]).code) == (message, code)
        assert message in (await harness.ready("a"))[2]

    play(scenario)
