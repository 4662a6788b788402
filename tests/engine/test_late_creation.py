"""A creation whose step was cut short before it could tell of it: the next one does."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from setpoint.core.plan import Action
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import Settled, StepOutcome, Stopped
from setpoint.engine.ports import DerivedStoreOperations, Store
from setpoint.engine.resource import Resource
from setpoint.engine.step.reconcile import step
from setpoint.errors import WriteConflict
from tests.engine.bench import Bench, bench_with
from tests.engine.gadget_stand import GadgetStand


@dataclass
class Crossed(DerivedStoreOperations):
    """A store in which somebody else writes first, once, as soon as the object is there."""

    behind: Store
    stand: GadgetStand
    was_crossed: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    async def update(self, resource: Resource, *, status: JsonObject | None = None, **parts: Any) -> Resource | None:
        if status is not None and self.stand.objects and not self.was_crossed:
            self.was_crossed = True
            raise WriteConflict("somebody was faster")
        return await self.behind.update(resource, status=status, **parts)


def _played(steps: int) -> tuple[list[StepOutcome], list[str]]:
    """What each step came to, and what was noted of them."""

    async def play() -> tuple[list[StepOutcome], list[str]]:
        async with bench_with(GadgetStand()) as bench:
            await bench.apply()
            assert isinstance(bench.stand, GadgetStand)
            engine = replace(bench.engine, store=Crossed(bench.store, bench.stand))
            outcomes = [await step(bench.stand.ref, engine) for _ in range(steps)]
            return outcomes, await _told(bench)

    return asyncio.run(play())


async def _told(bench: Bench) -> list[str]:
    return [note.message for note in await bench.store.events(bench.stand.ref) if note.reason in ("Created", "Updated")]


def test_it_is_told_as_created_by_the_step_that_finds_it() -> None:
    (first, second), told = _played(2)

    assert isinstance(first, Stopped)
    assert isinstance(second, Settled)
    assert [write.action for write in second.plan.writes] == [Action.CREATE]
    assert told == ["created"]


def test_it_is_told_once() -> None:
    outcomes, told = _played(4)

    assert [bool(one.plan.writes) for one in outcomes if isinstance(one, Settled)] == [True, False, False]
    assert told == ["created"]
