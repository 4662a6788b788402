"""Values that flow from one resource to another, and what happens where there is none."""

from typing import Any

import pytest

from setpoint.core.values.canonical import canonical
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import (
    Blocked,
    DependencyNotFound,
    ManifestInvalid,
)
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS, NO_STATUS, T0, RunnerHarness, error_of, play
from tests.engine.things import thing_ref, value_of

BLOCKED_BY_A = f"waiting for status.address of Thing default/a, unknown since {T0}: {NO_STATUS}"


async def _source(harness: RunnerHarness, address: str | None = "10.0.0.1") -> None:
    """The thing `a`, with this address."""
    await harness.apply("a", waitFor=FOR_ADDRESS)
    await harness.step("a")
    harness.service.set_status("a", address=address)
    await harness.step("a")


# --- Known ------------------------------------------------------------------------------------------------------------


def test_a_value_arrives_where_it_is_named() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        assert isinstance(await harness.step("b"), Settled)
        assert harness.live("b") == {"host": "10.0.0.1"}

    play(scenario)


def test_a_value_that_changes_is_written_once_and_then_nothing_is() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})
        await harness.step("b")
        harness.service.set_status("a", address="10.0.0.2")
        await harness.step("a")

        for _ in range(3):
            assert isinstance(await harness.step("b"), Settled)

        assert harness.live("b") == {"host": "10.0.0.2"}
        assert harness.service.writes == [("create", "a"), ("create", "b"), ("update", "b")]

    play(scenario)


def test_a_value_for_a_secret_field_shows_neither_in_the_plan_nor_in_the_status_nor_in_notes() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness, "hunter2")
        await harness.apply("b", {"secret": value_of("a", ADDRESS)})
        plan = await harness.plan("b")

        outcome = await harness.step("b")

        shown = str(plan) + str(outcome) + canonical((await harness.resource("b")).document).decode()
        shown += str(await harness.store.events(thing_ref("b")))
        assert harness.live("b") == {"secret": "hunter2"}
        assert "hunter2" not in shown

    play(scenario)


def test_a_value_is_taken_only_from_a_resource_that_is_ready_for_its_newest_spec() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("a", {"size": 2}, waitFor=FOR_ADDRESS)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        message = "waiting for status.address of Thing default/a: it has not been reconciled since its spec changed"
        assert str(error_of(await harness.step("b"))) == message

        await harness.apply("a", {"zone": "another"}, waitFor=FOR_ADDRESS)
        await harness.step("a")
        message = "waiting for status.address of Thing default/a: it is not ready (ImmutableFieldChanged)"
        assert str(error_of(await harness.step("b"))) == message
        assert "b" not in harness.service.objects

    play(scenario)


def test_a_source_that_is_to_go_gives_nothing_any_more() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.store.delete(thing_ref("a"))
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        message = "waiting for status.address of Thing default/a: it is being deleted"
        assert str(error_of(await harness.step("b"))) == message

    play(scenario)


# --- Unknown ----------------------------------------------------------------------------------------------------------


def test_an_unknown_value_blocks_with_its_reason_until_it_is_known() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", waitFor=FOR_ADDRESS)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})
        await harness.step("a")

        outcome = await harness.step("b")

        assert isinstance(error_of(outcome), Blocked)
        assert await harness.ready("b") == ("False", "Blocked", BLOCKED_BY_A)
        assert "b" not in harness.service.objects
        harness.service.set_status("a", address="10.0.0.1")
        await harness.step("a")
        assert isinstance(await harness.step("b"), Settled)

    play(scenario)


def test_a_value_that_vanishes_blocks_its_dependants_and_leaves_them_as_they_are() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})
        await harness.step("b")
        writes = list(harness.service.writes)
        harness.service.set_status("a", address=None)
        await harness.step("a")

        outcome = await harness.step("b")

        message = f"waiting for status.address of Thing default/a, unknown since {T0}: disappeared"
        assert str(error_of(outcome)) == message
        assert harness.live("b") == {"host": "10.0.0.1"}
        harness.service.set_status("a", address="10.0.0.1")
        await harness.step("a")
        assert isinstance(await harness.step("b"), Settled)
        assert harness.service.writes == writes

    play(scenario)


def test_an_outage_of_the_source_blocks_and_rewrites_nothing() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b", {"host": value_of("a", ADDRESS)})
        await harness.step("b")
        harness.service.down = "no route"
        await harness.step("a")
        harness.service.down = ""

        outcome = await harness.step("b")

        message = f"waiting for status.address of Thing default/a, unknown since {T0}: the read failed: get a: no route"
        assert str(error_of(outcome)) == message
        assert harness.service.writes == [("create", "a"), ("create", "b")]

    play(scenario)


def test_a_path_beside_the_one_that_is_waited_for_blocks_and_says_so() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await _source(harness)
        await harness.apply("b", {"host": value_of("a", "status.hostname")})

        message = (
            "waiting for status.hostname of Thing default/a: it is not in the value that Thing default/a waits for; "
            "if it never comes, wait for it there (waitFor.field)"
        )
        assert str(error_of(await harness.step("b"))) == message

    play(scenario)


def test_a_missing_source_is_named() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        error = error_of(await harness.step("b"))

        assert isinstance(error, DependencyNotFound)
        assert str(error) == "reference Thing default/a is not found"

    play(scenario)


# --- Null -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{}, {"waitFor": {"fieldValue": {"status.address": "10.0.0.1"}}}])
def test_null_on_a_value_edge_is_an_error_that_names_the_missing_wait(spec: dict[str, Any]) -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", None, **spec)
        await harness.step("a")
        harness.service.set_status("a", address="10.0.0.1")
        await harness.step("a")
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        error = error_of(await harness.step("b"))

        assert isinstance(error, ManifestInvalid)
        assert str(error) == (
            "status.address of Thing default/a is not tracked: add waitFor.field to Thing default/a, such as "
            "waitFor: {field: status.address}"
        )
        assert "b" not in harness.service.objects

    play(scenario)


def test_a_wait_that_was_added_just_now_is_not_a_missing_one() -> None:
    async def scenario(harness: RunnerHarness) -> None:
        await harness.apply("a", {"size": 1})
        await harness.step("a")
        # Its step gets no further than to say so for the new spec: the output is still that of the old one.
        await harness.apply("a", {"host": value_of("nowhere", ADDRESS)}, waitFor=FOR_ADDRESS)
        await harness.step("a")
        await harness.apply("b", {"host": value_of("a", ADDRESS)})

        message = (
            "waiting for status.address of Thing default/a: it is not ready; it is blocked itself: "
            "reference Thing default/nowhere is not found"
        )
        assert str(error_of(await harness.step("b"))) == message

    play(scenario)
