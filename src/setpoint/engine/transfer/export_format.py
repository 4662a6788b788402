"""An export: its documents, and the stored state of an exported resource in the terms of another store.

First a header, then a document for each object and each resource, then an end: a truncated export is never taken
for a whole. Digests of intents and versions of secrets cover uids and revisions, which every store assigns anew;
where they stand for the same thing in both stores, the new ones replace the old, and everything else is carried
over as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from setpoint.core.decide import Cookie
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine.contention.oscillation import Oscillations
from setpoint.engine.management import MANAGEMENT
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.state import (
    COOKIE,
    COOKIE_ANNOTATION,
    RECONCILE_REQUESTED,
    AppliedIntent,
    StoredState,
)
from setpoint.errors import ManifestInvalid, NotJson

if TYPE_CHECKING:
    from setpoint.core.values.yaml_documents import YamlDocument

API_VERSION: Final = "setpoint.dev/v1alpha1"
HEADER, END = "Export", "ExportEnd"
FORMAT: Final = 1
# The member of a document with what another store has to know besides.
FACTS: Final = "export"
_ROOT: Final = Path()

S = TypeVar("S", bound=Struct)


class ExportHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an export comes from. `paused`: the store it comes from does not touch the objects any more."""

    setpoint: str
    at: str
    store: str
    secrets: bool
    paused: bool


class ResourceFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What the old store knows about a resource."""

    # The digest of its intent; None when a dependency did not exist.
    intent: str | None
    # The version of each secret, by its field.
    versions: dict[str, str]
    # Whether the status is about the current spec.
    observed: bool
    # Whether its deletion was requested.
    deleting: bool = False


class ObjectFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The version of an exported object: its uid and its revision."""

    version: str


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """A resource with its status; `place` is the file and line of its document."""

    resource: Resource
    facts: ResourceFacts
    place: str = ""

    @property
    def ref(self) -> ResourceRef:
        """Which resource."""
        return self.resource.ref


