"""The fixture of the gadget: a kind with every capability, and a service without a network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.testing import (
    CallFault,
    ImmutableChange,
    KindFixture,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.engine.gadgets import GROUP, VERSION, Fault, GadgetKind, Service, gadget_ref

NAME: Final = "g"
# What the kind itself tells that it lacks.
TOLD: Final[Mapping[Part, str]] = {
    Part.BULK_OBSERVE: "it observes one object at a time",
    Part.CONTEXT: "it is made with its service",
    Part.FORMER: "it has no former implementation",
    Part.LIST: "gadgets cannot be listed",
}


def gadget(name: str, spec: Spec, **metadata: Any) -> dict[str, Any]:
    """The manifest of a gadget."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": name, **metadata}, "spec": spec}


class GadgetFixture(KindFixture):
    """A gadget that keeps a cookie."""

    without: ClassVar[Mapping[Part, str]] = {**TOLD, Part.STATELESS: "it keeps a cookie"}
    reconciliation: ClassVar[Reconciliation] = Reconciliation.STATEFUL
    name = NAME
    many_steps = 1_000
    ref = gadget_ref(NAME)
    field = SpecifiedField("spec.size", 1, 2, 9)
    moved = MovedObject({"size": 1, "resourceID": "elsewhere"}, "elsewhere")
    unspecified = UnspecifiedField("spec.note", "theirs")
    unlisted = UnspecifiedField("spec.mode", "server's own", "auto")
    referring = ReferringSpec({"size": 1, "parentRef": "p"}, gadget("p", {}), "reference Gadget default/p")
    outputs: ClassVar[Mapping[str, Json]] = {"address": "10.0.0.1", "serial": "1"}
    immutable = ImmutableChange({"zone": "a"}, {"zone": "b"}, 'spec.zone cannot change from "a" to "b"')
    protections = (
        ProtectedField({"size": 1, "backups": True}, {"size": 2}, {"backups": False}, "backups", True, False),
    )
    labels_member = "labels"
    abandoning: ClassVar[Spec] = {"size": 1, "stays": True}
    with_secret: ClassVar[Spec] = {"size": 1, "passwordRef": "s"}

    def __init__(self) -> None:
        self.service = Service()
        self.kind: AnyKind = self.new_kind(self.service)

    async def connect(self) -> None:
        # A kind that a test chose stays until the process restarts.
        if hasattr(self, "client"):
            self.kind = self.new_kind(self.service)
        self.client = self.service

    def open_client(self) -> Service:
        return self.service

    def new_kind(self, client: Any) -> AnyKind:
        assert isinstance(client, Service)
        kind: AnyKind = GadgetKind(client, self.reconciliation)
        return kind

    def kind_over(self, wrap: Callable[[Any], Any]) -> AnyKind:
        # Its service answers at once: there is no await in a call of it.
        kind: AnyKind = wrap(self.new_kind(self.service))
        return kind

    def holds_secret(self, text: str) -> bool:
        return self.service.passwords == {NAME: text}

    def move_output(self) -> Mapping[str, Json]:
        self.drift("serial", "2")
        return {"serial": "2"}

    def make_slow(self) -> None:
        self.service.slow = True

    def fail_operation(self, message: str) -> None:
        self.service.failing = message

    def objects(self) -> list[str]:
        return list(self.service.objects)

    def read(self, member: str) -> Json | Missing:
        return get_at(self.service.objects.get(NAME, {}), Path.parse(member))

    def drift(self, member: str, value: Json) -> None:
        self.service.objects[NAME][member] = value

    def create_outside(self, value: Json) -> None:
        self.service.objects[NAME] = {"size": value, "mode": "auto", "labels": {}}

    def delete_outside(self) -> None:
        del self.service.objects[NAME]

    @property
    def calls(self) -> list[str]:
        return [verb for verb, _ in self.service.calls]

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        self.service.faults.append(Fault(fault, verbs, times))

    def recover(self) -> None:
        self.service.faults.clear()
        self.service.rewrites.clear()

    def rewrite(self, member: str, value: Json) -> None:
        self.service.rewrites[member] = value

    def add_field(self) -> None:
        self.drift("addedTomorrow", {"x": 1})

    def finish(self) -> None:
        self.service.finish()


class StatelessGadgetFixture(GadgetFixture):
    """The same without a cookie."""

    without: ClassVar[Mapping[Part, str]] = {**TOLD, Part.COOKIE: "it is stateless: it compares every time"}
    reconciliation = Reconciliation.STATELESS
