"""A plan reads drafts before the store, and writes nothing."""

import asyncio
import inspect

import pytest

from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import StoreError
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.stores.samples import REF, instance
from tests.stores.store_methods import READS, WRITES, arguments_for, verb_of


def drafts() -> OverlayStore:
    return OverlayStore(MemoryStore(FakeClock(), lambda: "uid"), {REF: Resource(instance())})


def test_every_method_of_a_store_reads_or_writes() -> None:
    methods = [name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")]

    assert sorted(READS + WRITES) == methods


@pytest.mark.parametrize("name", WRITES)
def test_a_plan_writes_nothing(name: str) -> None:
    write = getattr(drafts(), name)

    with pytest.raises(StoreError, match=rf"^{verb_of(name)}: a plan writes nothing"):
        asyncio.run(write(*arguments_for(write)))


def test_a_replaced_resource_is_read_before_the_store() -> None:
    async def scenario() -> tuple[Resource | None, Resource | None, Resource]:
        planned = drafts()
        there = await planned.behind.apply(instance("another"))
        return await planned.get(REF), await planned.get(there.ref), there

    draft, other, there = asyncio.run(scenario())

    assert (draft, other) == (Resource(instance()), there)


def test_collects_as_the_store_behind_does() -> None:
    assert drafts().collects is False