@dataclass(frozen=True, slots=True)
class ExportedObject:
    """An object that is not reconciled, whole: a Secret with its values, a ConfigMap."""

    resource: Resource = field(repr=False)
    facts: ObjectFacts
    place: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether its values are secret."""
        return self.ref.group_kind == SECRET

    @property
    def ref(self) -> ResourceRef:
        """Which object."""
        return self.resource.ref


ExportedItem: TypeAlias = ExportedObject | ExportedResource


@dataclass(frozen=True, slots=True)
class StoreExport:
    """One export, or several that are imported together."""

    headers: tuple[ExportHeader, ...]
    objects: tuple[ExportedObject, ...]
    resources: tuple[ExportedResource, ...]

    @property
    def items(self) -> tuple[ExportedItem, ...]:
        """All of it, objects first."""
        return (*self.objects, *self.resources)

    @property
    def is_paused(self) -> bool:
        """Whether no store that this comes from touches the objects any more."""
        return all(header.paused for header in self.headers)


# --- Writing ----------------------------------------------------------------------------------------------------------


def export_documents(export: StoreExport) -> Iterator[JsonObject]:
    """The documents of an export, in order."""
    (header,) = export.headers
    yield {"apiVersion": API_VERSION, "kind": HEADER, "format": FORMAT, **msgspec.to_builtins(header)}
    for item in export.items:
        yield {**item.resource.document, FACTS: msgspec.to_builtins(item.facts)}
    yield {"apiVersion": API_VERSION, "kind": END, "documents": len(export.items)}


# --- Reading ----------------------------------------------------------------------------------------------------------


def read_export(documents: "Sequence[YamlDocument]") -> StoreExport:
    """The exports in `documents`, as one; ManifestInvalid names the document and what is wrong with it."""
    headers: list[ExportHeader] = []
    items: list[ExportedItem] = []
    left = iter(documents)
    for document in left:
        headers.append(_header(document))
        items += _read_items(document, left)
    _refuse_duplicates(items)
    objects = tuple(one for one in items if isinstance(one, ExportedObject))
    resources = tuple(one for one in items if isinstance(one, ExportedResource))
    return StoreExport(tuple(headers), objects, resources)


def _header(document: "YamlDocument") -> ExportHeader:
    value, place = document.value, document.where(_ROOT)
    if not is_export_header(value):
        raise ManifestInvalid(
            f"{place}: this is no export: `setpoint export` makes one; `setpoint apply` takes manifests"
        )
    members = {name: one for name, one in _tree(value, place).items() if name not in ("apiVersion", "kind")}
    form = members.pop("format", None)
    if not same(form, FORMAT):
        maker = members.get("setpoint", "the version that made it")
        raise ManifestInvalid(f"{place}: an export of format {form!r} cannot be read here: use setpoint {maker}")
    return _converted(members, ExportHeader, place)


def _read_items(header: "YamlDocument", left: Iterator["YamlDocument"]) -> list[ExportedItem]:
    items: list[ExportedItem] = []
    for document in left:
        if _is(END, document.value):
            _require_all(document, len(items))
            return items
        if is_export_header(document.value):
            break
        items.append(_item(document))
    raise ManifestInvalid(f"{header.where(_ROOT)}: this export breaks off: its last document is missing; export again")


def _require_all(end: "YamlDocument", found: int) -> None:
    place = end.where(_ROOT)
    expected = _tree(end.value, place).get("documents")
    if not same(expected, found):
        raise ManifestInvalid(f"{place}: {expected} documents should stand before this, and {found} do: export again")


def _item(document: "YamlDocument") -> ExportedItem:
    place = document.where(_ROOT)
    tree = dict(_tree(document.value, place))
    facts = tree.pop(FACTS, None)
    resource = Resource(_checked(tree, document))
    is_plain = isinstance(facts, dict) and set(facts) == {"version"}
    if is_plain or resource.ref.group_kind == SECRET:
        return ExportedObject(resource, _converted(facts, ObjectFacts, place, f"{FACTS}: "), place)
    return ExportedResource(resource, _converted(facts, ResourceFacts, place, f"{FACTS}: "), place)


def _checked(tree: dict[str, Json], document: "YamlDocument") -> JsonObject:
    """The document of a resource, in the namespace that it will have."""
    metadata = tree.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for path, value, kind in (
        ("apiVersion", tree.get("apiVersion"), str),
        ("kind", tree.get("kind"), str),
        ("metadata.name", metadata.get("name"), str),
        ("status", tree.get("status", {}), dict),
    ):
        if not isinstance(value, kind):
            raise ManifestInvalid(
                f"{document.where(Path.parse(path))}: {path} is missing or of another type: export again"
            )
    try:
        canonical(tree)
    except NotJson as error:
        raise ManifestInvalid(f"{document.where(_ROOT)}: {error}") from error
    return {**tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}}


def _refuse_duplicates(items: Sequence[ExportedItem]) -> None:
    seen: dict[ResourceRef, str] = {}
    for item in items:
        first = seen.setdefault(item.ref, item.place)
        if first != item.place:
            raise ManifestInvalid(f"{item.place}: {item.ref} stands at {first} already: keep one of them")


def is_export_header(value: Json) -> bool:
    """Whether an export begins with this document."""
    return _is(HEADER, value)


def _is(kind: str, value: Json) -> bool:
    return isinstance(value, Mapping) and (value.get("apiVersion"), value.get("kind")) == (API_VERSION, kind)


def _tree(value: Json, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ManifestInvalid(f"{place}: a document of an export is a map: export again")
    return value


def _converted(value: object, type_: type[S], place: str, at: str = "") -> S:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(f"{place}: {at}{error}: export again with this version of setpoint") from error


_OBSERVED: Final = "observedGeneration"
# The management of a resource before an export paused it; empty when it had none.
MANAGEMENT_BEFORE: Final = known_annotations.MANAGEMENT_BEFORE_EXPORT
# Annotations of the engine: no author writes them.
ENGINE_ANNOTATIONS: Final = (COOKIE_ANNOTATION, RECONCILE_REQUESTED, MANAGEMENT_BEFORE)


@dataclass(frozen=True, slots=True)
class StateTranslation:
    """Old terms to new ones: digests of intents, versions of secrets, and digests of live objects."""

    intents: Mapping[str, str] = field(default_factory=dict)
    # By the field of the secret, and its old version.
    versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # By the digest of the live object, and by that of its bytes, where they differ between the stores.
    lives: Mapping[str, str] = field(default_factory=dict)

    def intent(self, digest: str) -> str:
        """The digest in the new store; the old one when none is proved equal."""
        return self.intents.get(digest, digest)

    def cookie(self, cookie: Cookie) -> Cookie:
        """The cookie in the new store."""
        return Cookie(self.intent(cookie.intent), self.live(cookie.live))

    def live(self, digest: str) -> str:
        """The digest of the same live object in the new store."""
        return self.lives.get(digest, digest)

    def secrets(self, versions: Mapping[str, str]) -> Mapping[str, str]:
        """The versions in the new store."""
        return {name: self.versions.get((name, version), version) for name, version in versions.items()}


def initial_status(item: ExportedResource, generation: int) -> JsonObject:
    """The status before its translation is proved: observed at `generation` if it was current, else at an older one."""
    status = item.resource.status
    if _OBSERVED not in status:
        return status
    return {**status, _OBSERVED: generation if item.facts.observed else generation - 1}


def translated_status(item: ExportedResource, generation: int, translation: StateTranslation) -> JsonObject:
    """The status in the terms of the new store; the cookie stays in the status or the annotation."""
    status = initial_status(item, generation)
    if not status:
        return status
    return translate_state(StoredState.of(item.resource), translation).into(status, with_cookie=COOKIE in status)


def translated_annotations(item: ExportedResource, translation: StateTranslation) -> Mapping[str, str | None]:
    """The annotations that `apply` does not set, as they have to be; None for those to remove."""
    annotations = item.resource.annotations
    found: dict[str, str | None] = {name: annotations.get(name) for name in (*ENGINE_ANNOTATIONS, MANAGEMENT)}
    cookie = Cookie.parse(annotations.get(COOKIE_ANNOTATION))
    return found if cookie is None else {**found, COOKIE_ANNOTATION: str(translation.cookie(cookie))}


def manifest_of(resource: Resource) -> JsonObject:
    """The author's part of an exported resource or object."""
    annotations = {name: text for name, text in resource.annotations.items() if name not in ENGINE_ANNOTATIONS}
    metadata = {"name": resource.ref.name, "namespace": resource.ref.namespace}
    author = {name: value for name, value in resource.document.items() if name not in ("metadata", "status")}
    return {**author, "metadata": {**metadata, "labels": dict(resource.labels), "annotations": annotations}}


