"""For all that can happen to a source and its dependant: what is offered is what is there, and nothing else is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.wait.outputs import Known, Null, OutputState, Unknown
from setpoint.engine.context import Settled, StepOutcome, Stopped
from setpoint.errors import Blocked, RemoteUnavailable, StillWaiting, WaitTimedOut
from tests.engine.runner_harness import ADDRESS, RunnerHarness
from tests.engine.things import value_of
from tests.runtime.virtual_time import run

pytestmark = pytest.mark.laws

TIMEOUT = 30


@dataclass(frozen=True, slots=True)
class Doing:
    """Something that happens, and how it reads in a report."""

    verb: Callable[["Story"], Awaitable[None]]
    told: str

    def __repr__(self) -> str:
        return self.told


@dataclass(slots=True)
class Story:
    """What has happened so far, as an observer of everything knows it."""

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
    async def verb(story: Story) -> None:
        if story.live is not None:
            story.harness.service.set_status("a", address=address)
            story.addresses |= {address} if address else set()

    return Doing(verb, f"the address is {address}")


def _beats(beat: int) -> Doing:
    async def verb(story: Story) -> None:
        if story.live is not None:
            story.harness.service.set_status("a", beat=beat)

    return Doing(verb, f"beat {beat}")


def _sleeps(seconds: int) -> Doing:
    return Doing(lambda _: asyncio.sleep(seconds), f"{seconds} s pass")


def _is_down(why: str) -> Doing:
    async def verb(story: Story) -> None:
        story.harness.service.down = why

    return Doing(verb, f"outage {why!r}")


async def _author_changes(story: Story) -> None:
    story.size += 1
    await story.harness.apply("a", {"size": story.size}, waitFor={"field": ADDRESS, "timeout": TIMEOUT})


async def _step_of_source(story: Story) -> None:
    outcome = await story.harness.step("a")

    after = await story.harness.output("a")
    _offers_what_is_there(story, after)
    _is_unknown_since_it_was_not_known(story, after)
    _keeps_to_its_time(story, outcome, after)
    await _another_step_writes_nothing(story, "a")


async def _step_of_dependant(story: Story) -> None:
    source, host = await _output(story), _host(story)
    outcome = await story.harness.step("b")

    if isinstance(outcome, Settled):
        assert isinstance(source, Known)
        assert source == Known({"status": {"address": _host(story)}})
        assert _host(story) in story.addresses
    else:
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, Blocked | RemoteUnavailable), outcome
        # Whatever came in between, nothing was made of it.
        assert _host(story) == host
    await _another_step_writes_nothing(story, "b")


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


def _offers_what_is_there(story: Story, after: OutputState) -> None:
    if story.harness.service.down or story.address is None:
        assert isinstance(after, Unknown)
    else:
        assert after == Known({"status": {"address": story.address}})


def _is_unknown_since_it_was_not_known(story: Story, after: OutputState) -> None:
    if not isinstance(after, Unknown):
        story.unknown_since = None
        return
    if story.unknown_since is None:
        story.unknown_since = _now()
    assert after.since == _time(story.unknown_since)


def _keeps_to_its_time(story: Story, outcome: StepOutcome, after: OutputState) -> None:
    if story.harness.service.down:
        return
    live = story.live
    assert live is not None
    is_new, story.generation = live["metadata"]["generation"] != story.generation, live["metadata"]["generation"]
    if isinstance(after, Known):
        story.begun = None
        assert isinstance(outcome, Settled)
        return
    if story.begun is None or is_new:
        story.begun = _now()
    assert isinstance(outcome, Stopped)
    left = TIMEOUT - (_now() - story.begun)
    assert isinstance(outcome.error, StillWaiting if left > 0 else WaitTimedOut)
    if isinstance(outcome.error, StillWaiting):
        assert outcome.error.left == left


async def _another_step_writes_nothing(story: Story, name: str) -> None:
    before = await story.harness.revision(name)
    await story.harness.step(name)
    assert await story.harness.revision(name) == before


async def _output(story: Story) -> OutputState:
    status = (await story.harness.resource("a")).status
    return await story.harness.output("a") if "output" in status else Null()


def _host(story: Story) -> str | None:
    found = story.harness.service.objects.get("b")
    return None if found is None else str(found["spec"]["host"])


@given(st.lists(doings, max_size=25), st.booleans())
def test_the_output_is_the_live_value_as_long_as_it_exists(doings: list[Doing], goes_on: bool) -> None:
    async def scenario() -> None:
        story = Story()
        if goes_on:
            story.harness.run_continuously()
        await story.harness.apply("a", {"size": 1}, waitFor={"field": ADDRESS, "timeout": TIMEOUT})
        await story.harness.apply("b", {"host": value_of("a", ADDRESS)})
        for doing in (Doing(_step_of_source, "the first step"), *doings):
            await doing.verb(story)

    run(scenario())
