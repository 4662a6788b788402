"""A small service with everything a kind has to cope with, and the kind for it. It really keeps its objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.values.canonical import canonical, sha256_hex
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    Reference,
    RemoteOperation,
    ResolvedReferences,
    SecretKeyReference,
    Unchanged,
)
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import OperationRunning, RemoteConflict, RemoteError, RemoteRefused, RemoteUnavailable
from setpoint.testing.faults import CallFault

T = TypeVar("T")
GROUP, VERSION = "test.setpoint.dev", "v1"
# What the spec says besides what the object is like.
_NOT_THE_OBJECT: Final = ("parentRef", "passwordRef", "resourceID", "stays")
_DEFINITION: Final = CrdDetails()
# Every other fault means that nothing is known.
_ERRORS: Final[Mapping[CallFault, Callable[[str], RemoteError]]] = {
    CallFault.REFUSED: RemoteRefused,
    CallFault.CONFLICT: RemoteConflict,
}


class Port(Struct):
    name: str
    number: int | UnsetType = UNSET


class GadgetSpec(Struct):
    zone: Annotated[str | UnsetType, Mark.IMMUTABLE] = UNSET
    size: int | UnsetType = UNSET
    mode: Annotated[str | UnsetType, Default("auto")] = UNSET
    backups: Annotated[bool | UnsetType, Mark.PROTECTED] = UNSET
    ports: Annotated[list[Port] | UnsetType, Keyed("name")] = UNSET
    password: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET
    parent: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class GadgetLabels(Struct):
    labels: dict[str, str] | UnsetType = UNSET


class GadgetTree(Struct):
    spec: GadgetSpec
    metadata: GadgetLabels | UnsetType = UNSET


class Gadget(Struct):
    """The live object, cut to what the kind models."""

    zone: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    backups: bool | UnsetType = UNSET
    ports: list[Port] | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET


@dataclass(slots=True)
class Fault:
    """Calls with these verbs go wrong, so many times."""

    fault: CallFault
    verbs: Sequence[str]
    times: int


@dataclass(slots=True)
class Job:
    """A long-running operation. Its effect comes at the end, or never when there is an error."""

    effect: Callable[[], None]
    error: str = ""
    is_over: bool = False


@dataclass(slots=True)
class Service:
    """The service of gadgets. `rewrites` are members that it sets its own way after every write."""

    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    passwords: dict[str, Json] = field(default_factory=dict)
    rewrites: dict[str, Json] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    slow: bool = False
    # The error that the next job ends with.
    failing: str = ""

    def ask(self, verb: str, name: str, work: Callable[[], T]) -> T:
        """What `work` comes to, once the call is on record; or the fault of the call."""
        self.calls.append((verb, name))
        fault = next((one for one in self.faults if verb in one.verbs and one.times), None)
        if fault is None:
            return work()
        fault.times -= 1
        if fault.fault is CallFault.LOST:
            work()
        raise _ERRORS.get(fault.fault, RemoteUnavailable)(f"{verb} {name}: {fault.fault.value}")

    def put(self, name: str, members: dict[str, Json]) -> RemoteOperation | None:
        """Keeps the object. A new one can be seen at once, even when there is work left to do."""
        is_new = name not in self.objects

        def effect() -> None:
            stored = dict(members)
            if "password" in stored:
                self.passwords[name] = stored.pop("password")
            self.objects[name] = {"etag": str(len(self.calls)), **stored, **self.rewrites}

        if is_new and self.slow and not self.failing:
            effect()
        return self._work(effect)

    def drop(self, name: str) -> RemoteOperation | None:
        """Forgets the object."""

        def effect() -> None:
            self.objects.pop(name, None)

        return self._work(effect)

    def finish(self) -> None:
        """Every job is over."""
        for job in self.jobs.values():
            if not job.is_over and not job.error:
                job.effect()
            job.is_over = True

    def poll(self, name: str) -> bool:
        """Whether the job is over; RemoteRefused when it came to nothing."""
        job = self.jobs[name]
        if job.is_over and job.error:
            raise RemoteRefused(f"operation {name} failed: {job.error}")
        return job.is_over

    def _work(self, effect: Callable[[], None]) -> RemoteOperation | None:
        if not all(job.is_over for job in self.jobs.values()):
            raise OperationRunning("another operation is in progress")
        if not self.slow and not self.failing:
            effect()
            return None
        name, error = f"op-{len(self.jobs) + 1}", self.failing
        self.failing = ""
        self.jobs[name] = Job(effect, error)
        return RemoteOperation(name)


@dataclass(slots=True)
class GadgetKind:
    """Four verbs and a few mappings: what the author of a kind writes."""

    service: Service
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    group: str = GROUP
    version: str = VERSION
    name: str = "Gadget"
    annotations: Sequence[str] = ("test.setpoint.dev/flavour",)
    live_type: type[Gadget] = Gadget
    tree_type: type[Struct] = GadgetTree
    definition: CrdDetails = _DEFINITION

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        found: list[Dependency] = []
        parent, secret = resource.spec.get("parentRef"), resource.spec.get("passwordRef")
        if isinstance(parent, str):
            found.append(Reference("spec.parentRef", gadget_ref(parent)))
        if isinstance(secret, str):
            ref = ResourceRef("", "Secret", resource.ref.namespace, secret)
            found.append(SecretKeyReference("spec.password", ref, "password"))
        return found

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        return Location(str(resource.spec.get("resourceID", resource.ref.name)))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        spec = {name: value for name, value in resource.spec.items() if name not in _NOT_THE_OBJECT}
        spec.update({name.removeprefix("spec."): value for name, value in resolved.secrets.items()})
        for parent in resolved.resources.values():
            spec["parent"] = parent.ref.name
        return {"spec": spec, "metadata": {"labels": dict(resource.labels)}}

    def view(self, live: Gadget) -> JsonObject:
        members = msgspec.to_builtins(live)
        labels = members.pop("labels", {})
        return {"spec": members, "metadata": {"labels": labels}}

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        return effective_state(spec, live, policy)

    def check(self, resource: Resource) -> None:
        """Anything goes."""

    def abandons(self, resource: Resource) -> bool:
        return resource.spec.get("stays") is True

    def sending(self, intent: Intent) -> PlanOptions:
        return PlanOptions()

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        found = self.service.ask("get", location, lambda: self.service.objects.get(location))
        if found is None:
            return Absent()
        mark = sha256_hex(canonical(found))
        if mark == known:
            return Unchanged()
        outputs = {"address": f"10.0.0.{found.get('size', 0)}", "serial": found.get("serial", "1")}
        return Present(msgspec.convert(found, self.live_type), mark, outputs=outputs)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        def work() -> RemoteOperation | None:
            if intent.location in self.service.objects:
                raise RemoteConflict(f"{intent.location} is there already")
            return self.service.put(intent.location, _members(wanted))

        return self.service.ask("create", intent.location, work)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Gadget]
    ) -> RemoteOperation | None:
        def work() -> RemoteOperation | None:
            if intent.location not in self.service.objects:
                raise RemoteConflict(f"{intent.location} is not there any more")
            return self.service.put(intent.location, _members(wanted))

        return self.service.ask("update", intent.location, work)

    async def delete(self, location: Location, before: Present[Gadget], resource: Resource) -> RemoteOperation | None:
        return self.service.ask("delete", location, lambda: self.service.drop(location))

    async def poll(self, operation: RemoteOperation) -> bool:
        return self.service.ask("get", operation.name, lambda: self.service.poll(operation.name))


def gadget_ref(name: str) -> ResourceRef:
    """The gadget of that name."""
    return ResourceRef(GROUP, "Gadget", "default", name)


def _members(wanted: JsonObject) -> dict[str, Json]:
    spec, metadata = wanted["spec"], wanted.get("metadata", {})
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    return {**spec, "labels": metadata.get("labels", {})}
