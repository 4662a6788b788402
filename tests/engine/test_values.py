"""Values that flow from one resource to another, and what happens where there is none."""

from typing import Any

import pytest

from setpoint.core.values.canonical import canonical
from setpoint.engine.context import Settled
from setpoint.errors import (
    Blocked,
    DependencyNotFound,
    ManifestInvalid,
)
from tests.engine.shore import ADDRESS, FOR_ADDRESS, NO_STATUS, T0, Shore, error_of, play
from tests.engine.things import thing_ref, value_of

BLOCKED_BY_A = f"waiting for status.address of Thing default/a, unknown since {T0}: {NO_STATUS}"


async def _source(shore: Shore, address: str | None = "10.0.0.1") -> None:
    """The thing `a`, with this address."""
    await shore.apply("a", waitFor=FOR_ADDRESS)
    await shore.step("a")
    shore.service.set_status("a", address=address)
    await shore.step("a")


# --- Known ------------------------------------------------------------------------------------------------------------


def test_a_value_arrives_where_it_is_named() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        assert isinstance(await shore.step("b"), Settled)
        assert shore.live("b") == {"host": "10.0.0.1"}

    play(scenario)


def test_a_value_that_changes_is_written_once_and_then_nothing_is() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})
        await shore.step("b")
        shore.service.set_status("a", address="10.0.0.2")
        await shore.step("a")

        for _ in range(3):
            assert isinstance(await shore.step("b"), Settled)

        assert shore.live("b") == {"host": "10.0.0.2"}
        assert shore.service.writes == [("create", "a"), ("create", "b"), ("update", "b")]

    play(scenario)


def test_a_value_for_a_secret_field_shows_neither_in_the_plan_nor_in_the_status_nor_in_notes() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore, "hunter2")
        await shore.apply("b", {"secret": value_of("a", ADDRESS)})
        plan = await shore.plan("b")

        outcome = await shore.step("b")

        shown = str(plan) + str(outcome) + canonical((await shore.resource("b")).document).decode()
        shown += str(await shore.store.events(thing_ref("b")))
        assert shore.live("b") == {"secret": "hunter2"}
        assert "hunter2" not in shown

    play(scenario)


def test_a_value_comes_only_from_what_is_ready_for_its_newest_spec() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("a", {"size": 2}, waitFor=FOR_ADDRESS)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        told = "waiting for status.address of Thing default/a: it has not been looked at since its spec changed"
        assert str(error_of(await shore.step("b"))) == told

        await shore.apply("a", {"zone": "another"}, waitFor=FOR_ADDRESS)
        await shore.step("a")
        told = "waiting for status.address of Thing default/a: it is not ready (ImmutableFieldChanged)"
        assert str(error_of(await shore.step("b"))) == told
        assert "b" not in shore.service.objects

    play(scenario)


def test_a_source_that_is_to_go_gives_nothing_any_more() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.store.delete(thing_ref("a"))
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        told = "waiting for status.address of Thing default/a: it is being deleted"
        assert str(error_of(await shore.step("b"))) == told

    play(scenario)


# --- Unknown ----------------------------------------------------------------------------------------------------------


def test_what_is_unknown_blocks_with_its_reason_and_is_gone_on_with_when_it_arrives() -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("a", waitFor=FOR_ADDRESS)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})
        await shore.step("a")

        outcome = await shore.step("b")

        assert isinstance(error_of(outcome), Blocked)
        assert await shore.ready("b") == ("False", "Blocked", BLOCKED_BY_A)
        assert "b" not in shore.service.objects
        shore.service.set_status("a", address="10.0.0.1")
        await shore.step("a")
        assert isinstance(await shore.step("b"), Settled)

    play(scenario)


def test_a_value_that_vanishes_blocks_its_dependants_and_leaves_them_as_they_are() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})
        await shore.step("b")
        writes = list(shore.service.writes)
        shore.service.set_status("a", address=None)
        await shore.step("a")

        outcome = await shore.step("b")

        told = f"waiting for status.address of Thing default/a, unknown since {T0}: disappeared"
        assert str(error_of(outcome)) == told
        assert shore.live("b") == {"host": "10.0.0.1"}
        shore.service.set_status("a", address="10.0.0.1")
        await shore.step("a")
        assert isinstance(await shore.step("b"), Settled)
        assert shore.service.writes == writes

    play(scenario)


def test_an_outage_of_the_source_blocks_and_rewrites_nothing() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("b", {"host": value_of("a", ADDRESS)})
        await shore.step("b")
        shore.service.down = "no route"
        await shore.step("a")
        shore.service.down = ""

        outcome = await shore.step("b")

        told = f"waiting for status.address of Thing default/a, unknown since {T0}: the read failed: get a: no route"
        assert str(error_of(outcome)) == told
        assert shore.service.writes == [("create", "a"), ("create", "b")]

    play(scenario)


def test_a_path_beside_the_one_that_is_waited_for_blocks_and_says_so() -> None:
    async def scenario(shore: Shore) -> None:
        await _source(shore)
        await shore.apply("b", {"host": value_of("a", "status.hostname")})

        told = (
            "waiting for status.hostname of Thing default/a: it is not in the value that Thing default/a waits for; "
            "if it never comes, wait for it there (waitFor.field)"
        )
        assert str(error_of(await shore.step("b"))) == told

    play(scenario)


def test_what_is_not_there_at_all_is_named() -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        error = error_of(await shore.step("b"))

        assert isinstance(error, DependencyNotFound)
        assert str(error) == "reference Thing default/a is not found"

    play(scenario)


# --- Null -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{}, {"waitFor": {"fieldValue": {"status.address": "10.0.0.1"}}}])
def test_null_on_a_value_edge_is_an_error_that_names_the_missing_wait(spec: dict[str, Any]) -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("a", None, **spec)
        await shore.step("a")
        shore.service.set_status("a", address="10.0.0.1")
        await shore.step("a")
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        error = error_of(await shore.step("b"))

        assert isinstance(error, ManifestInvalid)
        assert str(error) == (
            "status.address of Thing default/a is not tracked: add waitFor.field to Thing default/a, such as "
            "waitFor: {field: status.address}"
        )
        assert "b" not in shore.service.objects

    play(scenario)


def test_a_wait_that_was_added_just_now_is_not_a_missing_one() -> None:
    async def scenario(shore: Shore) -> None:
        await shore.apply("a", {"size": 1})
        await shore.step("a")
        # Its step gets no further than to say so for the new spec: the output is still that of the old one.
        await shore.apply("a", {"host": value_of("nowhere", ADDRESS)}, waitFor=FOR_ADDRESS)
        await shore.step("a")
        await shore.apply("b", {"host": value_of("a", ADDRESS)})

        told = (
            "waiting for status.address of Thing default/a: it is not ready; it is blocked itself: "
            "reference Thing default/nowhere is not found"
        )
        assert str(error_of(await shore.step("b"))) == told

    play(scenario)
