"""Annotations in a step: a refused one stops it before any request, and holds a deletion; others are warned of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ManifestInvalid
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.owners.owner_harness import OwnerHarness, owner_harness
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.owners.owner_fixtures import WEBSITE

POLICY = "cnrm.cloud.google.com/deletion-policy"
T = TypeVar("T")


def play(scenario: Callable[[ContractHarness, GadgetFixture], Awaitable[T]]) -> T:
    async def run() -> T:
        fixture = GadgetFixture()
        async with contract_harness(fixture) as harness:
            return await scenario(harness, fixture)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            "setpoint.dev/managment",
            "observe",
            "setpoint.dev/managment is unknown: did you mean setpoint.dev/management?",
        ),
        (POLICY, "ABANDON", f"{POLICY} is 'ABANDON': write abandon or delete, in lower case"),
        (
            "cnrm.cloud.google.com/reconcile-interval-in-seconds",
            "10m",
            "cnrm.cloud.google.com/reconcile-interval-in-seconds is '10m': write whole seconds, such as \"600\", or "
            '"0" for never again',
        ),
    ],
)
def test_a_refused_annotation_stops_the_step_before_any_request(key: str, text: str, message: str) -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.apply(annotations={key: text})
        with pytest.raises(ManifestInvalid) as refused:
            await preview(harness.ref, harness.engine)

        outcome = await harness.step()

        assert str(refused.value) == message
        assert isinstance(outcome, Stopped)
        assert isinstance(outcome.error, ManifestInvalid)
        assert await harness.ready() == ("False", "UpdateFailed", f"Update call failed: {message}")
        assert (fixture.objects(), harness.writes) == ([], [])

    play(scenario)


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        (POLICY, "ABANDON", "is 'ABANDON': write abandon or delete, in lower case"),
        (POLICY, "retain", "is 'retain': write abandon or delete, in lower case"),
        ("cnrm.cloud.google.com/deletion-polcy", "abandon", f"is unknown: did you mean {POLICY}?"),
        ("setpoint.dev/managment", "observe", "is unknown: did you mean setpoint.dev/management?"),
    ],
)
def test_a_deletion_waits_until_a_refused_annotation_is_corrected(key: str, text: str, problem: str) -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle()
        made = list(fixture.objects())
        await harness.apply(annotations={key: text})
        await harness.delete()

        outcomes = [await harness.step(), await harness.step()]

        assert [type(one.error) if isinstance(one, Stopped) else one for one in outcomes] == [ManifestInvalid] * 2
        kept = "nothing is deleted until that is corrected"
        assert await harness.ready() == ("False", "DeleteFailed", f"Delete call failed: {key} {problem}; {kept}")
        assert (await harness.resource()).finalizers == ("cnrm.cloud.google.com/finalizer",)
        assert fixture.objects() == made
        # Annotations of a resource that is being deleted can still be changed.
        await harness.apply(annotations={POLICY: "abandon"})
        assert await harness.step() == Gone()
        assert (await harness.is_gone(), fixture.objects()) == (True, made)

    play(scenario)


def test_a_corrected_annotation_lets_the_deletion_go_on() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.settle(annotations={})
        await harness.apply(annotations={POLICY: "Delete"})
        await harness.delete()
        await harness.step()
        assert fixture.objects() != []

        await harness.apply(annotations={POLICY: "delete"})

        assert await harness.go_on() == Gone()
        assert (await harness.is_gone(), fixture.objects()) == (True, [])

    play(scenario)


def test_a_paused_resource_is_left_alone_whatever_else_it_is_annotated_with() -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        await harness.apply(annotations={POLICY: "ABANDON", "setpoint.dev/management": "paused"})

        assert isinstance(await harness.step(), Settled)
        assert (await harness.ready())[1] == "Paused"
        assert fixture.objects() == []

    play(scenario)


@pytest.mark.parametrize("is_continuous", [False, True])
def test_a_warning_is_a_condition_and_an_event_as_long_as_the_annotation_is_there(is_continuous: bool) -> None:
    async def scenario(harness: ContractHarness, fixture: GadgetFixture) -> None:
        if is_continuous:
            harness.run_continuously()
        await harness.settle()
        await harness.step()
        before = list(harness.writes)
        await harness.apply(annotations={"setpoint.dev/colour": "red"})

        outcomes = [await harness.step(), await harness.step()]

        message = "setpoint.dev/colour is unknown, and has no effect: correct its name, or leave it out"
        conditions = await harness.conditions()
        assert all(isinstance(one, Settled) for one in outcomes)
        assert (conditions["Ready"]["status"], conditions["Warned"]["status"]) == ("True", "True")
        assert (conditions["Warned"]["reason"], conditions["Warned"]["message"]) == ("AnnotationIgnored", message)
        events = [one for one in await harness.store.events() if one.reason == "AnnotationIgnored"]
        assert [(one.severity, one.message) for one in events] == [("Warning", message)]
        settled = await harness.resource()
        await harness.step()
        assert (await harness.resource()).revision == settled.revision
        await harness.apply(annotations={})
        await harness.step()
        assert list(await harness.conditions()) == ["Ready"]
        assert harness.writes == before

    play(scenario)


# --- Owners -----------------------------------------------------------------------------------------------------------


def play_owner(scenario: Callable[[OwnerHarness], Awaitable[None]]) -> None:
    async def run() -> None:
        async with owner_harness(WEBSITE) as harness:
            await scenario(harness)

    asyncio.run(run())


def test_an_owner_with_an_annotation_that_has_no_effect_on_it_generates_nothing() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin(**{POLICY: "abandon"})

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert str(outcome.error) == (
            f"{POLICY} has no effect on a Website: it is for kinds that stand for one live object; leave it out"
        )
        assert await harness.children() == {}

    play_owner(scenario)


def test_an_owner_that_is_to_keep_its_children_keeps_them_until_the_annotation_is_gone() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.settle()
        made = await harness.children()
        await harness.apply(annotations={POLICY: "abandon"})
        await harness.store.delete(harness.ref)

        outcome = await harness.step()

        assert isinstance(outcome, Stopped)
        assert str(outcome.error).endswith("; leave it out; nothing is deleted until that is corrected")
        assert set(await harness.children()) == set(made)
        await harness.apply(annotations={})
        assert await harness.step() == Gone()

    play_owner(scenario)


def test_an_unknown_annotation_of_an_owner_is_among_its_warnings() -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin(**{"setpoint.dev/colour": "red"})

        await harness.step()

        found = (await harness.resource()).status["conditions"]
        assert isinstance(found, list)
        (warned,) = (one for one in found if isinstance(one, dict) and one["type"] == "Warned")
        assert (warned["reason"], warned["message"]) == (
            "AnnotationIgnored",
            "setpoint.dev/colour is unknown, and has no effect: correct its name, or leave it out",
        )

    play_owner(scenario)
