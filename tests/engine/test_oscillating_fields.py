"""Oscillating elements, labels and whole values, and other writers that are faster than a step."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.engine.kind import Present
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED, StoredState
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.interruptions import Interruption, Killed, StepSide, after_any_await, die, interrupted
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import Gadget, GadgetKind, GadgetLabels, GadgetSpec


def _play(
    scenario: Callable[[ContractHarness, GadgetFixture], Awaitable[None]], fixture: GadgetFixture | None = None
) -> None:
    async def play() -> None:
        with_stand = fixture or GadgetFixture()
        async with contract_harness(with_stand) as harness:
            await scenario(harness, with_stand)

    asyncio.run(play())


async def _drift_and_step(harness: ContractHarness, members: dict[str, Any], times: int) -> StepOutcome:
    for _ in range(times - 1):
        await _drift_and_step(harness, members, times=1)
    for member, value in members.items():
        await harness.edit(member, value)
    return await harness.go_on()


def _withheld(outcome: StepOutcome) -> list[str]:
    assert isinstance(outcome, Settled)
    return [str(change.path) for change in outcome.plan.withheld]


async def _oscillation_message(harness: ContractHarness) -> str:
    return str((await harness.conditions())["Contested"]["message"])


def test_an_element_that_another_writer_keeps_removing_stays_out_for_its_backoff() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle({"size": 1, "ports": [{"name": "a", "number": 1}, {"name": "b", "number": 2}]})

        outcome = await _drift_and_step(harness, {"ports": [{"name": "b", "number": 2}]}, times=4)
        assert _withheld(outcome) == ["spec.ports[name=a]"]
        assert "another writer unsets it again and again" in await _oscillation_message(harness)

        await _drift_and_step(harness, {"size": 9}, times=1)
        assert (fixture.read("size"), fixture.read("ports")) == (1, [{"name": "b", "number": 2}])

    _play(scenario)


def test_an_element_that_another_writer_keeps_adding_stays_in_for_its_backoff() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        ours, theirs = {"name": "a", "number": 1}, {"name": "b", "number": 2}
        await harness.settle({"size": 1, "ports": [ours]})

        outcome = await _drift_and_step(harness, {"ports": [ours, theirs]}, times=4)
        await _drift_and_step(harness, {"size": 9}, times=1)

        assert _withheld(outcome) == ["spec.ports[name=b]"]
        assert (fixture.read("size"), fixture.read("ports")) == (1, [ours, theirs])

    _play(scenario)


def test_the_first_fields_are_named_and_the_rest_are_counted() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        names = "abcdefg"
        await harness.settle(labels=dict.fromkeys(names, "ours"))

        await _drift_and_step(harness, {"labels": dict.fromkeys(names, "theirs")}, times=4)

        message = await _oscillation_message(harness)
        assert message.count("was reverted 3 times") == 5
        assert 'another writer sets it to "theirs" again and again; and 2 more. Find out who does' in message
        ready = (await harness.conditions())["Ready"]["message"]
        assert ready.startswith(
            "metadata.labels.a, metadata.labels.b, metadata.labels.c, metadata.labels.d, metadata.labels.e and 2 more: "
        )

    _play(scenario)


def test_a_writer_that_is_faster_than_an_observation_gets_no_more_writes_either() -> None:
    """After each write the field is another writer's again, and another value each time."""

    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle()
        for value in range(100, 150):
            fixture.rewrite("size", value + 1000)
            await _drift_and_step(harness, {"size": value}, times=1)

        assert fixture.writes.count("update") == 3

    _play(scenario)


def test_an_unconverged_field_is_not_sent_with_every_revert_of_another() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        fixture.rewrite("note", "the service's own")
        await harness.settle({"size": 1, "note": "ours"})
        await _drift_and_step(harness, {"size": 9}, times=3)
        writes = len(fixture.writes)

        outcome = await _drift_and_step(harness, {"size": 8}, times=10)
        assert _withheld(outcome) == ["spec.size", "spec.note"]
        assert len(fixture.writes) == writes

        harness.clock.seconds += 60
        await harness.go_on()
        assert fixture.read("size") == 1

    _play(scenario)


