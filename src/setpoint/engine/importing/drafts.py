"""Drafts: a manifest for each live object, with names that a store takes, and references to what is declared."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from setpoint.core.schema.annotations import PROJECT_ID
from setpoint.core.schema.shape import (
    UNTYPED,
    AtomicList,
    Field,
    KeyedList,
    ObjectShape,
    field_below,
    item_field,
    shape_of,
)
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.messages import field_named_by
from setpoint.core.values.paths import Path, get_at, remove_at, set_at
from setpoint.core.values.problems import problems_of
from setpoint.engine.capabilities import LiveIdentity, SupportsImport, SupportsProjects
from setpoint.engine.importing.live_lists import InventoryObject
from setpoint.engine.importing.minimal_spec import by_documentation, external_references, minimal, secret_paths, whole
from setpoint.engine.kind import AnyKind, Reference, ResolvedReferences
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid, SetpointError, UserError

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME: Final = 253
_RESOURCE_ID: Final = "resourceID"
_SPEC: Final = Path(("spec",))
# From here on a link of a service is the name of an object.
_COLLECTIONS: Final = re.compile(r"(?:^|/)((?:projects|folders|organizations|billingAccounts)/.*)")


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """A live object, and the manifest of it. `full` has all fields that a spec can have; `secrets` those not told."""

    live: InventoryObject
    manifest: JsonObject
    full: JsonObject
    secrets: tuple[Path, ...] = ()

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return Resource(self.manifest).ref

    def with_spec(self, spec: Json) -> "ImportDraft":
        """The same with another spec."""
        return replace(self, manifest={**self.manifest, "spec": spec})

    def annotated(self, key: str, text: str) -> "ImportDraft":
        """The same with another annotation."""
        manifest = set_at(self.manifest, Path(("metadata", "annotations", key)), text)
        assert isinstance(manifest, dict)
        return replace(self, manifest=manifest)

    @property
    def spec(self) -> JsonObject:
        """The spec of the manifest."""
        found = self.manifest["spec"]
        assert isinstance(found, dict)
        return found


class GivenNames:
    """Names for resources, each given once: the id in the service where it is a name, else what is left of it."""

    def __init__(self, taken: Iterable[ResourceRef]) -> None:
        self._taken = set(taken)

    def give(self, live: InventoryObject, own_id: str, namespace: str) -> str:
        """A name that no other resource of the kind has."""
        wanted = own_id or "-".join(live.location.split("/")[-2:])
        name = wanted if _NAME.fullmatch(wanted) and len(wanted) <= _MAX_NAME else _slug(wanted)
        others = (f"{name}-{_slug(part)}" for part in reversed(live.location.split("/")[1:-1:2]))
        for one in (name, *others, f"{name[:240]}-{digest(live.location)[:8]}"):
            ref = ResourceRef(*live.kind, namespace, one)
            if ref not in self._taken and len(one) <= _MAX_NAME:
                self._taken.add(ref)
                return one
        raise UserError(f"{live.location}: there is a resource of each name that it could have")


def _slug(text: str) -> str:
    found = _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:_MAX_NAME].strip("-")
    return found or "object"


# --- One object -------------------------------------------------------------------------------------------------------


def draft_of(
    live: InventoryObject, kind: AnyKind, names: GivenNames, namespace: str, *, project: str = ""
) -> ImportDraft:
    """The manifest of a live object, with the fields that it has to have. UserError where none can be written.

    `project` is named by an object that is in none, where a step needs to know one.
    """
    assert isinstance(kind, SupportsImport)
    identity = kind.identity_at(live.location)
    name = names.give(live, identity.own_id or identity.name, namespace)
    tree, shape = kind.view(live.present.live), _spec_shape(kind)
    seen = tree.get("spec")
    fields = seen if isinstance(seen, dict) else {}
    placed = _placed(identity, name)
    manifest = _manifest(kind, identity, name, namespace, _labels(tree, identity))
    full = {**whole(fields, shape), **placed}
    said = by_documentation(minimal(fields, shape), fields, identity.documented)
    assert isinstance(said, dict)
    spec: Json = {**said, **placed}
    for path in identity.moving:
        spec = remove_at(spec, path)
    draft = _valid(ImportDraft(live, {**manifest, "spec": spec}, full, _secrets(shape)), kind)
    draft = replace(draft, secrets=tuple(one for one in draft.secrets if _has_parent(draft, one)))
    return _with_project(_placeable(draft, kind), kind, project)


def _with_project(draft: ImportDraft, kind: AnyKind, project: str) -> ImportDraft:
    if not project or not isinstance(kind, SupportsProjects):
        return draft
    try:
        kind.project_of(Resource(draft.manifest), ResolvedReferences())
    except UserError:
        return draft.annotated(PROJECT_ID, project)
    return draft


def _has_parent(draft: ImportDraft, secret: Path) -> bool:
    """Whether what a secret is in is there: else it says nothing about this object."""
    return not isinstance(get_at(draft.manifest, secret.parent), Missing)


def _spec_shape(kind: AnyKind) -> ObjectShape:
    found = shape_of(kind.tree_type).fields["spec"].shape
    assert isinstance(found, ObjectShape)
    return found


def _secrets(shape: ObjectShape) -> tuple[Path, ...]:
    return tuple(
        _SPEC / path.steps[0] if len(path.steps) == 1 else Path(("spec", *path.steps)) for path in secret_paths(shape)
    )


def _placed(identity: LiveIdentity, name: str) -> dict[str, Json]:
    is_named = bool(identity.own_id) and (identity.needs_id or identity.own_id != name)
    return {**identity.spec, **({_RESOURCE_ID: identity.own_id} if is_named else {})}


def _labels(tree: JsonObject, identity: LiveIdentity) -> dict[str, Json]:
    metadata = tree.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    own = labels if isinstance(labels, dict) else {}
    return {key: value for key, value in own.items() if key not in identity.managed_labels}


def _manifest(
    kind: AnyKind, identity: LiveIdentity, name: str, namespace: str, labels: Mapping[str, Json]
) -> dict[str, Json]:
    metadata: dict[str, Json] = {"name": name, "namespace": namespace}
    metadata |= {"labels": dict(labels)} if labels else {}
    metadata |= {"annotations": dict(identity.annotations)} if identity.annotations else {}
    return {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.name, "metadata": metadata}


def _valid(draft: ImportDraft, kind: AnyKind) -> ImportDraft:
    """The draft without fields that no spec may have, and with those that it must; ManifestInvalid if that fails."""
    error = _problem(draft, kind)
    if error is None:
        return draft
    full = draft.with_spec(draft.full)
    for candidate in (draft, full):
        for one in (candidate, with_secrets := _with_placeholders(candidate), _without_problems(with_secrets, kind)):
            if _problem(one, kind) is None:
                return one
    raise error


def _with_placeholders(draft: ImportDraft) -> ImportDraft:
    """The draft with a reference to a Secret, which is to be made, for each value that is not told."""
    manifest: Json = draft.manifest
    for path in draft.secrets:
        if len(path.steps) == 2:
            manifest = set_at(manifest, path, placeholder(draft.ref.name, path))
    assert isinstance(manifest, dict)
    return replace(draft, manifest=manifest)


def placeholder(name: str, path: Path) -> dict[str, Json]:
    """A reference to the Secret for a value that is not told."""
    key = str(path.steps[-1])
    return {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}


def _problem(draft: ImportDraft, kind: AnyKind) -> UserError | None:
    try:
        kind.check(Resource(draft.manifest))
    except UserError as error:
        return error
    return None


def _without_problems(draft: ImportDraft, kind: AnyKind) -> ImportDraft:
    manifest: Json = draft.manifest
    error = _problem(draft, kind)
    for one in () if error is None else problems_of(error):
        term = field_named_by(one)
        try:
            manifest = manifest if term is None else remove_at(manifest, Path.parse(str(term)))
        except ManifestInvalid:
            continue
    assert isinstance(manifest, dict)
    return replace(draft, manifest=manifest)


def _placeable(draft: ImportDraft, kind: AnyKind) -> ImportDraft:
    """The draft, if its resource is at the location of its object; UserError if it is not."""
    try:
        found = kind.locate(Resource(draft.manifest), ResolvedReferences())
    except SetpointError as error:
        raise UserError(f"{draft.live.location}: no manifest says where it is: {error}") from error
    if found != draft.live.location:
        raise UserError(f"{draft.live.location}: a manifest of it would be one of {found}")
    return draft


# --- References -------------------------------------------------------------------------------------------------------


class ReferenceIndex:
    """The resources that a text of a service may name: by location, id, dotted name and reported values."""

    def __init__(self) -> None:
        self._by_text: dict[str, list[tuple[ResourceRef, str]]] = {}

    def add(self, ref: ResourceRef, location: str, outputs: JsonObject) -> None:
        """A resource with its location and its outputs."""
        parts = location.split("/")
        texts = {location, parts[-1], ".".join(parts[1::2]), f"{parts[0]}/{parts[1]}" if len(parts) == 2 else location}
        texts.update(_texts_in(outputs))
        for text in texts:
            self._by_text.setdefault(text, []).append((ref, location))

    def candidates(self, text: str, origin: str) -> Sequence[ResourceRef]:
        """What a text in a spec may name, the nearest to the location `origin` first."""
        found = _COLLECTIONS.search(text)
        words = [text, *([found[1]] if found else []), text.rpartition(":")[2]]
        named = {ref: place for word in words for ref, place in self._by_text.get(word, ())}
        return sorted(named, key=lambda ref: (-_common(named[ref], origin), ref))


def _texts_in(value: Any, depth: int = 3) -> Iterator[str]:  # noqa: ANN401 - JSON
    """The texts that may tell an object from others, at a few levels of its outputs."""
    if isinstance(value, str) and len(value) > 1:
        yield value
    elif isinstance(value, dict) and depth:
        for one in value.values():
            yield from _texts_in(one, depth - 1)


def _common(one: str, other: str) -> int:
    same = 0
    for mine, its in zip(one.split("/"), other.split("/"), strict=False):
        if mine != its:
            break
        same += 1
    return same


def with_references(draft: ImportDraft, kind: AnyKind, index: ReferenceIndex, skipped: Collection[Path]) -> ImportDraft:
    """The draft with `name` in the place of `external` where that names a resource; not at the `skipped` paths."""
    manifest: Json = draft.manifest
    for path, text in list(external_references(draft.spec, _SPEC)):
        if path in skipped:
            continue
        for target in index.candidates(text, draft.live.location):
            found = None if target == draft.ref else _referring(manifest, kind, path, target)
            if found is not None:
                manifest = found
                break
    assert isinstance(manifest, dict)
    return replace(draft, manifest=manifest)


def _referring(manifest: Json, kind: AnyKind, path: Path, target: ResourceRef) -> Json | None:
    """The manifest with a reference to a resource at a path; None if the field does not take one of that kind."""
    for place in (path, *_other_choices(manifest, kind, path)):
        for value in ({"name": target.name}, {"kind": target.kind, "name": target.name}):
            found = set_at(manifest, place, dict(value))
            assert isinstance(found, dict)
            if place != path:
                found = remove_at(found, path)
                assert isinstance(found, dict)
            if _refers(Resource(found), kind, place, target):
                return found
    return None


def _refers(resource: Resource, kind: AnyKind, path: Path, target: ResourceRef) -> bool:
    try:
        dependencies = kind.dependencies(resource)
        kind.check(resource)
    except UserError:
        return False
    at = str(path)
    return any(isinstance(one, Reference) and one.field == at and one.target == target for one in dependencies)


def _other_choices(manifest: Json, kind: AnyKind, path: Path) -> Sequence[Path]:
    """The fields beside the only member of an object: which of them was given, a service may not say."""
    around = get_at(manifest, path.parent)
    if not isinstance(around, dict) or len(around) != 1 or len(path.steps) < 3:
        return ()
    shape = field_of(_spec_shape(kind), Path(path.steps[1:-1])).shape
    fields = shape.fields if isinstance(shape, ObjectShape) else ()
    return [path.parent / name for name in fields if name.endswith("Ref") and path.parent / name != path]


def field_of(shape: ObjectShape, path: Path) -> Field:
    """The field at a path, whose lists have positions; one without a type where there is none."""
    here = shape.as_field
    for step in path.steps:
        if isinstance(step, int) and isinstance(here.shape, AtomicList | KeyedList):
            here = item_field(here)
        else:
            here = field_below(here, step) or UNTYPED
    return here


def named_references(draft: ImportDraft, kind: AnyKind) -> Sequence[Path]:
    """The paths of the references to resources in a draft."""
    dependencies = kind.dependencies(Resource(draft.manifest))
    return [Path.parse(one.field) for one in dependencies if isinstance(one, Reference)]


def restored(draft: ImportDraft, path: Path) -> ImportDraft:
    """The draft with the live value of a field written out; the same where it has that, or there is none."""
    live = get_at({"spec": draft.full}, path)
    if isinstance(live, str | int | float | bool | dict | list):
        try:
            manifest = set_at(draft.manifest, path, live)
        except UserError:
            return draft
        assert isinstance(manifest, dict)
        return replace(draft, manifest=manifest)
    return draft
