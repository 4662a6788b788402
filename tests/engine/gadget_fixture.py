"""The fixture of the gadget: a kind with every capability, and a service without a network."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import AnyKind, Reconciliation
from tests.engine.gadgets import GROUP, VERSION, Fault, GadgetKind, Service, gadget_ref
from tests.engine.kind_fixture import (
    EVERY_VERB,
    Fixed,
    KindFixture,
    Part,
    Protection,
    Referring,
    Spec,
    Specified,
    Trouble,
    Unspecified,
)

NAME: Final = "g"


def gadget(name: str, spec: Spec, **metadata: Any) -> dict[str, Any]:
    """The manifest of a gadget."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": name, **metadata}, "spec": spec}


class GadgetFixture(KindFixture):
    """A gadget that keeps a cookie."""

    title = "Gadget"
    without: ClassVar[Mapping[Part, str]] = {Part.STATELESS: "it keeps a cookie"}
    reconciliation: ClassVar[Reconciliation] = Reconciliation.STATEFUL
    ref = gadget_ref(NAME)
    field = Specified("spec.size", "size", 1, 2, 9)
    bare: ClassVar[Spec] = {}
    moved: ClassVar[Spec] = {"size": 1, "resourceID": "elsewhere"}
    unspecified = Unspecified({"size": 1}, "spec.note", "note", "theirs")
    unlisted = Unspecified({"size": 1}, "spec.mode", "mode", "server's own", "auto")
    referring = Referring({"size": 1, "parentRef": "p"}, gadget("p", {}), "reference Gadget default/p")
    outputs: ClassVar[Mapping[str, Json]] = {"address": "10.0.0.1", "serial": "1"}
    fixed = Fixed({"zone": "a"}, {"zone": "b"}, 'spec.zone cannot change from "a" to "b"')
    protections = (Protection({"size": 1, "backups": True}, {"size": 2}, {"backups": False}, "backups", True, False),)
    abandoning: ClassVar[Spec] = {"size": 1, "stays": True}
    with_secret: ClassVar[Spec] = {"size": 1, "passwordRef": "s"}

    def __init__(self) -> None:
        self.service = Service()
        self.kind: AnyKind = GadgetKind(self.service, self.reconciliation)

    def holds_secret(self, text: str) -> bool:
        return self.service.passwords == {NAME: text}

    def move_output(self) -> Mapping[str, Json]:
        self.edit("serial", "2")
        return {"serial": "2"}

    def make_slow(self) -> None:
        self.service.slow = True

    def fail_operation(self, message: str) -> None:
        self.service.failing = message

    def spec(self, value: Json) -> Spec:
        return {"size": value}

    def manifest(self, spec: Spec, **metadata: Any) -> dict[str, Any]:
        return gadget(NAME, spec, **metadata)

    @property
    def objects(self) -> list[str]:
        return list(self.service.objects)

    def read(self, member: str) -> Json | Missing:
        return get_at(self.service.objects.get(NAME, {}), Path.parse(member))

    def edit(self, member: str, value: Json) -> None:
        self.service.objects[NAME][member] = value

    def plant(self, value: Json) -> None:
        self.service.objects[NAME] = {"size": value, "mode": "auto", "labels": {}}

    def remove(self) -> None:
        del self.service.objects[NAME]

    @property
    def calls(self) -> list[str]:
        return [verb for verb, _ in self.service.calls]

    def trouble(self, trouble: Trouble, verbs: Sequence[str] = EVERY_VERB, times: int = 10**6) -> None:
        self.service.faults.append(Fault(trouble, verbs, times))

    def calm(self) -> None:
        self.service.faults.clear()
        self.service.rewrites.clear()

    def rewrite(self, member: str, value: Json) -> None:
        self.service.rewrites[member] = value

    def grow(self) -> None:
        self.edit("addedTomorrow", {"x": 1})

    def finish(self) -> None:
        self.service.finish()

    def kind_over(self, wrap: Callable[[Any], Any]) -> AnyKind:
        kind: AnyKind = wrap(GadgetKind(self.service, self.reconciliation))
        return kind

    async def restart(self) -> None:
        self.kind = GadgetKind(self.service, self.reconciliation)


class StatelessGadgetFixture(GadgetFixture):
    """The same without a cookie."""

    title = "Gadget without a cookie"
    without: ClassVar[Mapping[Part, str]] = {Part.COOKIE: "it is stateless: it compares every time"}
    reconciliation = Reconciliation.STATELESS


@asynccontextmanager
async def gadget_stand() -> AsyncIterator[GadgetFixture]:
    """A new service with no gadget in it."""
    yield GadgetFixture()


@asynccontextmanager
async def stateless_gadget_stand() -> AsyncIterator[GadgetFixture]:
    """The same for the gadget without a cookie."""
    yield StatelessGadgetFixture()
