"""What the metrics page reads of a manager, without a running one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadgets import GROUP, GadgetKind


@dataclass
class ManagerView:
    """A manager that does not run."""

    engine: EngineContext
    index: ResourceIndex = field(default_factory=lambda: ResourceIndex({}))
    controllers: Mapping[tuple[str, str], Controller] = field(default_factory=dict)
    replica: ControllerReplica | None = None


def manager_view(*kinds: GadgetKind) -> ManagerView:
    """A manager of these kinds, with ten workers each."""
    engine = EngineContext(
        MemoryStore(FakeClock(), lambda: "uid"), FakeClock(), {(kind.group, kind.name): kind for kind in kinds}
    )
    view = ManagerView(engine, ResourceIndex(engine.kinds))
    view.controllers = {
        key: Controller(kind, engine, view.index, workers=10, metrics=Telemetry(), stop=lambda error: None)
        for key, kind in engine.kinds.items()
    }
    return view


def watched(*kinds: GadgetKind) -> Telemetry:
    """The telemetry of a manager of these kinds, which all have resources."""
    telemetry, view = Telemetry(), manager_view(*kinds)
    watch(telemetry, view)
    return telemetry


def watch(telemetry: Telemetry, view: ManagerView) -> None:
    """The telemetry watches the manager and its controllers."""
    telemetry.watch(view)
    for kind in sorted(view.engine.kinds.values(), key=lambda one: one.name):
        telemetry.add_kind(kind)


def resource(name: str, *, kind: str = "Gadget", ready: str = "True") -> Resource:
    """A resource with that Ready condition."""
    status: Json = {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready}]}
    metadata: Json = {"namespace": "default", "name": name, "generation": 1, "resourceVersion": "1"}
    return Resource({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "status": status})
