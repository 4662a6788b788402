"""When a resource is reconciled because of what it depends on, or of what depends on it."""

import pytest

from setpoint.engine.management import MANAGEMENT
from setpoint.errors import RemoteRefused
from tests.engine.gadgets import gadget_ref
from tests.runtime.manager_harness import ManagerHarness, play


def test_dependants_are_reconciled_as_soon_as_their_dependency_is_ready() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        async def slow_parent(name: str) -> None:
            await harness.clock.sleep(7 if name == "parent" else 0)

        harness.kind.before = slow_parent
        await harness.apply("child", {"size": 1, "parentRef": "parent"})
        await harness.clock.sleep(6)
        assert (await harness.status("child"))["conditions"][0]["reason"] == "DependencyNotFound"
        await harness.apply("parent")

        at = await harness.settled("child")

        # Two observations of the parent, seven seconds each, and none of the child before them.
        assert 20 <= at < 21
        assert harness.observations_of("child")[0] >= 20

    play(scenario)


@pytest.mark.parametrize(
    ("seconds", "reasons"), [(1, ["Created"]), (7, ["Created"]), (9, ["DependencyNotReady", "Created"])]
)
def test_a_new_resource_is_not_reported_as_blocked_by_what_gets_ready_soon(seconds: float, reasons: list[str]) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        async def slow_parent(name: str) -> None:
            await harness.clock.sleep(seconds if name == "parent" else 0)

        harness.kind.before = slow_parent
        await harness.apply("child", {"size": 1, "parentRef": "parent"})
        await harness.apply("parent")

        assert 2 * seconds <= await harness.settled("child") < 2 * seconds + 1
        assert [one.reason for one in await harness.store.events(gadget_ref("child"))] == reasons

    play(scenario)


def test_a_new_resource_is_not_delayed_by_a_secret_that_is_missing() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a", {"size": 1, "passwordRef": "s"})
        await harness.clock.sleep(1)

        assert (await harness.status("a"))["conditions"][0]["reason"] == "DependencyNotFound"

    play(scenario)


def test_what_was_refused_to_be_deleted_is_tried_again_once_its_last_dependant_is_gone() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("parent")
        await harness.apply("child", {"size": 1, "parentRef": "parent"})
        await harness.settled("parent", "child")

        async def slow_child(name: str) -> None:
            if name == "child":
                await harness.clock.sleep(100)
            elif not await is_gone("child"):
                raise RemoteRefused("it has children")

        async def is_gone(name: str) -> bool:
            return await harness.store.get(gadget_ref(name)) is None

        harness.kind.before = slow_child
        await harness.store.delete(gadget_ref("parent"))
        await harness.store.delete(gadget_ref("child"))
        child_gone = await harness.until(lambda: is_gone("child"))

        # By now the backoff is longer than a minute.
        assert await harness.until(lambda: is_gone("parent")) < child_gone + 1

    play(scenario)


@pytest.mark.parametrize(("after", "reasons"), [(1, ["Created", "Deleted"]), (7, ["Created", "DependencyNotReady"])])
def test_what_is_deleted_soon_after_its_dependency_is_not_reported_as_blocked(after: float, reasons: list[str]) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("parent")
        await harness.apply("child", {"size": 1, "parentRef": "parent"})
        await harness.settled("parent", "child")

        async def slow_parent(name: str) -> None:
            await harness.clock.sleep(10 if name == "parent" else 0)

        harness.kind.before = slow_parent
        await harness.store.delete(gadget_ref("parent"))
        await harness.clock.sleep(after)
        await harness.store.delete(gadget_ref("child"))
        await harness.clock.sleep(1)

        events = await harness.store.events(gadget_ref("child"))
        assert [one.reason for one in events][: len(reasons)] == reasons

    play(scenario)


def test_what_is_being_deleted_is_not_reconciled_again_because_of_what_it_depended_on() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("parent")
        await harness.apply("child", {"size": 1, "parentRef": "parent"})
        await harness.settled("parent", "child")
        await harness.apply("child", {"size": 1, "parentRef": "parent"}, annotations={MANAGEMENT: "paused"})
        await harness.store.delete(gadget_ref("child"))
        await harness.clock.sleep(1)
        steps = len(harness.metrics.steps)

        await harness.store.delete(gadget_ref("parent"))
        await harness.clock.sleep(1)

        assert await harness.store.get(gadget_ref("parent")) is None
        assert len(harness.metrics.steps) - steps == 1

    play(scenario)
