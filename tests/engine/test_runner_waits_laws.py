"""For all graphs of values and orders: what can be done is done once, in order; what hangs on the rest is blocked."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.wait.outputs import Known
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import Blocked, DependencyNotReady, WaitFailed, WaitTimedOut
from simulation.virtual_time import run
from tests.engine.runner_harness import ADDRESS, RunnerHarness
from tests.engine.things import value_of

pytestmark = [pytest.mark.laws, pytest.mark.slow]

AFTER = "setpoint.dev/depends-on"
TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class Node:
    """One of many things: which value it takes, which thing it comes after, and when its own address arrives."""

    source: int | None
    after: tuple[int, ...]
    # None: it never does.
    arrives: float | None
    fails: bool

    @property
    def dependencies(self) -> set[int]:
        return {*self.after} | ({self.source} if self.source is not None else set())


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Each needs some of those before it."""
    size = draw(st.integers(1, 7))
    nodes = []
    for at in range(size):
        source = draw(st.none() | st.sampled_from(range(at))) if at else None
        after = draw(st.lists(st.sampled_from(range(at)), max_size=2, unique=True)) if at else []
        arrives = draw(st.none() | st.sampled_from((0.0, 0.3, 1.0, 7.0, 20.0)))
        nodes.append(Node(source, tuple(after), arrives, draw(st.booleans()) and arrives is None))
    return nodes


def _played(nodes: Mapping[str, Node]) -> RunnerHarness:
    """A shore on which each object gets its address, or fails, some time after it was made."""
    harness = RunnerHarness()
    failed = {"type": "Failed", "status": "True", "reason": "Broken", "message": "it broke"}

    def made(name: str) -> None:
        node = nodes[name]
        if node.arrives is not None:
            harness.after(node.arrives, lambda: harness.service.set_status(name, address=f"of {name}"))
        elif node.fails:
            harness.service.objects[name] |= {"apiVersion": "batch/v1", "kind": "Job"}
            harness.after(1, lambda: harness.service.set_status(name, conditions=[failed]))

    harness.service.made = made
    return harness


def _undone(nodes: list[Node]) -> tuple[set[int], set[int]]:
    """Those that are made and wait in vain, and those that hang on them."""
    vain: set[int] = set()
    blocked: set[int] = set()
    for at, node in enumerate(nodes):
        if node.dependencies & (vain | blocked):
            blocked.add(at)
        elif node.arrives is None:
            vain.add(at)
    return vain, blocked


@given(graphs(), st.permutations(range(7)), st.booleans())
def test_what_can_be_done_is_done_once_and_in_order(nodes: list[Node], order: list[int], follows: bool) -> None:
    # The order of names must not matter.
    called = [f"t{order[at]}" for at in range(len(nodes))]

    async def scenario() -> None:
        harness = _played(dict(zip(called, nodes, strict=True)))
        for name, node in zip(called, nodes, strict=True):
            wanted = {"size": 1} if node.source is None else {"host": value_of(called[node.source], ADDRESS)}
            annotations = {AFTER: ",".join(f"Thing/{called[at]}" for at in node.after)}
            await harness.apply(name, wanted, annotations=annotations, waitFor={"field": ADDRESS, "timeout": TIMEOUT})

        outcomes = await (harness.follow if follows else harness.run)(*called)

        vain, blocked = _undone(nodes)
        for at, (name, node) in enumerate(zip(called, nodes, strict=True)):
            outcome = outcomes[name]
            if at in blocked:
                assert isinstance(outcome, Stopped)
                assert isinstance(outcome.error, Blocked | DependencyNotReady)
                assert name not in harness.service.objects
            elif at in vain:
                assert isinstance(outcome, Stopped)
                assert isinstance(outcome.error, WaitFailed if node.fails else WaitTimedOut)
            else:
                assert isinstance(outcome, Settled)
                assert await harness.output(name) == Known({"status": {"address": f"of {name}"}})
        made = [name for verb, name in harness.service.writes if verb == "create"]
        assert sorted(made) == sorted(called[at] for at in range(len(nodes)) if at not in blocked)
        assert harness.service.writes == [("create", name) for name in made]
        for name in made:
            node = nodes[called.index(name)]
            assert all(made.index(called[other]) < made.index(name) for other in node.dependencies)
            if node.source is not None:
                assert harness.live(name) == {"host": f"of {called[node.source]}"}

    run(scenario())


edges = st.dictionaries(st.integers(0, 5), st.integers(0, 5), min_size=1, max_size=6)


@given(edges, st.lists(st.integers(0, 5), min_size=30, max_size=30))
def test_the_statuses_of_resources_with_any_dependencies_settle(edges: dict[int, int], steps: list[int]) -> None:
    async def scenario() -> None:
        harness = RunnerHarness()
        for at, other in edges.items():
            await harness.apply(f"t{at}", annotations={AFTER: f"Thing/t{other}"})
        names = [f"t{at}" for at in edges]
        for at in steps:
            if at in edges:
                await harness.step(f"t{at}")
        for _ in range(8):
            for name in names:
                await harness.step(name)

        assert await harness.is_settled(names)

    run(scenario())