def translate_state(state: StoredState, translation: StateTranslation) -> StoredState:
    """The stored state in the terms of the new store."""
    return replace(
        state,
        cookie=None if state.cookie is None else translation.cookie(state.cookie),
        attempt=None if state.attempt is None else _attempt(state.attempt, translation),
        secrets=translation.secrets(state.secrets),
        oscillations=_oscillations(state.oscillations, translation),
        body=None if state.body is None else translation.live(state.body),
        creating=None if state.creating is None else translation.secrets(state.creating),
        wait=None if state.wait is None else replace(state.wait, intent=translation.intent(state.wait.intent)),
        applied=_applied(state.applied, translation),
    )


def _applied(applied: AppliedIntent | None, translation: StateTranslation) -> AppliedIntent | None:
    """Without the digest of what the author wrote where that reads differently; the cookie says as much by then."""
    if applied is None or all(old == new for old, new in translation.intents.items()):
        return applied
    return replace(applied, revision=0, authored="")


def _oscillations(oscillations: Oscillations, translation: StateTranslation) -> Oscillations:
    fields = (
        one if one.begun is None else replace(one, begun=translation.live(one.begun)) for one in oscillations.fields
    )
    return Oscillations(translation.intent(oscillations.intent), tuple(fields))


def _attempt(attempt: WriteAttempt, translation: StateTranslation) -> WriteAttempt:
    unconverged_at = None if attempt.unconverged_at is None else translation.cookie(attempt.unconverged_at)
    return replace(attempt, intent=translation.intent(attempt.intent), unconverged_at=unconverged_at)
