"""For all that can happen to a source and its dependant: what is offered is what is there, and nothing else is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.wait.outputs import Known, Null, OutputState, Unknown
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import Blocked, RemoteUnavailable, StillWaiting, WaitTimedOut
from simulation.virtual_time import run
from tests.engine.runner_harness import ADDRESS, RunnerHarness
from tests.engine.things import value_of

pytestmark = pytest.mark.laws

TIMEOUT = 30


@dataclass(frozen=True, slots=True)
class Doing:
    """Something that happens, and how it reads in a report."""

    verb: Callable[["History"], Awaitable[None]]
    description: str

    def __repr__(self) -> str:
        return self.description


@dataclass(slots=True)
class History:
    """The events of a run so far, with what only an observer of every event knows."""

    harness: RunnerHarness = field(default_factory=RunnerHarness)
    size: int = 1
    # Every address that the source ever had, and those that were offered.
    addresses: set[str] = field(default_factory=set)
    # When the output became unknown, and when the wait under way began; None when there is none.
    unknown_since: int | None = None
    begun: int | None = None
    # The generation that is waited for, or was waited for last.
    generation: int = 0

    @property
    def live(self) -> dict[str, Any] | None:
        return self.harness.service.objects.get("a")

    @property
    def address(self) -> str | None:
        found: str | None = (self.live or {}).get("status", {}).get("address")
        return found


def _now() -> int:
    return int(asyncio.get_running_loop().time())


def _time(seconds: int) -> str:
    return f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


# --- What may happen --------------------------------------------------------------------------------------------------


def _gets(address: str | None) -> Doing:
    async def verb(history: History) -> None:
        if history.live is not None:
            history.harness.service.set_status("a", address=address)
            history.addresses |= {address} if address else set()

    return Doing(verb, f"the address is {address}")


def _beats(beat: int) -> Doing:
    async def verb(history: History) -> None:
        if history.live is not None:
            history.harness.service.set_status("a", beat=beat)

    return Doing(verb, f"beat {beat}")


def _sleeps(seconds: int) -> Doing:
    return Doing(lambda _: asyncio.sleep(seconds), f"{seconds} s pass")


def _is_down(why: str) -> Doing:
    async def verb(history: History) -> None:
        history.harness.service.down = why

    return Doing(verb, f"outage {why!r}")


async def _author_changes(history: History) -> None:
    history.size += 1
    await history.harness.apply("a", {"size": history.size}, waitFor={"field": ADDRESS, "timeout": TIMEOUT})


async def _step_of_source(history: History) -> None:
    outcome = await history.harness.step("a")

    after = await history.harness.output("a")
    _offers_what_is_there(history, after)
    _is_unknown_since_it_was_not_known(history, after)
    _keeps_to_its_time(history, outcome, after)
    await _another_step_writes_nothing(history, "a")


async def _step_of_dependant(history: History) -> None:
    source, host = await _output(history), _host(history)
    outcome = await history.harness.step("b")

    if isinstance(outcome, Settled):
        assert isinstance(source, Known)
        assert source == Known({"status": {"address": _host(history)}})
        assert _host(history) in history.addresses
    else:
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, Blocked | RemoteUnavailable), outcome
        # Whatever came in between, nothing was made of it.
        assert _host(history) == host
    await _another_step_writes_nothing(history, "b")


doings: st.SearchStrategy[Doing] = st.one_of(
    st.sampled_from((None, "10.0.0.1", "10.0.0.2")).map(_gets),
    st.integers(0, 3).map(_beats),
    st.sampled_from((1, 4, 7, 29, 31)).map(_sleeps),
    st.sampled_from(("", "", "no route", "reset")).map(_is_down),
    st.just(Doing(_author_changes, "the author changes the source")),
    st.just(Doing(_step_of_source, "a step of the source")),
    st.just(Doing(_step_of_source, "a step of the source")),
    st.just(Doing(_step_of_dependant, "a step of the dependant")),
)


# --- What has to hold -------------------------------------------------------------------------------------------------


def _offers_what_is_there(history: History, after: OutputState) -> None:
    if history.harness.service.down or history.address is None:
        assert isinstance(after, Unknown)
    else:
        assert after == Known({"status": {"address": history.address}})


def _is_unknown_since_it_was_not_known(history: History, after: OutputState) -> None:
    if not isinstance(after, Unknown):
        history.unknown_since = None
        return
    if history.unknown_since is None:
        history.unknown_since = _now()
    assert after.since == _time(history.unknown_since)


def _keeps_to_its_time(history: History, outcome: StepOutcome, after: OutputState) -> None:
    if history.harness.service.down:
        return
    live = history.live
    assert live is not None
    is_new, history.generation = live["metadata"]["generation"] != history.generation, live["metadata"]["generation"]
    if isinstance(after, Known):
        history.begun = None
        assert isinstance(outcome, Settled)
        return
    if history.begun is None or is_new:
        history.begun = _now()
    assert isinstance(outcome, Stopped)
    left = TIMEOUT - (_now() - history.begun)
    assert isinstance(outcome.error, StillWaiting if left > 0 else WaitTimedOut)
    if isinstance(outcome.error, StillWaiting):
        assert outcome.error.left == left


async def _another_step_writes_nothing(history: History, name: str) -> None:
    before = await history.harness.revision(name)
    await history.harness.step(name)
    assert await history.harness.revision(name) == before


async def _output(history: History) -> OutputState:
    status = (await history.harness.resource("a")).status
    return await history.harness.output("a") if "output" in status else Null()


def _host(history: History) -> str | None:
    found = history.harness.service.objects.get("b")
    return None if found is None else str(found["spec"]["host"])


@given(st.lists(doings, max_size=25), st.booleans())
def test_the_output_is_the_live_value_as_long_as_it_exists(doings: list[Doing], runs_continuously: bool) -> None:
    async def scenario() -> None:
        history = History()
        if runs_continuously:
            history.harness.run_continuously()
        await history.harness.apply("a", {"size": 1}, waitFor={"field": ADDRESS, "timeout": TIMEOUT})
        await history.harness.apply("b", {"host": value_of("a", ADDRESS)})
        for doing in (Doing(_step_of_source, "the first step"), *doings):
            await doing.verb(history)

    run(scenario())
