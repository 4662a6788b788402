"""Programs: sequences of store operations as values, and the answers of a store."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.ports import ChildWrite, EventRecord, Lease, ResourceChange, ResourceQuery, ResourceUpdate, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import SetpointError
from tests.engine.clock import FakeClock
from tests.stores.samples import GROUP, instance, secret, take

INSTANCES = tuple(ResourceRef(GROUP, "SQLInstance", "default", name) for name in "ab")
REFS = (*INSTANCES, ResourceRef("", "Secret", "default", "login"))


@dataclass(frozen=True)
class Apply:
    manifest: JsonObject


@dataclass(frozen=True)
class Create:
    document: JsonObject


@dataclass(frozen=True)
class Write:
    """A write on a resource as it was seen `ago` answers before the last one about it."""

    ref: ResourceRef
    ago: int
    verb: str
    value: Any


@dataclass(frozen=True)
class Update:
    """Several parts of a resource at once, as it was seen `ago` answers before the last one about it."""

    ref: ResourceRef
    ago: int
    update: ResourceUpdate


@dataclass(frozen=True)
class Children:
    """Documents that are created, or replace what was seen that many answers ago."""

    writes: tuple[tuple[JsonObject, int | None], ...]


@dataclass(frozen=True)
class Delete:
    ref: ResourceRef


@dataclass(frozen=True)
class RecordEvent:
    event: EventRecord


@dataclass(frozen=True)
class Acquire:
    holder: str
    seconds: int


@dataclass(frozen=True)
class Release:
    lease: Lease


@dataclass(frozen=True)
class Wait:
    seconds: int


Operation: TypeAlias = Apply | Create | Write | Update | Children | Delete | RecordEvent | Acquire | Release | Wait

_values: st.SearchStrategy[Json] = st.sampled_from((0, 1, 1.0, True, None, "", "x", 2**70, {"a": []}))
_labels = st.dictionaries(st.sampled_from(("team", "tier")), st.sampled_from(("a", "b")), max_size=2)
_annotations = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "2")), max_size=2)
_names = st.sampled_from(("a", "b", "a", "b", "Not A Name"))
_manifests = st.builds(
    instance, _names, st.fixed_dictionaries({"size": _values}), labels=_labels, annotations=_annotations
) | st.builds(secret, stringData=st.dictionaries(st.sampled_from("pq"), st.sampled_from(("1", "2")), max_size=2))
_references = st.sampled_from(((), ({"kind": "Parent", "name": "p", "uid": "u"},)))
_documents = _manifests | st.builds(
    instance, _names, st.fixed_dictionaries({"size": _values}), labels=_labels, ownerReferences=_references
)
_refs = st.sampled_from(REFS)
_ago = st.sampled_from((0, 0, 0, 1, 2))
_statuses = st.dictionaries(st.sampled_from("mn"), _values, max_size=2)
_finalizers = st.lists(st.sampled_from("fg"), max_size=2).map(tuple)
_edits = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "3", None)), max_size=2)
_moments = st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"))
_uids = st.sampled_from(("uid-1", "uid-2"))
_notes = st.builds(EventRecord, _refs, _uids, st.just("Normal"), st.sampled_from("rstuv"), st.just("m"), _moments)
_holders = st.sampled_from(("me", "you"))
_updates = st.builds(
    ResourceUpdate,
    status=st.none() | _statuses,
    finalizers=st.none() | _finalizers,
    annotations=st.none() | _edits,
    events=st.lists(_notes, max_size=2),
)
_children = st.lists(st.tuples(_documents, st.sampled_from((None, None, 0, 1))), max_size=3).map(tuple)


def _replacement(document: JsonObject, ago: int) -> Write:
    """Of the resource that the document is about, or of another one."""
    ref = Resource(document).ref._replace(namespace="default")
    return Write(ref if ref in REFS else REFS[0], ago, "replace", document)


operations: st.SearchStrategy[Operation] = (
    st.builds(Apply, _manifests)
    | st.builds(Create, _documents)
    | st.builds(_replacement, _documents, _ago)
    | st.builds(Write, _refs, _ago, st.just("update_status"), _statuses)
    | st.builds(Write, _refs, _ago, st.just("set_finalizers"), _finalizers)
    | st.builds(Write, _refs, _ago, st.just("annotate"), _edits)
    | st.builds(Update, _refs, _ago, _updates)
    | st.builds(Children, _children)
    | st.builds(Delete, _refs)
    | st.builds(RecordEvent, _notes)
    | st.builds(Acquire, _holders, st.integers(1, 3))
    | st.builds(Release, st.builds(Lease, st.just("shard"), _holders, st.integers(1, 3), st.just(0.0)))
    | st.builds(Wait, st.integers(1, 2))
)
programs = st.lists(operations, max_size=25)


@dataclass
class Run:
    """Runs a program on one store."""

    store: Store
    clock: FakeClock
    seen: dict[ResourceRef, list[Resource]] = field(default_factory=dict)

    async def perform(self, operation: Operation) -> object:
        """The answer of the store; an error is an answer, too."""
        try:
            return self._noticed(await self._perform(operation))
        except SetpointError as error:
            return (type(error), str(error))

    async def _perform(self, operation: Operation) -> object:
        match operation:
            case Apply() | Create() | Write() | Update() | Delete():
                return await self._write(operation)
            case Children(writes):
                found = [self._child(document, ago) for document, ago in writes]
                return [self._noticed(one) for one in await self.store.write_children(found)]
            case RecordEvent(event):
                await self.store.record_event(event)
            case Acquire(holder, seconds):
                return await self.store.acquire("shard", holder, seconds)
            case Release(lease):
                await self.store.release(lease)
            case Wait(seconds):
                await self.clock.sleep(seconds)
        return None

    def _child(self, document: JsonObject, ago: int | None) -> ChildWrite:
        known = self.seen.get(Resource(document).ref._replace(namespace="default"), [])
        return ChildWrite(document, None if ago is None or ago >= len(known) else known[-1 - ago])

    async def _write(self, operation: Apply | Create | Write | Update | Delete) -> Resource | None:
        answer: Resource | None = None
        match operation:
            case Apply(manifest):
                answer = await self.store.apply(manifest)
            case Create(document):
                answer = await self.store.create(document)
            case Write(ref, ago, verb, value):
                known = self.seen.get(ref, [])
                answer = await getattr(self.store, verb)(known[-1 - ago], value) if ago < len(known) else None
            case Update(ref, ago, update):
                known = self.seen.get(ref, [])
                answer = await self.store.update(known[-1 - ago], update) if ago < len(known) else None
            case Delete(ref):
                answer = await self.store.delete(ref)
        return answer

    def _noticed(self, answer: object) -> object:
        if not isinstance(answer, Resource):
            return answer
        self.seen.setdefault(answer.ref, []).append(answer)
        return exact(answer)


def exact(resource: Resource) -> bytes:
    """Bytes, because Python takes True for 1."""
    return canonical(resource.document)


async def everything(store: Store, query: ResourceQuery) -> list[ResourceChange]:
    """All events for `query` since the store was made, up to a last one that every query here matches."""
    last = await store.apply(instance("end", labels={"team": "a"}))
    events = store.watch(Revision("0"), query)
    found = await take(events, 1)
    while found[-1].resource.ref != last.ref:
        found += await take(events, 1)
    return found
