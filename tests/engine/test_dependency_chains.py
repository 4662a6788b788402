"""Dependencies between resources: chains, order, and cycles."""

import pytest

from setpoint.engine.dependency_graph import reconcile_order
from setpoint.engine.references import dependencies_of
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import (
    DependencyCycle,
    DependencyNotReady,
    ManifestInvalid,
)
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS, NO_STATUS, T0, RunnerHarness, error_of, play
from tests.engine.things import GROUP, value_of

BLOCKED_BY_A = f"waiting for status.address of Thing default/a, unknown since {T0}: {NO_STATUS}"
AFTER = "setpoint.dev/depends-on"


async def _source(harness: RunnerHarness, address: str | None = "10.0.0.1") -> None:
    """The thing `a`, with this address."""
    await harness.apply("a", waitFor=FOR_ADDRESS)
    await harness.step("a")
    harness.service.set_status("a", address=address)
    await harness.step("a")


# --- Chains -----------------------------------------------------------------------------------------------------------


def test_a_chain_names_every_link_and_what_is_behind_it() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.apply("b", {"host": value_of("a", ADDRESS)}, waitFor=FOR_ADDRESS)
        await harness.apply("c", {"host": value_of("b", ADDRESS)})
        for name in "abc":
            await harness.step(name)

        message = (
            f"waiting for status.address of Thing default/b: it is not ready; it is blocked itself: {BLOCKED_BY_A}"
        )
        assert await harness.ready("c") == ("False", "Blocked", message)

    play(scenario)


def test_the_first_links_of_a_long_chain_are_reported() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("t0", waitFor=FOR_ADDRESS)
        await harness.step("t0")
        for at in range(1, 30):
            await harness.apply(f"t{at}", {"host": value_of(f"t{at - 1}", ADDRESS)}, waitFor=FOR_ADDRESS)
            await harness.step(f"t{at}")

        links = (await harness.ready("t29"))[2].split("; it is blocked itself: ")

        waited_for = [f"waiting for status.address of Thing default/t{at}: it is not ready" for at in range(28, 20, -1)]
        assert links == [*waited_for, "…"]

    play(scenario)


@pytest.mark.parametrize("members", [1, 2, 3, 7, 8, 9, 20])
def test_the_messages_of_resources_that_wait_for_each_other_settle(members: int) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        names = [f"t{at}" for at in range(members)]
        for at, name in enumerate(names):
            await harness.apply(name, annotations={AFTER: f"Thing/t{(at + 1) % members}"})
        for _ in range(2 * members):
            for name in names:
                await harness.step(name)

        assert await harness.is_settled(names)
        assert max([len((await harness.ready(name))[2]) for name in names]) < 700

    play(scenario)


# --- Order ------------------------------------------------------------------------------------------------------------


def test_an_order_only_dependant_waits_and_takes_no_value() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.apply("b", annotations={AFTER: "Thing/a"})
        await harness.step("a")

        assert isinstance(error_of(await harness.step("b")), DependencyNotReady)

        harness.service.set_status("a", address="10.0.0.1")
        await harness.step("a")
        assert isinstance(await harness.step("b"), Settled)
        assert harness.live("b") == {"size": 1}

    play(scenario)


def test_an_order_only_dependency_is_no_part_of_the_desired_state() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b")
        await harness.step("b")
        cookie = (await harness.resource("b")).status["lastModifiedCookie"]
        await harness.apply("b", annotations={AFTER: "Thing/a"})

        assert isinstance(await harness.step("b"), Settled)
        assert (await harness.resource("b")).status["lastModifiedCookie"] == cookie
        assert [call for call in harness.service.calls if call == ("dry run", "b")] == [("dry run", "b")] * 2

    play(scenario)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Thing/a", ["Thing default/a"]),
        ("Thing/a,Thing/b", ["Thing default/a", "Thing default/b"]),
        (f" Thing.{GROUP}/other/a \n Thing/b,Thing/b ", ["Thing other/a", "Thing default/b"]),
        ("", []),
    ],
)
def test_a_dependency_is_named_by_kind_and_name(text: str, targets: list[str]) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", annotations={AFTER: text})

        dependencies = dependencies_of(await harness.resource("z"), harness.engine.kinds)

        assert [str(dependency.target) for dependency in dependencies if not hasattr(dependency, "secret")] == targets

    play(scenario)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "'a' names no resource: write KIND/NAME or KIND/NAMESPACE/NAME"),
        ("Thing/", "'Thing/' names no resource"),
        ("Thing/a/b/c", "'Thing/a/b/c' names no resource"),
        ("Gizmo/a", "no kind 'Gizmo' is known here; there is Thing"),
    ],
)
def test_an_invalid_dependency_is_reported(text: str, message: str) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("z", annotations={AFTER: text})

        error = error_of(await harness.step("z"))

        assert isinstance(error, ManifestInvalid)
        assert message in str(error)

    play(scenario)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"a": ("value", "b"), "b": ("value", "a")}, "Thing default/a needs Thing default/b needs Thing default/a"),
        ({"a": ("after", "b"), "b": ("after", "a")}, "Thing default/a needs Thing default/b needs Thing default/a"),
        ({"a": ("value", "b"), "b": ("after", "a")}, "Thing default/a needs Thing default/b needs Thing default/a"),
        ({"a": ("after", "a")}, "Thing default/a needs Thing default/a"),
    ],
)
def test_a_cycle_is_named_whatever_its_edges(edges: dict[str, tuple[str, str]], message: str) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        dependencies = {}
        for name, (sort, other) in edges.items():
            wanted = {"host": value_of(other, ADDRESS)} if sort == "value" else {}
            await harness.apply(name, wanted, annotations={AFTER: f"Thing/{other}"} if sort == "after" else {})
            resource = await harness.resource(name)
            dependencies[resource.ref] = dependencies_of(resource, harness.engine.kinds)

        with pytest.raises(DependencyCycle) as caught:
            reconcile_order(dependencies)

        turned = " needs ".join([*message.split(" needs ")[1:], message.split(" needs ")[1]])
        assert str(caught.value).split(":")[0] in (message, turned)

    play(scenario)