def test_an_unconverged_field_is_sent_once_while_an_oscillating_one_is_withheld() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle({"size": 1, "note": "ours"})
        await _drift_and_step(harness, {"size": 9}, times=3)
        fixture.rewrite("note", "the service's own")
        await _drift_and_step(harness, {"size": 9, "note": "theirs"}, times=1)
        writes, before = len(fixture.writes), await harness.resource()

        outcome = await harness.step()
        assert _withheld(outcome) == ["spec.size"]
        assert (await harness.conditions())["Ready"]["reason"] == "NotConverged"
        assert (len(fixture.writes), await harness.resource()) == (writes, before)

        harness.clock.seconds += 60
        await harness.go_on()
        assert fixture.read("size") == 1

    _play(scenario)


def test_an_oscillating_field_that_changes_during_a_step_is_withheld_as_well() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle()
        await _drift_and_step(harness, {"mode": "theirs"}, times=3)
        await harness.drift()

        async def drift() -> None:
            fixture.drift("mode", "theirs")

        # The observation, the write.
        interruption = Interruption(2, drift)
        outcome = await interrupted(harness, interruption, [StepSide.SERVICE]).step()

        assert _withheld(outcome) == ["spec.mode"]
        assert (fixture.read("size"), fixture.read("mode")) == (1, "theirs")
        assert fixture.writes.count("update") == 4

    _play(scenario)


def test_a_reconcile_request_is_handled_when_the_field_is_reverted() -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.settle()
            await _drift_and_step(harness, {"size": 9}, times=4)
            await harness.apply(annotations={RECONCILE_REQUESTED: "now"})
            try:
                await interrupted(harness, Interruption(awaits, die)).go_on()
                is_killed = False
            except Killed:
                is_killed = True

            is_answered = (await harness.resource()).status.get(RECONCILE_HANDLED) == "now"
            assert await harness.value() == 1 or not is_answered
            await harness.go_on()
            assert await harness.value() == 1
            return is_killed

    asyncio.run(after_any_await(is_killed_after, least=1))


# --- A value that is one unit ----------------------------------------------------------------------------------------


class FreeSpec(GadgetSpec):
    free: Any = UNSET


class FreeTree(Struct):
    spec: FreeSpec
    metadata: GadgetLabels | UnsetType = UNSET


class FreeGadget(Gadget):
    free: Any = UNSET


class FreeKind(GadgetKind):
    """A gadget with a field in which anything goes: it is compared field by field, and laid over the live one whole."""

    async def observe(self, location: Any, known: str | None = None) -> Any:
        found = await GadgetKind.observe(self, location, known)
        if not isinstance(found, Present):
            return found
        live = msgspec.convert(self.service.objects[location], FreeGadget)
        return Present(live, found.body, outputs=found.outputs)


class FreeStand(GadgetFixture):
    def __init__(self) -> None:
        super().__init__()
        self.kind = FreeKind(self.service, live_type=FreeGadget, tree_type=FreeTree)


def test_inside_an_atomic_value_the_whole_value_is_withheld() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle({"size": 1, "free": {"a": {"x": 1, "y": 1}}})
        await _drift_and_step(harness, {"free": {"a": {"x": 9, "y": 1}}}, times=3)

        outcome = await _drift_and_step(harness, {"free": {"a": {"x": 9, "y": 9}}, "size": 9}, times=1)

        assert [one.path for one in StoredState.of(await harness.resource()).oscillations.reported] == ["spec.free.a.x"]
        assert _withheld(outcome) == ["spec.free.a.x", "spec.free.a.y"]
        assert (fixture.read("size"), fixture.read("free")) == (1, {"a": {"x": 9, "y": 9}})

    _play(scenario, FreeStand())
