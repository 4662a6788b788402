"""What a decision says beside which digest changed: a raised revision, a deleted object, an adopted one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.state import ENGINE_STATE, StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import preview
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture
from tests.engine.gadgets import Gadget, GadgetKind

Play = Callable[[ContractHarness], Awaitable[None]]


def _play(scenario: Play, fixture: GadgetFixture | None = None) -> None:
    async def run() -> None:
        async with contract_harness(fixture or GadgetFixture()) as harness:
            await scenario(harness)

    asyncio.run(run())


async def _found(harness: ContractHarness) -> tuple[Decision, DecisionReason | None]:
    plan = await preview(harness.ref, harness.engine)
    return plan.decision, plan.reason


async def _events(harness: ContractHarness, *reasons: str) -> list[tuple[str, str]]:
    found = await harness.store.events(harness.ref)
    return [(one.reason, one.message) for one in found if one.reason in reasons]


async def _as_an_earlier_version_left_it(harness: ContractHarness) -> None:
    """Removes what versions before did not keep."""
    resource = await harness.resource()
    ours: Any = resource.status[ENGINE_STATE]
    kept = {name: value for name, value in ours.items() if name != "applied"}
    await harness.store.update_status(resource, {**resource.status, ENGINE_STATE: kept})


# --- A raised revision ------------------------------------------------------------------------------------------------


def _revise(harness: ContractHarness) -> None:
    kind = harness.fixture.kind
    assert isinstance(kind, GadgetKind)
    harness.kind = replace(kind, revision=kind.revision + 1)


@pytest.mark.parametrize("is_stored_by_an_earlier_version", [False, True])
def test_a_raised_revision_is_not_taken_for_an_edit_of_the_author(is_stored_by_an_earlier_version: bool) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        if is_stored_by_an_earlier_version:
            await _as_an_earlier_version_left_it(harness)
        _revise(harness)

        assert await _found(harness) == (Decision.REVISED, None)

        await harness.step()
        assert await _found(harness) == (Decision.IN_SYNC, None)
        assert harness.writes == ["create"]

    _play(scenario)


def test_a_raised_revision_and_an_edit_are_an_edit() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        _revise(harness)
        await harness.change()

        assert await _found(harness) == (Decision.INTENT_CHANGED, None)

        await harness.drift()
        assert await _found(harness) == (Decision.BOTH, None)

    _play(scenario)


def test_a_raised_revision_and_drift_are_told_apart_from_an_edit() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        _revise(harness)
        await harness.drift()

        assert await _found(harness) == (Decision.REVISED_AND_CHANGED, None)

        await harness.step()
        step = StoredState.of(await harness.resource()).step
        assert step is not None
        assert step["decision"] == "revised, live changed"
        assert harness.writes == ["create", "update"]

    _play(scenario)


def test_a_rotated_secret_is_no_revision() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.secret({"password": "one"})
        await harness.settle({"size": 1, "passwordRef": "s"})
        _revise(harness)
        await harness.secret({"password": "two"})

        assert await _found(harness) == (Decision.INTENT_CHANGED, None)

    _play(scenario)


@dataclass(slots=True)
class _ReadsManifestsOtherwise(GadgetKind):
    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        tree: Any = GadgetKind.declare(self, resource, resolved)
        return {**tree, "spec": {"note": "from revision 2", **tree["spec"]}}


@pytest.mark.parametrize(
    ("is_stored_by_an_earlier_version", "decision"), [(False, Decision.REVISED), (True, Decision.INTENT_CHANGED)]
)
def test_a_revision_that_reads_manifests_otherwise_is_known_by_what_the_author_wrote(
    is_stored_by_an_earlier_version: bool, decision: Decision
) -> None:
    async def scenario(harness: ContractHarness) -> None:
        fixture = harness.fixture
        assert isinstance(fixture, GadgetFixture)
        await harness.settle()
        if is_stored_by_an_earlier_version:
            await _as_an_earlier_version_left_it(harness)
        harness.kind = _ReadsManifestsOtherwise(fixture.service, revision=2)

        assert await _found(harness) == (decision, None)

    _play(scenario)


class _LabelledGadget(Gadget):
    """Models one field more than before."""

    etag: str = ""


class _ReadsObjectsOtherwise(GadgetKind):
    """Reads a field that no spec has."""

    def view(self, live: Gadget) -> JsonObject:
        seen = super().view(live)
        assert isinstance(seen["spec"], dict)
        return {**seen, "spec": {name: value for name, value in seen["spec"].items() if name != "etag"}}


@pytest.mark.parametrize(("is_changed", "decision"), [(False, Decision.REVISED), (True, Decision.REVISED_AND_CHANGED)])
def test_a_revision_that_reads_the_same_bytes_otherwise_finds_no_change(is_changed: bool, decision: Decision) -> None:
    async def scenario(harness: ContractHarness) -> None:
        fixture = harness.fixture
        assert isinstance(fixture, GadgetFixture)
        await harness.settle()
        harness.kind = _ReadsObjectsOtherwise(fixture.service, revision=2, live_type=_LabelledGadget)
        if is_changed:
            fixture.drift("etag", "another")

        assert await _found(harness) == (decision, None)

    _play(scenario)


# --- Deleted, and not there yet ---------------------------------------------------------------------------------------


def test_an_object_that_was_deleted_is_told_apart_from_one_that_never_existed() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.apply()
        assert await _found(harness) == (Decision.CREATE, None)
        await harness.go_on()
        await harness.delete_outside()

        plan = await preview(harness.ref, harness.engine)
        assert (plan.decision, plan.reason) == (Decision.CREATE, DecisionReason.DELETED)
        assert plan.to_data()["reason"] == "deleted"

        await harness.go_on()
        assert await _events(harness, "Created") == [
            ("Created", "created with spec.size, spec.mode"),
            ("Created", "created again, it was deleted, with spec.size, spec.mode"),
        ]

    for fixture in (GadgetFixture(), StatelessGadgetFixture()):
        _play(scenario, fixture)


def test_an_object_whose_creation_failed_was_not_deleted() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.fail_next_calls(CallFault.REFUSED, ["create"])
        await harness.apply()
        await harness.step()

        assert StoredState.of(await harness.resource()).location == "g"
        assert await _found(harness) == (Decision.CREATE, None)

    _play(scenario)


# --- Adopted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", [GadgetFixture, StatelessGadgetFixture])
@pytest.mark.parametrize(("size", "writes"), [(1, []), (9, ["update"])])
def test_an_object_that_was_there_before_is_adopted_once(
    fixture: Callable[[], GadgetFixture], size: int, writes: list[str]
) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.create_outside(size)
        await harness.apply()
        assert await _found(harness) == (Decision.FIRST_LOOK, DecisionReason.ADOPTED)

        outcome = await harness.go_on()

        assert isinstance(outcome, Settled)
        assert outcome.plan.reason is DecisionReason.ADOPTED
        step = StoredState.of(await harness.resource()).step
        assert step is not None
        assert (step["decision"], step["reason"]) == ("first look", "adopted")
        assert await _events(harness, "Adopted") == [("Adopted", "adopted g: it was there before")]
        assert (await _found(harness))[1] is not DecisionReason.ADOPTED
        await harness.step()
        assert len(await _events(harness, "Adopted")) == 1
        assert harness.writes == writes

    _play(scenario, fixture())


def test_an_adoption_that_takes_an_operation_is_reported_once() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.create_outside(9)
        await harness.make_slow()
        await harness.apply()

        await harness.go_on()

        step = StoredState.of(await harness.resource()).step
        assert step is not None
        assert (step["reason"], len(await _events(harness, "Adopted"))) == ("adopted", 1)

    _play(scenario)


def test_an_object_that_an_interrupted_step_created_is_not_adopted() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.fail_next_calls(CallFault.LOST, ["create"], times=1)
        await harness.apply()
        await harness.step()

        assert await harness.objects() == ["g"]
        assert (await _found(harness))[1] is None
        await harness.go_on()
        assert await _events(harness, "Adopted") == []

    _play(scenario)


# --- Without a cookie -------------------------------------------------------------------------------------------------


def test_a_kind_without_cookies_says_what_the_comparison_found() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        resting = await _found(harness)
        await harness.drift()
        drifted = await _found(harness)

        assert resting == (Decision.IN_SYNC, DecisionReason.COMPARED)
        assert drifted == (Decision.DIFFERS, DecisionReason.COMPARED)
        await harness.go_on()
        assert await _events(harness, "Updated") == [("Updated", "differs: set spec.size")]

    _play(scenario, StatelessGadgetFixture())


def test_a_comparison_that_finds_nothing_writes_nothing() -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.settle()
        await _as_an_earlier_version_left_it(harness)
        before = await harness.resource()

        await harness.step()

        assert (await harness.resource()).revision == before.revision

    for fixture in (GadgetFixture(), StatelessGadgetFixture()):
        _play(scenario, fixture)


# --- Not converged ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", [GadgetFixture, StatelessGadgetFixture])
def test_the_plan_of_what_did_not_converge_names_the_fields_with_both_values(
    fixture: Callable[[], GadgetFixture],
) -> None:
    async def scenario(harness: ContractHarness) -> None:
        await harness.rewrite("size", 5)
        await harness.settle()
        before = await harness.resource()

        data: Mapping[str, Any] = (await preview(harness.ref, harness.engine)).to_data()

        assert data["writes"] == []
        assert data["withheld"] == [{"path": "spec.size", "rule": "spec", "before": 5, "after": 1}]
        assert data["because"].startswith("sent before, the service did not take it")
        assert "`setpoint reconcile`" in data["because"]
        await harness.step()
        assert (await harness.resource()).revision == before.revision

    _play(scenario, fixture())
