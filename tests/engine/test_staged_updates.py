"""An update in several operations: its own writes are not taken for another writer's, and each is recorded once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Present, RemoteOperation
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.reports import NoReports, StepSubject
from setpoint.testing.harness import ContractHarness, contract_harness, is_running
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import Gadget, GadgetKind

STAGES = ("size", "note", "mode")


@dataclass(slots=True)
class _InStages(GadgetKind):
    def sending(self, intent: Intent) -> PlanOptions:
        return PlanOptions(stages=tuple(WriteStage(f"set {name}", (Path(("spec", name)),)) for name in STAGES))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Gadget]
    ) -> RemoteOperation | None:
        spec: Any = wanted["spec"]
        name = write.name.removeprefix("set ")
        if name not in STAGES:
            return await GadgetKind.update(self, intent, wanted, write, before)
        members = {**self.service.objects[intent.location], name: spec[name]}
        return self.service.ask("update", intent.location, lambda: self.service.put(intent.location, members))


@dataclass(slots=True)
class _Reports(NoReports):
    drifted: list[str] = field(default_factory=list)

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        self.drifted += fields


Record = tuple[str, list[str]]


async def _steps_of_an_update(harness: ContractHarness, meddling: dict[str, Json]) -> tuple[list[Record], list[str]]:
    """The decision and fields of each step on record, and the fields reported as drift.

    The author changes three fields; `meddling` is what another writer sets once the first of them has arrived.
    """
    kind = harness.fixture.kind
    assert isinstance(kind, GadgetKind)
    harness.kind = _InStages(kind.service)
    await harness.settle({"size": 1, "note": "a", "mode": "one"})
    kind.service.slow = True
    reports, found = _Reports(), list[Record]()
    await harness.apply({"size": 2, "note": "b", "mode": "two"})
    for number in range(9):
        outcome = await step(harness.ref, replace(harness.engine, reporter=reports))
        recorded: Any = StoredState.of(await harness.resource()).step
        record = recorded["decision"], [change["path"] for write in recorded["writes"] for change in write["changes"]]
        found += [] if found[-1:] == [record] else [record]
        if not is_running(outcome):
            assert isinstance(outcome, Settled)
            return found, reports.drifted
        kind.service.finish()
        if not number:
            kind.service.objects["g"].update(meddling)
    raise AssertionError("still waiting after 9 steps")


def _play(meddling: dict[str, Json]) -> tuple[list[Record], list[str]]:
    async def run() -> tuple[list[Record], list[str]]:
        async with contract_harness(GadgetFixture()) as harness:
            return await _steps_of_an_update(harness, meddling)

    return asyncio.run(run())


def test_what_an_update_wrote_itself_is_no_drift() -> None:
    found, drifted = _play({})

    assert found == [
        ("intent changed", ["spec.size"]),
        ("intent changed", ["spec.note"]),
        ("intent changed", ["spec.mode"]),
    ]
    assert drifted == []


def test_what_another_writer_changed_meanwhile_is_drift() -> None:
    found, drifted = _play({"backups": True, "ports": [{"name": "p", "number": 1}]})

    assert found == [
        ("intent changed", ["spec.size"]),
        ("both", ["spec.note"]),
        ("both", ["spec.mode"]),
        ("both", ["spec.ports[name=p]"]),
    ]
    assert {*drifted} == {"spec.ports[name=p]"}
