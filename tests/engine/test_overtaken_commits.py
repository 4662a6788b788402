"""Another write to a resource comes before the commit of a step: what the step has sent is on record all the same."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.history.memory_history import HistoryStore
from setpoint.engine.ports import ResourceUpdate, Store
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.engine.step.reports import HistoryEntry, HistoryType
from setpoint.engine.step.store_decorators import StoreDecorator, StoreWrite, T
from setpoint.errors import WriteConflict
from setpoint.testing.harness import ContractHarness, contract_harness
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import GadgetKind

Meddling: TypeAlias = Callable[[ContractHarness], Awaitable[object]]


@dataclass
class _Overtaken(StoreDecorator):
    """Another writer comes before some of the updates, by their number."""

    behind: Store
    harness: ContractHarness
    overtaken: Collection[int]
    meddle: Meddling
    updates: int = 0
    conflicts: list[WriteConflict] = field(default_factory=list)

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        if write.verb == "update":
            self.updates += 1
            if self.updates in self.overtaken:
                await self.meddle(self.harness)
        try:
            return await send(self.behind)
        except WriteConflict as error:
            self.conflicts.append(error)
            raise


async def _annotate(harness: ContractHarness) -> None:
    seen = await harness.resource()
    await harness.store.update(seen, ResourceUpdate(annotations={"seen-at": seen.revision}))


async def _edit(harness: ContractHarness) -> None:
    await harness.apply({"size": 7, "note": "a"})


async def _edit_status(harness: ContractHarness) -> None:
    seen = await harness.resource()
    await harness.store.update(seen, ResourceUpdate(status={**seen.status, "of": "another writer"}))


@dataclass
class _Played:
    history: Sequence[HistoryEntry]
    events: Sequence[tuple[str, int]]
    sent: Sequence[str]
    conflicts: int

    @property
    def recorded(self) -> list[str]:
        """The writes in the records of the steps, by their fields."""
        steps = [one.data for one in self.history if one.type is HistoryType.STEP]
        return [_fields(write) for data in steps for write in _writes(data)]


def _writes(data: Any) -> list[Any]:
    found: list[Any] = data["writes"]
    return found


def _fields(write: Any) -> str:
    return f"{write['action']}: {', '.join(change['path'] for change in write['changes'])}"


async def _until_settled(harness: ContractHarness, engine: Any) -> None:
    for _ in range(20):
        try:
            if isinstance(await step(harness.ref, engine), Settled):
                return
        except WriteConflict:
            continue
    raise AssertionError("not settled after 20 steps")


def _play(overtaken: Collection[int]) -> _Played:
    """A resource is created, edited, and corrected after another writer changed its object."""

    async def run() -> _Played:
        async with contract_harness(GadgetFixture()) as harness:
            kind = harness.fixture.kind
            assert isinstance(kind, GadgetKind)
            assert isinstance(harness.store, HistoryStore)
            store = _Overtaken(harness.store, harness, overtaken, _annotate)
            engine = replace(harness.engine, store=store)
            for size in (1, 2):
                await harness.apply({"size": size, "note": "a"})
                await _until_settled(harness, engine)
            kind.service.objects["g"]["note"] = "of another writer"
            await _until_settled(harness, engine)
            history = await harness.store.history(harness.ref)
            events = Counter[str]()
            for one in await harness.store.events(harness.ref):
                events[one.reason] += one.count
            return _Played(history[::-1], sorted(events.items()), harness.writes, len(store.conflicts))

    return asyncio.run(run())


UNDISTURBED = _play(())


@given(st.sets(st.integers(1, 20), max_size=4))
def test_every_write_is_on_record_once_whatever_comes_before_the_commits(overtaken: set[int]) -> None:
    played = _play(overtaken)

    assert played.sent == UNDISTURBED.sent
    assert played.recorded == UNDISTURBED.recorded
    told = {"Created", "Updated"}
    assert [one for one in played.events if one[0] in told] == [one for one in UNDISTURBED.events if one[0] in told]


def test_the_commits_were_overtaken() -> None:
    assert UNDISTURBED.conflicts == 0
    assert UNDISTURBED.sent == ["create", "update", "update"]
    assert UNDISTURBED.recorded == [
        "create: spec.size, spec.mode, spec.note",
        "update: spec.size",
        "update: spec.note",
    ]
    assert [_play({number}).conflicts for number in range(1, 6)] == [1, 1, 1, 1, 1]


def _steps_until_at_rest(overtaken: int, meddle: Meddling) -> tuple[list[str], JsonObject]:
    """The decisions on record, and the object at the end, in a long-running process; with what happens to a commit."""

    async def run() -> tuple[list[str], JsonObject]:
        async with contract_harness(GadgetFixture()) as harness:
            kind = harness.fixture.kind
            assert isinstance(kind, GadgetKind)
            assert isinstance(harness.store, HistoryStore)
            harness.run_continuously()
            store = _Overtaken(harness.store, harness, {overtaken}, meddle)
            engine = replace(harness.engine, store=store)
            for size in (1, 2):
                await harness.apply({"size": size, "note": "a"})
                before = ""
                while (now := (await harness.resource()).revision) != before:
                    assert harness.revisions is not None
                    await harness.revisions.refresh()
                    await _until_settled(harness, engine)
                    before = now
            history = await harness.store.history(harness.ref)
            assert len(store.conflicts) == 1
            return [str(one.data["decision"]) for one in history[::-1]], kind.service.objects["g"]

    return asyncio.run(run())


@pytest.mark.parametrize("overtaken", [1, 2, 3])
def test_an_edit_while_a_write_is_sent_is_reconciled_and_the_write_is_no_drift(overtaken: int) -> None:
    decisions, found = _steps_until_at_rest(overtaken, _edit)

    assert set(decisions) == {"create", "intent changed"}
    assert found["size"] == (7 if overtaken == 3 else 2)


def test_a_status_that_another_writer_changed_is_not_written_over() -> None:
    decisions, _ = _steps_until_at_rest(2, _edit_status)

    assert decisions == ["first look", "intent changed"]
