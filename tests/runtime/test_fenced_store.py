"""No write of a step reaches the store without a permit."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from setpoint.clients.fencing import FencedWrite, fenced_by
from setpoint.engine.ports import ChildWrite, EventRecord, Lease, ResourceUpdate, Store
from setpoint.engine.resource import Resource
from setpoint.errors import LeaseLost
from setpoint.runtime.sharding.fencing import FencedStore
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.stores.samples import REF, instance

# Updates of one part are updates.
PARTS = ("annotate", "set_finalizers", "update_status")
WRITES = (*PARTS, "apply", "create", "delete", "record_event", "replace", "update", "write_children")
UNFENCED = ("acquire", "close", "get", "get_many", "leases", "list", "events", "pages", "refresh", "release", "watch")
EVENT = EventRecord(REF, "uid", "Normal", "Reason", "message", "2026-01-01T00:00:00Z")


class Refusing:
    def check(self, attempt: FencedWrite) -> float:
        raise LeaseLost(f"{attempt}: refused")


class Allowing:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def check(self, attempt: FencedWrite) -> float:
        return self._seconds


def arguments_of(name: str, resource: Resource) -> tuple[Any, ...]:
    return {
        "annotate": (resource, {"a": "1"}),
        "apply": (instance(),),
        "create": (instance("another"),),
        "delete": (REF,),
        "record_event": (EVENT,),
        "replace": (resource, instance(spec={"settings": {"tier": "large"}})),
        "set_finalizers": (resource, ("x.dev/f",)),
        "update": (resource, ResourceUpdate(status={"size": 1})),
        "update_status": (resource, {"size": 1}),
        "write_children": ([ChildWrite(instance("another")), ChildWrite(instance(), resource)],),
        "acquire": ("name", "me", 15.0),
        "release": (Lease("name", "me", 1, 0.0),),
        "leases": ("",),
        "get": (REF,),
        "get_many": ([REF],),
        "refresh": ([REF],),
        "list": (),
        "events": (),
        "close": (),
    }[name]


def test_every_store_method_is_classified() -> None:
    methods = [name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")]

    assert sorted(WRITES + UNFENCED) == methods


@pytest.mark.parametrize("name", WRITES)
def test_a_refused_write_does_not_reach_the_store(name: str) -> None:
    verb = "update" if name in PARTS else name

    async def scenario(store: MemoryStore, fenced: Store, resource: Resource) -> None:
        before, events = await store.list(), await store.events()
        with fenced_by(Refusing()), pytest.raises(LeaseLost, match=rf"^{verb} SQLInstance.* refused"):
            await getattr(fenced, name)(*arguments_of(name, resource))

        assert (await store.list(), await store.events()) == (before, events)

    play(scenario)


@pytest.mark.parametrize("name", WRITES)
def test_a_permitted_or_unfenced_write_reaches_the_store(name: str) -> None:
    async def scenario(store: MemoryStore, fenced: Store, resource: Resource) -> None:
        await getattr(fenced, name)(*arguments_of(name, resource))
        other = MemoryStore(VirtualClock(), lambda: "uid")
        again = await other.apply(instance())
        with fenced_by(Allowing(5)):
            await getattr(FencedStore(other), name)(*arguments_of(name, again))

        assert (await store.list()).resources == (await other.list()).resources
        assert await store.events() == await other.events()

    play(scenario)


def test_collects_is_that_of_the_store_behind() -> None:
    store = MemoryStore(VirtualClock(), lambda: "uid")

    assert FencedStore(store).collects is store.collects


@pytest.mark.parametrize("name", [name for name in UNFENCED if name not in ("pages", "watch")])
def test_reads_and_leases_need_no_permit(name: str) -> None:
    async def scenario(_store: MemoryStore, fenced: Store, resource: Resource) -> None:
        with fenced_by(Refusing()):
            await getattr(fenced, name)(*arguments_of(name, resource))

    play(scenario)


def test_pages_and_watches_need_no_permit() -> None:
    async def scenario(store: MemoryStore, fenced: Store, resource: Resource) -> None:
        since = (await store.list()).revision
        await store.update_status(resource, {"size": 1})
        with fenced_by(Refusing()):
            pages = [page async for page in fenced.pages()]
            event = await anext(fenced.watch(since))

        assert [one.ref for page in pages for one in page.resources] == [REF]
        assert event.resource.status == {"size": 1}

    play(scenario)


def test_a_write_is_cancelled_when_its_permit_expires() -> None:
    async def scenario(store: MemoryStore, fenced: Store, resource: Resource) -> None:
        async def never(*_: object, **__: object) -> None:
            await asyncio.sleep(10**6)

        store.update = never  # type: ignore[method-assign] # a store that hangs
        with fenced_by(Allowing(5)), pytest.raises(LeaseLost, match=r"^update .*: no answer while the lease"):
            await fenced.update_status(resource, {})

        assert VirtualClock().monotonic() == 5.0

    play(scenario)


def play(scenario: Callable[[MemoryStore, Store, Resource], Awaitable[None]]) -> None:
    async def main() -> None:
        store = MemoryStore(VirtualClock(), lambda: "uid")
        await scenario(store, FencedStore(store), await store.apply(instance()))

    run(main())
