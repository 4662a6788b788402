"""What stays although it was taken out of the spec: told once, with the reason and with what would remove it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.schema.policy import IGNORE_UNSPECIFIED, Rule
from setpoint.engine.state import ENGINE_STATE, StoredState
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.engine.step.reconcile import preview
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture

PROTECTED = (
    "kept, though the spec leaves it out: spec.backups (protected: only an explicit value, or null, gives it up)"
)
FIXED = (
    "kept, though the spec leaves it out: spec.zone (immutable: only a new object has another, so delete the resource "
    "and apply it again)"
)
INSISTED = (
    "kept, though the spec leaves it out: spec.mode (server default: the service did not take its removal; name a "
    "value, or try again with `setpoint reconcile`)"
)


def _play(scenario: Callable[[ContractHarness], Awaitable[None]], fixture: GadgetFixture | None = None) -> None:
    async def run() -> None:
        async with contract_harness(fixture or GadgetFixture()) as harness:
            await scenario(harness)

    asyncio.run(run())


async def _told(harness: ContractHarness) -> list[str]:
    kept = [one for one in await harness.store.events(harness.ref) if one.reason == "Kept"]
    return [one.message for one in kept for _ in range(one.count)]


def _retained(outcome: StepOutcome) -> list[tuple[str, Rule]]:
    assert isinstance(outcome, Settled), outcome
    return [(str(one.path), one.rule) for one in outcome.plan.retained]


@pytest.mark.parametrize("fixture", [GadgetFixture, StatelessGadgetFixture])
@pytest.mark.parametrize(
    ("field", "rule", "message"),
    [({"backups": True}, Rule.PROTECTED, PROTECTED), ({"zone": "a"}, Rule.FIXED, FIXED)],
)
def test_a_field_that_is_taken_out_and_stays_is_told_once(
    fixture: Callable[[], GadgetFixture], field: dict[str, Any], rule: Rule, message: str
) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, **field})
        assert await _told(harness) == []
        await harness.apply({"size": 1})
        planned = await preview(harness.ref, harness.engine)

        outcome = await harness.go_on()

        (name,) = field
        assert _retained(outcome) == [(f"spec.{name}", rule)]
        assert [str(one.path) for one in planned.retained] == [f"spec.{name}"]
        assert await harness.read(name) == field[name]
        assert await _told(harness) == [message]
        step = StoredState.of(await harness.resource()).step
        assert step is not None
        assert step["retained"] == [
            {"path": f"spec.{name}", "rule": rule.value, "before": field[name], "after": field[name]}
        ]

        resting = await harness.resource()
        assert _retained(await harness.go_on()) == []
        assert (await harness.resource()).revision == resting.revision
        await harness.settle({"size": 2})
        assert await _told(harness) == [message]

    _play(scenario, fixture())


def test_a_field_that_comes_and_goes_again_is_told_again() -> None:
    async def scenario(harness: ContractHarness) -> None:
        for spec in ({"backups": True}, {}, {"backups": True}, {}):
            await harness.settle({"size": 1, **spec})

        assert await _told(harness) == [PROTECTED, PROTECTED]

    _play(scenario)


def test_an_explicit_value_or_an_annotation_leaves_nothing_to_tell() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, "backups": True})
        await harness.settle({"size": 1, "backups": False})
        await harness.settle({"size": 1, "backups": True})
        await harness.settle({"size": 1}, annotations={IGNORE_UNSPECIFIED: "true"})

        assert await harness.read("backups") is True
        assert await _told(harness) == []

    _play(scenario)


def test_what_the_spec_never_named_is_told_at_adoption_alone_and_only_where_it_is_protected() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.create_outside(1)
        await harness.edit("backups", True)
        await harness.edit("zone", "a")

        await harness.settle({"size": 1})
        await harness.settle({"size": 2})
        await harness.drift()
        await harness.go_on()

        assert await _told(harness) == [PROTECTED]

    _play(scenario)


def test_what_an_earlier_version_applied_is_told_with_the_next_edit() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, "backups": True})
        resource = await harness.resource()
        ours: Any = resource.status[ENGINE_STATE]
        kept = {name: value for name, value in ours.items() if name != "applied"}
        await harness.store.update_status(resource, {**resource.status, ENGINE_STATE: kept})
        await harness.go_on()
        assert await _told(harness) == []

        await harness.settle({"size": 1})
        await harness.settle({"size": 2})

        assert await _told(harness) == [PROTECTED]

    _play(scenario)


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_value_that_the_service_keeps_for_itself_is_told_once(is_slow: bool) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, "mode": "fast"})
        await harness.rewrite("mode", "server's own")
        if is_slow:
            await harness.make_slow()

        await harness.settle({"size": 1})
        await harness.go_on()

        assert await _told(harness) == [INSISTED]
        step = StoredState.of(await harness.resource()).step
        assert step is not None
        assert step["retained"] == [
            {"path": "spec.mode", "rule": "server default", "before": "server's own", "after": "server's own"}
        ]

    _play(scenario)


def test_what_the_service_adds_to_a_new_object_is_not_told() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.rewrite("mode", "server's own")

        await harness.settle({"size": 1})

        assert (await harness.resource()).status["serverDefaults"] == ["spec.mode"]
        assert await _told(harness) == []

    _play(scenario)


def test_a_resource_that_did_not_converge_is_told_once_as_well() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, "backups": True})
        await harness.rewrite("size", 5)

        await harness.settle({"size": 2})
        for _ in range(3):
            await harness.go_on()

        assert (await harness.ready())[1] == "NotConverged"
        assert await _told(harness) == [PROTECTED]

    _play(scenario)


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_value_that_the_service_keeps_beside_one_that_it_does_not_take_is_told_once(is_slow: bool) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle({"size": 1, "mode": "fast"})
        await harness.rewrite("mode", "server's own")
        await harness.rewrite("size", 5)
        if is_slow:
            await harness.make_slow()

        await harness.settle({"size": 2})
        resting = await harness.resource()
        for _ in range(3):
            await harness.go_on()

        assert (await harness.ready())[1] == "NotConverged"
        assert await _told(harness) == [INSISTED]
        assert (await harness.resource()).revision == resting.revision

    _play(scenario)


_SPECS = st.fixed_dictionaries(
    {"size": st.integers(1, 3)},
    optional={"backups": st.just(True), "zone": st.just("a"), "note": st.sampled_from("xy")},
)


@pytest.mark.laws
@given(st.lists(_SPECS, min_size=1, max_size=6), st.sampled_from([GadgetFixture, StatelessGadgetFixture]))
def test_a_field_is_told_exactly_when_an_edit_takes_it_out_and_the_object_keeps_it(
    specs: list[dict[str, Any]], fixture: Callable[[], GadgetFixture]
) -> None:
    async def scenario(harness: ContractHarness) -> None:
        before: dict[str, Any] = {}
        for spec in specs:
            await harness.apply(spec)
            outcome = await harness.go_on()
            if not isinstance(outcome, Settled):
                # Nothing gives an object another zone.
                return
            dropped = {f"spec.{name}" for name in before if name in ("backups", "zone") and name not in spec}

            assert {path for path, _ in _retained(outcome)} == dropped
            before = spec

    _play(scenario, fixture())
