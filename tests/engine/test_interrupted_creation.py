"""A creation by a step that was stopped before its record: it is reported once."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from setpoint.core.plan import Action
from setpoint.engine.ports import DerivedStoreOperations, ResourceUpdate, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import WriteConflict
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.interruptions import Interruption, Killed, after_any_await, die, interrupted
from tests.engine.gadget_fixture import GadgetFixture


@dataclass
class Crossed(DerivedStoreOperations):
    """A store in which another writer is first, once, as soon as the object is there."""

    behind: Store
    fixture: GadgetFixture
    was_crossed: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    async def get(self, ref: ResourceRef) -> Resource | None:
        return await self.behind.get(ref)

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        if update.status is not None and self.fixture.objects() and not self.was_crossed:
            self.was_crossed = True
            raise WriteConflict("another writer was faster")
        return await self.behind.update(resource, update)


def _run_steps(steps: int) -> tuple[list[StepOutcome], list[str]]:
    """The outcome of each step, and the events of writes."""

    async def play() -> tuple[list[StepOutcome], list[str]]:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.apply()
            assert isinstance(harness.fixture, GadgetFixture)
            engine = replace(harness.engine, store=Crossed(harness.store, harness.fixture))
            outcomes = [await step(harness.ref, engine) for _ in range(steps)]
            return outcomes, await _write_events(harness)

    return asyncio.run(play())


async def _write_events(harness: ContractHarness) -> list[str]:
    return [note.message for note in await harness.store.events(harness.ref) if note.reason in ("Created", "Updated")]


def test_it_is_on_record_once_whatever_comes_before_the_commit() -> None:
    (first, *later), events = _run_steps(4)

    assert isinstance(first, Stopped)
    assert isinstance(first.error, WriteConflict)
    assert first.error.begun == Action.CREATE
    assert [one.plan.writes for one in later if isinstance(one, Settled)] == [(), (), ()]
    assert events == ["created with spec.size, spec.mode"]


def test_killed_after_any_await_a_creation_is_one_event_and_reported_until_it_is_on_record() -> None:
    async def killed_after(awaits: int) -> bool:
        async with contract_harness(GadgetFixture()) as harness:
            await harness.apply()
            interruption = Interruption(awaits, die)
            with suppress(Killed):
                await interrupted(harness, interruption).step()
            is_recorded = StoredState.of(await harness.resource()).step is not None
            await harness.restart()

            outcome = await harness.go_on()

            assert isinstance(outcome, Settled)
            assert [write.action for write in outcome.plan.writes] == ([] if is_recorded else [Action.CREATE])
            assert len(await _write_events(harness)) == 1
            return interruption.has_happened

    asyncio.run(after_any_await(killed_after, least=4))
