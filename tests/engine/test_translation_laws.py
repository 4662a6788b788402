"""For all programs: what follows a move is what would have followed without it, call by call."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.kind import Reconciliation
from setpoint.engine.management import CookieLocation
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import SetpointError
from setpoint.stores.sqlite.store import open_sqlite
from setpoint.testing.faults import CallFault
from tests.engine.clock import FakeClock
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.transfer_harness import TransferHarness, moved, new_store
from tests.stores.scratch import scratch_folder

pytestmark = [pytest.mark.laws, pytest.mark.slow]

NAMES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Doing:
    """Something that is done in a house, and what it comes to."""

    verb: Callable[[TransferHarness], Awaitable[Any]]
    description: str

    def __repr__(self) -> str:
        return self.description


def _silent(verb: Callable[[TransferHarness], Awaitable[object]]) -> Callable[[TransferHarness], Awaitable[None]]:
    """What it comes to may differ between stores, and does not count."""

    async def silent(harness: TransferHarness) -> None:
        await verb(harness)

    return silent


def apply(name: str, spec: dict[str, Any], metadata: dict[str, Any]) -> Doing:
    full_spec = {**spec, "parentRef": "a"} if name == "b" else spec
    return Doing(lambda harness: harness.apply(name, full_spec, **metadata), f"apply {name} {full_spec} {metadata}")


def step(name: str) -> Doing:
    async def verb(harness: TransferHarness) -> Any:
        return _result_of(await harness.step(name))

    return Doing(verb, f"step {name}")


def rotate(text: str) -> Doing:
    return Doing(lambda harness: harness.secret(text), f"rotate to {text}")


def drift(name: str, member: str, value: Any) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        if name in harness.service.objects:
            harness.service.objects[name][member] = value

    return Doing(verb, f"drift {name}.{member} to {value}")


def oscillate(name: str, times: int) -> Doing:
    async def verb(harness: TransferHarness) -> Any:
        results = []
        for _ in range(times):
            await drift(name, "size", 9).verb(harness)
            results.append(_result_of(await harness.step(name)))
        return results

    return Doing(verb, f"{name}.size oscillates {times} times")


def insist(member: str, value: Any) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        harness.service.rewrites = {} if value is None else {member: value}

    return Doing(verb, f"the service insists on {member} {value}")


def fail(trouble: CallFault, verb_: str) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        harness.service.faults[:] = [Fault(trouble, [verb_], 1)]

    return Doing(verb, f"the next {verb_}: {trouble}")


def work_slowly(*, slow: bool) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        harness.service.slow = slow
        if not slow:
            harness.service.finish()

    return Doing(verb, f"slow: {slow}")


def wait(seconds: float) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        harness.clock.seconds += seconds

    return Doing(verb, f"{seconds} s later")


def request(text: str) -> Doing:
    async def verb(harness: TransferHarness) -> None:
        await harness.store.annotate(await harness.resource("a"), {RECONCILE_REQUESTED: text})

    return Doing(verb, f"request {text}")


def delete() -> Doing:
    return Doing(_silent(lambda harness: harness.store.delete(gadget_ref("b"))), "delete b")


def _result_of(outcome: StepOutcome) -> Any:
    match outcome:
        case Settled(plan, ready):
            return plan.to_data(), ready
        case Stopped(error):
            return type(error).__name__, str(error)
        case gone:
            return gone


names = st.sampled_from(NAMES)
specs = st.fixed_dictionaries(
    {"size": st.sampled_from((1, 2))},
    optional={
        "note": st.just("ours"),
        "passwordRef": st.just("s"),
        "password": st.sampled_from(("own", "other")),
        "zone": st.just("z"),
        "ports": st.just([{"name": "p", "number": 1}]),
    },
)
metadatas = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.just({"team": "web"}),
        "annotations": st.sampled_from(
            (
                {"setpoint.dev/management": "observe"},
                {"setpoint.dev/management": "paused"},
                {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"},
                {"test.setpoint.dev/flavour": "sweet", "unknown": "x"},
            )
        ),
    },
)
steps = st.builds(step, names)
doings = st.one_of(
    steps,
    steps,
    steps,
    st.builds(apply, names, specs, metadatas),
    st.builds(rotate, st.sampled_from(("first", "second"))),
    st.builds(drift, names, st.sampled_from(("size", "mode", "note")), st.sampled_from((8, 9))).filter(
        lambda one: "size" in one.description
    ),
    st.builds(drift, names, st.sampled_from(("mode", "note")), st.sampled_from(("theirs", "other"))),
    st.builds(oscillate, names, st.sampled_from((1, 3, 4))),
    st.builds(insist, st.just("size"), st.sampled_from((None, 7))),
    st.builds(insist, st.just("mode"), st.sampled_from((None, "the service's"))),
    st.builds(fail, st.sampled_from(list(CallFault)), st.sampled_from(("get", "create", "update", "delete"))),
    st.builds(work_slowly, slow=st.booleans()),
    st.builds(wait, st.sampled_from((60.0, 7200.0))),
    st.builds(request, st.sampled_from(("one", "two"))),
    st.builds(delete),
)
programs = st.lists(doings, max_size=14)
settings_of_a_house = st.tuples(st.sampled_from(list(Reconciliation)), st.sampled_from(list(CookieLocation)))
# A Secret is exported with the resources that refer to it: `c` does to the end.
FIRST = [
    rotate("first"),
    apply("a", {"size": 1}, {}),
    apply("b", {"size": 1, "passwordRef": "s"}, {}),
    apply("c", {"passwordRef": "s"}, {}),
    step("a"),
    step("b"),
]
Setting = tuple[Reconciliation, CookieLocation]


async def lived_in(program: list[Doing], setting: Setting) -> TransferHarness:
    """A house in which all of that has been done."""
    clock = FakeClock()
    reconciliation, cookies = setting
    harness = TransferHarness(new_store(clock), clock, reconciliation=reconciliation, cookies=cookies)
    for doing in [*FIRST, *program]:
        await done(doing, harness)
    return harness


async def what_follows(harness: TransferHarness, future: list[Doing]) -> Any:
    """Whatever can be seen from outside of what is done from here on."""
    harness.service.calls.clear()
    plans = await harness.plans()
    results = [await done(doing, harness) for doing in future]
    return plans, results, harness.service.calls, harness.service.objects, harness.service.passwords


async def done(doing: Doing, harness: TransferHarness) -> Any:
    """What it came to, or was refused as."""
    try:
        return await doing.verb(harness)
    except SetpointError as error:
        return type(error).__name__


@given(programs, st.lists(doings, max_size=8), settings_of_a_house)
def test_what_follows_a_move_is_what_would_have_followed(
    program: list[Doing], future: list[Doing], setting: Setting
) -> None:
    async def scenario() -> tuple[Any, Any]:
        stayed, left = await lived_in(program, setting), await lived_in(program, setting)
        new = await moved(left)
        return await what_follows(new, future), await what_follows(stayed, future)

    there, here = asyncio.run(scenario())

    assert there == here


@given(programs, st.lists(doings, max_size=4), settings_of_a_house)
def test_what_follows_a_move_through_a_file_and_back_is_what_would_have_followed(
    program: list[Doing], future: list[Doing], setting: Setting
) -> None:
    async def scenario(file: Path) -> tuple[Any, Any]:
        stayed, left = await lived_in(program, setting), await lived_in(program, setting)
        numbers = count(1)
        store = await open_sqlite(file, left.clock, lambda: f"file-{next(numbers)}")
        back = await moved(await moved(left, store))
        await store.close()
        return await what_follows(back, future), await what_follows(stayed, future)

    with scratch_folder() as folder:
        there, here = asyncio.run(scenario(folder / "state.db"))

    assert there == here
