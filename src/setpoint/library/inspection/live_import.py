"""Manifests of live objects that no resource stands for yet, each with what its plan says."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from setpoint.app import dry_run_apply
from setpoint.core.schema.shape import shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import ImportPlace, KnownObject, SupportsImport
from setpoint.engine.context import EngineContext
from setpoint.engine.importing.drafts import GivenNames, ImportDraft, ReferenceIndex, draft_of
from setpoint.engine.importing.live_lists import LiveInventory, SupportsImportBeside, find_live_objects
from setpoint.engine.importing.proof import ImportOutcome, ProvenDraft, prove
from setpoint.engine.ports import EVERYTHING
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import location_in, outputs_in
from setpoint.errors import PlaceNotNamed, UserError
from setpoint.library.declared import SessionValue
from setpoint.library.outcome import ExitCode
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.label_selector import LabelSelector
from setpoint.library.targets import kind_of_word


@dataclass(frozen=True, slots=True)
class ImportQuery:
    """Which live objects are imported. Without `kinds`, those of every kind that can be listed."""

    project: str
    kinds: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    labels: LabelSelector = LabelSelector()
    fields: FieldSelector = FieldSelector()
    # What objects are in that are in no project: `organizations/1`, `folders/2`.
    parent: str = ""

    def matches(self, manifest: JsonObject) -> bool:
        """Whether the object of a manifest is asked for."""
        resource = Resource(manifest)
        return self.labels.matches(resource.labels) and self.fields.matches(resource)


class ImportObserver:
    """Is told how an import goes on."""

    def listed(self, kind: GroupKind, count: int) -> None:
        """So many objects of a kind were found."""

    def planning(self, count: int) -> None:
        """So many manifests are planned now."""

    def planned(self, ref: ResourceRef, outcome: ImportOutcome) -> None:
        """One of them was."""


@dataclass(frozen=True, slots=True)
class ImportedManifest:
    """The manifest of a live object. `fields` differ still.

    So that nothing differs, `explicit` were written out, and `unmanaged` are left to other writers by an annotation.

    `secrets` are fields that no service tells: they are not in the manifest, or refer to a Secret that is to be made.
    """

    ref: ResourceRef
    location: str
    manifest: JsonObject
    outcome: ImportOutcome
    fields: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()
    unmanaged: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    error: str = ""

    def to_data(self) -> dict[str, Json]:
        """As a member of the document for programs, without the manifest."""
        lists = {
            **{"fields": self.fields, "explicit": self.explicit},
            **{"unmanaged": self.unmanaged, "secrets": self.secrets},
        }
        more: dict[str, Json] = {name: list(value) for name, value in lists.items() if value}
        named: dict[str, Json] = {**self.ref._asdict(), "location": self.location, "outcome": self.outcome.value}
        return {**named, **more, **({"error": self.error} if self.error else {})}


@dataclass(frozen=True, slots=True)
class SkippedObject:
    """A live object without a manifest of its own: it is declared already, or none can be written."""

    kind: str
    location: str
    why: str
    declared: ResourceRef | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LiveImport(SessionValue):
    """What was imported: manifests, what was skipped, and kinds that could not be listed, with the reason of each."""

    manifests: tuple[ImportedManifest, ...]
    skipped: tuple[SkippedObject, ...] = ()
    unlisted: Mapping[str, str] = field(default_factory=dict)
    # Kinds of which those in regions and zones were not looked for, as none was named.
    global_only: tuple[str, ...] = ()
    # Whether each kind was asked for by its name: then one that cannot be listed is a failure.
    is_by_name: bool = True

    @property
    def exit_code(self) -> ExitCode:
        """0 where applying the manifests changes nothing, 2 where it would, 1 where one could not be written."""
        undeclared = [one for one in self.skipped if one.declared is None]
        if undeclared or (self.unlisted and self.is_by_name) or self._has(ImportOutcome.FAILED):
            return ExitCode.FAILED
        is_same = all(one.outcome is ImportOutcome.UNCHANGED for one in self.manifests)
        return ExitCode.DONE if is_same else ExitCode.CHANGES

    def _has(self, outcome: ImportOutcome) -> bool:
        return any(one.outcome is outcome for one in self.manifests)

    def to_data(self) -> Json:
        """The summary: each object with its outcome, and no manifest."""
        skipped: list[Json] = [
            {
                **{"kind": one.kind, "location": one.location, "why": one.why},
                **({"declared": one.declared._asdict()} if one.declared else {}),
            }
            for one in self.skipped
        ]
        counts = {word.value: sum(one.outcome is word for one in self.manifests) for word in ImportOutcome}
        return {
            "objects": [one.to_data() for one in self.manifests],
            "skipped": skipped,
            "unlisted": dict(self.unlisted),
            **({"globalOnly": list(self.global_only)} if self.global_only else {}),
            "summary": {word: count for word, count in counts.items() if count},
            "exitCode": int(self.exit_code),
        }


async def import_live(
    query: ImportQuery, namespace: str, engine: EngineContext, observer: ImportObserver
) -> LiveImport:
    """Lists what is there, writes a manifest of each object, and plans them all. Nothing is written anywhere."""
    engine = await engine.for_namespace(namespace)
    names = _kinds_of(query, engine)
    query.fields.require_known(shape_of(engine.kinds[name].tree_type) for name in names)
    declared = (await engine.store.list(EVERYTHING)).resources
    known = [KnownObject(one.ref.group_kind, at) for one in declared if (at := location_in(one.status)) is not None]
    place = ImportPlace(query.project, query.locations, known, query.parent)
    found = await find_live_objects(names, place, engine.kinds, listed=observer.listed)
    _require_place(found, query)
    drafts, skipped = _drafts(found, declared, query, namespace, engine)
    observer.planning(len(drafts))
    proven = await prove(
        drafts,
        _index(drafts, declared),
        engine,
        lambda manifest: dry_run_apply(manifest, engine),
        proven=lambda one: observer.planned(one.draft.ref, one.outcome),
    )
    return LiveImport(
        tuple(map(_imported, proven)),
        tuple(skipped),
        _unlisted(found, query),
        tuple(name for _, name in found.global_only),
        bool(query.kinds),
    )


def _require_place(found: LiveInventory, query: ImportQuery) -> None:
    """PlaceNotNamed where everything that there is was asked for, and nothing could be looked for."""
    if not (query.kinds or query.project or query.parent or found.objects):
        for one in found.unlisted:
            if isinstance(one.error, PlaceNotNamed):
                raise one.error


def _kinds_of(query: ImportQuery, engine: EngineContext) -> Sequence[GroupKind]:
    if not query.kinds:
        importing = [name for name in engine.kinds if isinstance(engine.kinds[name], SupportsImport)]
        return [name for name in importing if not isinstance(engine.kinds[name], SupportsImportBeside)]
    found = list(dict.fromkeys(kind_of_word(word, engine) for word in query.kinds))
    for name in found:
        if not isinstance(engine.kinds.get(name), SupportsImport):
            raise UserError(f"{name[1]} cannot be imported: it has no list of live objects; declare them by hand")
    return found


def _drafts(
    found: LiveInventory, declared: Sequence[Resource], query: ImportQuery, namespace: str, engine: EngineContext
) -> tuple[list[ImportDraft], list[SkippedObject]]:
    by_location = {(one.ref.group_kind, location_in(one.status)): one.ref for one in declared}
    names = GivenNames(one.ref for one in declared)
    drafts: list[ImportDraft] = []
    skipped: list[SkippedObject] = []
    for live in sorted(found.objects, key=lambda one: (one.kind, one.location)):
        ref = by_location.get((live.kind, live.location))
        if ref is not None:
            skipped.append(SkippedObject(live.kind[1], live.location, f"it is declared as {ref}", ref))
            continue
        try:
            draft = draft_of(live, engine.kinds[live.kind], names, namespace, project=query.project)
        except UserError as error:
            skipped.append(SkippedObject(live.kind[1], live.location, str(error)))
            continue
        if query.matches(draft.manifest):
            drafts.append(draft)
    return drafts, skipped


def _index(drafts: Sequence[ImportDraft], declared: Sequence[Resource]) -> ReferenceIndex:
    index = ReferenceIndex()
    for one in drafts:
        index.add(one.ref, one.live.location, one.live.present.outputs)
    for resource in declared:
        if (place := location_in(resource.status)) is not None:
            index.add(resource.ref, place, outputs_in(resource.status))
    return index


def _unlisted(found: LiveInventory, query: ImportQuery) -> Mapping[str, str]:
    """Of all kinds, those without a list are left out. An error of the service is told, and that a place is missing."""
    told = [
        one
        for one in found.unlisted
        if query.kinds or isinstance(one.error, PlaceNotNamed) or not isinstance(one.error, UserError)
    ]
    return {one.kind[1]: str(one.error) for one in told}


def _imported(one: ProvenDraft) -> ImportedManifest:
    draft = one.draft
    return ImportedManifest(
        draft.ref,
        draft.live.location,
        draft.manifest,
        one.outcome,
        fields=one.fields,
        explicit=one.explicit,
        unmanaged=one.unmanaged,
        secrets=tuple(map(str, draft.secrets)),
        error=one.error,
    )
