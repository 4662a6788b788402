"""A service with objects in the form of Kubernetes, and a kind with every capability."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.plan import Action, PlannedWrite, PlanOptions
from setpoint.core.redaction import REDACTED
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import Mark
from setpoint.core.values.canonical import canonical, same, sha256_hex
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.core.wait.wait_for import WaitFor, parse_wait
from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.kind import (
    ANY_GROUP,
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    LiveObservation,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    ValueReference,
)
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import AlreadyExists, ImmutableFieldChanged, RemoteConflict, RemoteRefused, RemoteUnavailable

GROUP, VERSION = "things.setpoint.dev", "v1"
TOPIC: Final = WatchTopic("things")
_DEFINITION: Final = CrdDetails()


class ThingSpec(Struct):
    zone: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    host: str | UnsetType = UNSET
    secret: Annotated[str | UnsetType, Mark.WRITE_ONLY] = UNSET


class ThingTree(Struct):
    spec: ThingSpec


class Thing(Struct):
    """The live object, as far as it is ours."""

    uid: str
    spec: dict[str, Any]


def thing_ref(name: str) -> ResourceRef:
    """The thing of that name."""
    return ResourceRef(GROUP, "Thing", "default", name)


def thing(
    name: str, wanted: Mapping[str, Any], annotations: Mapping[str, str] | None = None, **spec: Any
) -> JsonObject:
    """The manifest of a thing: what its object is to be like, and what else its spec says."""
    metadata: dict[str, Json] = {"name": name, "annotations": dict(annotations or {})}
    full_spec = {"object": dict(wanted), **spec}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Thing", "metadata": metadata, "spec": full_spec}


def value_of(name: str, path: str) -> Json:
    """What a spec says where a value of another thing is to be."""
    return {"$ref": {"kind": "Thing", "name": name, "path": path}}


def _nothing(_name: str) -> None:
    """Does nothing."""


@dataclass(slots=True)
class Service:
    """The service of things. `set_status` acts as the controllers that fill their status."""

    clock: Clock
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    # Why the service does not answer; and for which verbs, when it is not for all.
    down: str = ""
    down_for: Sequence[str] = ("get", "dry run", "create", "update", "delete")
    # How long an answer takes, and how many were under way at once.
    latency: float = 0.0
    busiest: int = 0
    # Whether an object is refused, even in a dry run, as long as another one exists.
    exclusive: bool = False
    # Objects with a finalizer that holds their deletion.
    held: set[str] = field(default_factory=set)
    # The uids of those that are gone.
    deleted: list[str] = field(default_factory=list)
    watches: int = 0
    # Called with each object that is created.
    made: Callable[[str], None] = _nothing
    _busy: int = 0
    _queues: list[asyncio.Queue[Location | None]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The calls that ask for a change."""
        return [call for call in self.calls if call[0] not in ("get", "dry run")]

    async def ask(self, verb: str, name: str) -> None:
        """A call that is on record, and takes its time."""
        self.calls.append((verb, name))
        self._busy += 1
        self.busiest = max(self.busiest, self._busy)
        try:
            if self.latency:
                await self.clock.sleep(self.latency)
        finally:
            self._busy -= 1
        if self.down and verb in self.down_for:
            raise RemoteUnavailable(f"{verb} {name}: {self.down}")

    def require_free(self, name: str) -> None:
        """RemoteRefused if objects exclude each other, and another one exists."""
        other_things = [one for one in self.objects if one != name]
        if self.exclusive and other_things:
            raise RemoteRefused(f"{name}: {other_things[0]} uses the same address")

    def put(self, name: str, spec: Mapping[str, Any]) -> None:
        """Makes the object, or gives it this spec."""
        if name not in self.objects:
            metadata = {"name": name, "uid": f"uid-{next(self._numbers)}", "generation": 0}
            self.objects[name] = {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": None}
            self.made(name)
        found = self.objects[name]
        if not same(found["spec"], dict(spec)):
            found["spec"] = dict(spec)
            found["metadata"]["generation"] += 1
        self._touch(name)

    def set_status(self, name: str, **members: Any) -> None:
        """A controller sets these members of its status; None removes one."""
        status = {**self.objects[name].get("status", {}), **members}
        self.objects[name]["status"] = {key: value for key, value in status.items() if value is not None}
        self._touch(name)

    def remove(self, name: str) -> None:
        """The object is gone, unless its deletion is held up."""
        if name in self.held:
            self.objects[name]["metadata"]["deletionTimestamp"] = self.clock.now()
        elif name in self.objects:
            self.deleted.append(self.objects.pop(name)["metadata"]["uid"])
        self.announce(Location(name))

    def let_go(self, name: str) -> None:
        """A deletion is not held up any more."""
        self.held.discard(name)
        if "deletionTimestamp" in self.objects.get(name, {}).get("metadata", {}):
            self.remove(name)

    def announce(self, where: Location | None) -> None:
        """Sends a change to every watch."""
        for queue in self._queues:
            queue.put_nowait(where)

    async def changes(self) -> AsyncGenerator[Location | None, None]:
        """The stream of changes of a watch."""
        queue: asyncio.Queue[Location | None] = asyncio.Queue()
        self._queues.append(queue)
        self.watches += 1
        try:
            yield None
            while True:
                yield await queue.get()
        finally:
            self._queues.remove(queue)
            self.watches -= 1

    def _touch(self, name: str) -> None:
        self.objects[name]["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.announce(Location(name))


@dataclass(slots=True)
class ThingKind:
    """What the author of such a kind writes."""

    service: Service
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    group: str = GROUP
    version: str = VERSION
    name: str = "Thing"
    annotations: Sequence[str] = ()
    live_type: type[Thing] = Thing
    tree_type: type[Struct] = ThingTree
    definition: CrdDetails = _DEFINITION

    def check(self, resource: Resource) -> None:
        self.wait_for(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        return tuple(_values_in(_object(resource), resource))

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        return Location(str(resource.spec.get("called", resource.ref.name)))

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        assert not resolved.resources
        given = {name: resolved.values.get(f"spec.{name}", one) for name, one in _object(resource).items()}
        return {"spec": given}

    def view(self, live: Thing) -> JsonObject:
        return {"spec": live.spec}

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        return effective_state(spec, live, policy)

    def abandons(self, resource: Resource) -> bool:
        return False

    def sending(self, intent: Intent) -> PlanOptions:
        return PlanOptions()

    # --- Abilities ---------------------------------------------------------------------------------------------------

    def wait_for(self, resource: Resource) -> WaitFor | None:
        return parse_wait(resource.spec["waitFor"]) if "waitFor" in resource.spec else None

    def may_replace(self, resource: Resource) -> bool:
        return resource.spec.get("replace") is True

    def watch_topic(self, location: Location) -> WatchTopic:
        return TOPIC

    def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        return self.service.changes()

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        await self.service.ask("dry run", intent.location)
        self.service.require_free(intent.location)
        wanted, live = _members(intent.declared.tree), {} if isinstance(observed, Absent) else observed.live.spec
        changes = tuple(_changes(live, wanted))
        if isinstance(observed, Absent):
            return (PlannedWrite(Action.CREATE, "create", changes),)
        if not changes:
            return ()
        if live.get("zone") == wanted.get("zone"):
            return (PlannedWrite(Action.UPDATE, "update", changes),)
        if self.may_replace(intent.resource):
            return (PlannedWrite(Action.REPLACE, "replace", changes),)
        raise ImmutableFieldChanged("spec.zone cannot change", ("spec.zone",))

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Thing] | Unchanged:
        await self.service.ask("get", location)
        found = self.service.objects.get(location)
        if found is None:
            return Absent()
        body = canonical(found)
        if sha256_hex(body) == known:
            return Unchanged()
        whole = msgspec.json.decode(body)
        return Present(Thing(whole["metadata"]["uid"], whole["spec"]), sha256_hex(body), whole=whole)

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        await self.service.ask("create", intent.location)
        self.service.require_free(intent.location)
        if intent.location in self.service.objects:
            raise AlreadyExists(f"{intent.location} is there")
        self.service.put(intent.location, _members(wanted))
        return None

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Thing]
    ) -> RemoteOperation | None:
        if write.action is Action.REPLACE:
            return await self.delete(intent.location, before, intent.resource)
        await self.service.ask("update", intent.location)
        if intent.location not in self.service.objects:
            raise RemoteConflict(f"{intent.location} is not there any more")
        self.service.put(intent.location, _members(wanted))
        return None

    async def delete(self, location: Location, before: Present[Thing], resource: Resource) -> RemoteOperation | None:
        await self.service.ask("delete", location)
        if self._uid_at(location) == before.live.uid:
            self.service.remove(location)
        return RemoteOperation(f"{location}/{before.live.uid}") if self._uid_at(location) == before.live.uid else None

    async def poll(self, operation: RemoteOperation) -> bool:
        location, uid = operation.name.split("/")
        await self.service.ask("get", location)
        return self._uid_at(location) != uid

    def _uid_at(self, location: str) -> str | None:
        found = self.service.objects.get(location)
        return None if found is None else str(found["metadata"]["uid"])


def _object(resource: Resource) -> dict[str, Any]:
    found = resource.spec["object"]
    assert isinstance(found, dict)
    return found


def _members(tree: JsonObject) -> dict[str, Any]:
    spec = tree["spec"]
    assert isinstance(spec, dict)
    return spec


def _values_in(wanted: Mapping[str, Any], resource: Resource) -> Iterator[ValueReference]:
    for name, one in wanted.items():
        if isinstance(one, dict) and "$ref" in one:
            ref = one["$ref"]
            namespace = ref.get("namespace", resource.ref.namespace)
            target = ResourceRef(ref.get("group", ANY_GROUP), ref["kind"], namespace, ref["name"])
            yield ValueReference(f"spec.{name}", target, Path.parse(ref["path"]))


def _changes(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[FieldChange]:
    for name in sorted({*live, *wanted}):
        before, after = live.get(name, MISSING), wanted.get(name, MISSING)
        if isinstance(before, Missing) or isinstance(after, Missing) or not same(before, after):
            yield FieldChange(Path(("spec", name)), _shown(name, before), _shown(name, after))


def _shown(name: str, side: Json | Missing) -> Json | Missing:
    return REDACTED if name == "secret" and not isinstance(side, Missing) else side
