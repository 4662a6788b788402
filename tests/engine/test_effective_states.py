"""How often a step asks its kind for the effective desired state, and which kinds count as having a capability."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import Struct

from setpoint.core.overlay import Declared, EffectiveState, effective_of_trees
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.json_types import JsonObject, Missing
from setpoint.engine.capabilities import SupportsDryRun, SupportsList, SupportsWait
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import SystemClock
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.stores.memory import MemoryStore
from tests.engine import things
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Gadget, GadgetKind, Service, gadget_ref


@dataclass(slots=True)
class CountingKind(GadgetKind):
    """Counts what it is asked for."""

    asked: list[str] = field(default_factory=list)

    def view(self, live: Gadget) -> JsonObject:
        self.asked.append("view")
        return GadgetKind.view(self, live)

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        self.asked.append("effective")
        return GadgetKind.effective(self, spec, live, policy)


class TreeKind(CountingKind):
    """Makes the effective state from trees as well."""

    def effective_tree(self, declared: Declared, live: JsonObject | Missing) -> EffectiveState[Struct]:
        self.asked.append("effective_tree")
        return effective_of_trees(declared, live, self.tree_type)


class KindWithRules(TreeKind):
    """Has rules of its own, which look at structs."""

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        self.asked.append("rules")
        return GadgetKind.effective(self, spec, live, policy)


def asked_by(
    scenario: Callable[[MemoryStore, EngineContext], Awaitable[None]], kind_class: type[CountingKind] = CountingKind
) -> list[str]:
    """What the last step of `scenario` asks the kind for."""
    kind = kind_class(Service())

    async def main() -> None:
        store = MemoryStore(SystemClock(), lambda: "uid-1")
        engine = EngineContext(store, SystemClock(), {(kind.group, kind.name): kind})
        await scenario(store, engine)
        kind.asked.clear()
        assert isinstance(await step(gadget_ref("a"), engine), Settled)

    asyncio.run(main())
    return kind.asked


async def declared(store: MemoryStore, engine: EngineContext) -> None:
    await store.apply(gadget("a", {"size": 1}))


async def edited(store: MemoryStore, engine: EngineContext) -> None:
    await declared(store, engine)
    await step(gadget_ref("a"), engine)
    await store.apply(gadget("a", {"size": 2}))


async def settled(store: MemoryStore, engine: EngineContext) -> None:
    await declared(store, engine)
    await step(gadget_ref("a"), engine)


@pytest.mark.parametrize(
    ("scenario", "asked"),
    [
        # Once for each observation: before the write, and after it.
        (declared, ["effective", "view", "effective"]),
        (edited, ["view", "effective", "view", "effective"]),
        (settled, []),
    ],
)
def test_a_step_makes_the_effective_state_once_for_each_observation(
    scenario: Callable[[MemoryStore, EngineContext], Awaitable[None]], asked: list[str]
) -> None:
    assert asked_by(scenario) == asked


@pytest.mark.parametrize(("kind_class", "word"), [(TreeKind, "effective_tree"), (KindWithRules, "rules")])
def test_a_kind_is_asked_by_trees_unless_a_class_below_redefines_what_is_made_of_structs(
    kind_class: type[CountingKind], word: str
) -> None:
    assert asked_by(edited, kind_class) == ["view", word, "view", word]


class Proxy:
    """Stands for any kind."""

    def __init__(self, kind: object) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def test_a_capability_is_that_of_the_class_or_of_what_a_proxy_stands_for() -> None:
    gadget_kind, thing_kind = GadgetKind(Service()), things.ThingKind(things.Service(SystemClock()))

    for capability in (SupportsDryRun, SupportsWait):
        found = [
            isinstance(one, capability) for one in (gadget_kind, thing_kind, Proxy(gadget_kind), Proxy(thing_kind))
        ]
        assert found == [False, True, False, True]
    assert not isinstance(gadget_kind, SupportsList)
