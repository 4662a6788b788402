"""A controller, with its kind and its series, is made for the first resource of the kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_mapping import DeferredMapping
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, Intent, RemoteOperation
from setpoint.runtime.manager import Manager, Phase
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GROUP, GadgetKind, Service, gadget_ref
from tests.runtime.manager_harness import running_manager

NAMES = ("Gadget", "Widget", "Unused")


@dataclass
class _SlowKind(GadgetKind):
    clock: VirtualClock = field(kw_only=True)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        await self.clock.sleep(5.0)
        return await GadgetKind.create(self, intent, wanted)


class _Made:
    """Kinds that say when they are made."""

    def __init__(self, service: Service, clock: VirtualClock) -> None:
        self.names: list[str] = []
        self._service, self._clock = service, clock

    def kinds(self) -> Mapping[GroupKind, AnyKind]:
        return DeferredMapping({(GROUP, name): partial(self._make, name) for name in NAMES})

    def _make(self, name: str) -> AnyKind:
        self.names.append(name)
        return _SlowKind(self._service, name=name, clock=self._clock)


def _widget(name: str) -> dict[str, Any]:
    return {**gadget(name, {"size": 1}), "kind": "Widget"}


async def _samples(telemetry: Telemetry) -> set[str]:
    body, _ = await telemetry.page("text/plain")
    lines = [line for line in body.decode().splitlines() if line.startswith("controller_runtime_reconcile_total{")]
    return {name for name in NAMES for line in lines if f'controller="{name}"' in line}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_kind_is_made_for_its_first_resource(is_late: bool) -> None:
    async def play() -> None:
        clock, service, telemetry = VirtualClock(), Service(), Telemetry()
        made, store = _Made(service, clock), MemoryStore(clock, lambda: "uid")
        manager = Manager(EngineContext(store, clock, made.kinds(), metrics=telemetry), telemetry)
        telemetry.watch(manager)
        await store.apply(gadget("g", {"size": 1}))
        if not is_late:
            await store.apply(_widget("w"))
        async with running_manager(manager):
            await clock.sleep(10)
            assert await _samples(telemetry) == set(made.names) == {"Gadget"} | ({"Widget"} if not is_late else set())
            if is_late:
                await store.apply(_widget("w"))
                await clock.sleep(10)
            assert set(service.objects) == {"g", "w"}
            assert await _samples(telemetry) == set(made.names) == {"Gadget", "Widget"}
            assert manager.failed_tasks == []
        assert made.names.count("Widget") == 1
        assert [one.name for one in manager.controllers.values()] == ["Gadget", "Widget"]

    run(play())


def test_a_kind_whose_first_resource_comes_while_the_process_stops_takes_no_step() -> None:
    async def play() -> None:
        clock, service, telemetry = VirtualClock(), Service(), Telemetry()
        made, store = _Made(service, clock), MemoryStore(clock, lambda: "uid")
        manager = Manager(EngineContext(store, clock, made.kinds(), metrics=telemetry), telemetry)
        await store.apply(gadget("g", {"size": 1}))
        async with running_manager(manager):
            await clock.sleep(1)
            manager.stop()
            await clock.sleep(1)
            assert manager.phase is Phase.DRAINING
            await store.apply(_widget("w"))
            await clock.sleep(60)
        assert service.calls.count(("create", "w")) == 0
        stored = await store.get(gadget_ref("w")._replace(kind="Widget"))
        assert stored is not None
        assert stored.status == {}

    run(play())
