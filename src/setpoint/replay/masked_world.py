"""Masks a recorded world, and rewrites the digests in it that were made from unmasked values.

A cookie or last-generated digest of the current value becomes the digest of its mask; one of an earlier value stays:
whatever differed before masking still differs.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace

from setpoint.core.decide import Cookie
from setpoint.core.merge.threeway import without_empty
from setpoint.core.schema.shape import shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import digest, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResourceType
from setpoint.engine.owners.children import LAST_GENERATED, child_ref, observe_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import COOKIE, COOKIE_ANNOTATION, ENGINE_STATE, StoredState
from setpoint.engine.step.preview import CurrentDigests, current_digests
from setpoint.engine.transfer.export_format import StateTranslation, translate_state
from setpoint.errors import SetpointError
from setpoint.replay.http_recording import HttpRecording
from setpoint.replay.masking import Masker
from setpoint.replay.preview_report import MAX_CONCURRENT
from setpoint.replay.snapshot import StoreSnapshot
from setpoint.replay.world_file import RecordedWorld, WorldHeader


async def all_current_digests(
    refs: Iterable[ResourceRef], engine: EngineContext
) -> Mapping[ResourceRef, CurrentDigests]:
    """The current digests of each resource that has any."""
    slots, found = asyncio.Semaphore(MAX_CONCURRENT), dict[ResourceRef, CurrentDigests]()

    async def find(ref: ResourceRef) -> None:
        async with slots:
            resource = await engine.store.get(ref)
            if resource is not None:
                # The preview reports the same error.
                with suppress(SetpointError):
                    found[ref] = await current_digests(resource, engine)

    await asyncio.gather(*map(find, refs))
    return found


def mask_world(
    header: WorldHeader,
    seen: StoreSnapshot,
    http_recording: HttpRecording,
    masker: Masker,
    types: Mapping[GroupKind, ResourceType],
) -> RecordedWorld:
    """The snapshot and the recording with secret values masked; stored digests are still those of unmasked values."""
    resources = tuple(_masked(one, masker, types.get(one.ref.group_kind)) for one in seen.resources.values())
    return RecordedWorld(header, resources, frozenset(seen.unlisted), frozenset(seen.absent), http_recording.masked())


def _masked(resource: Resource, masker: Masker, type_: ResourceType | None) -> Resource:
    document = dict(resource.document)
    masked = masker.mask(document) if type_ is None else masker.mask_resource(document, shape_of(type_.tree_type))
    return Resource(_as_object(masked))


def with_masked_digests(
    recorded: RecordedWorld, before: Mapping[ResourceRef, CurrentDigests], after: Mapping[ResourceRef, CurrentDigests]
) -> RecordedWorld:
    """The world with stored digests of the current values replaced: `before` masking and `after` it."""
    resources = (
        _with_digest_changes(one, _digest_changes(before[one.ref], after[one.ref]))
        if one.ref in before and one.ref in after
        else one
        for one in recorded.resources
    )
    return replace(recorded, resources=tuple(resources))


def _digest_changes(before: CurrentDigests, after: CurrentDigests) -> StateTranslation:
    versions = {(name, old): after.versions[name] for name, old in before.versions.items() if name in after.versions}
    pairs = ((before.live, after.live), (before.body, after.body))
    lives = {old: new for old, new in pairs if old is not None and new is not None}
    return StateTranslation({before.intent: after.intent}, versions, lives)


def _with_digest_changes(resource: Resource, translation: StateTranslation) -> Resource:
    state = translate_state(StoredState.of(resource), translation)
    document = dict(resource.document)
    if "status" in document:
        document["status"] = state.into(resource.status, with_cookie=COOKIE in resource.status)
    cookie = Cookie.parse(resource.annotations.get(COOKIE_ANNOTATION))
    if cookie is not None:
        annotations = {**resource.annotations, COOKIE_ANNOTATION: str(translation.cookie(cookie))}
        document["metadata"] = {**_as_object(document["metadata"]), "annotations": annotations}
    return Resource(document)


def _as_object(value: Json) -> JsonObject:
    assert isinstance(value, Mapping)
    return value


# --- Children: what an owner generates from a secret value changes with its mask ------------------------------------

# What each owner generates, by child.
GeneratedObjects = Mapping[ResourceRef, Mapping[ResourceRef, JsonObject]]


async def generate_all(refs: Iterable[ResourceRef], engine: EngineContext) -> GeneratedObjects:
    """What each owner among `refs` generates now, without owners that cannot generate."""
    found: dict[ResourceRef, Mapping[ResourceRef, JsonObject]] = {}
    for ref in refs:
        owner, resource = engine.owners.get((ref.group, ref.kind)), await engine.store.get(ref)
        if owner is not None and resource is not None:
            # The preview reports the same error.
            with suppress(SetpointError):
                children = await observe_children(resource, owner, engine)
                found[ref] = {child_ref(child): child.object for child in children.generated.children}
    return found


@dataclass(slots=True)
class _Replacements:
    """What masking changes: texts in children, by child, and digests in the status of owners, by owner."""

    texts: dict[ResourceRef, dict[str, str]] = field(default_factory=dict)
    digests: dict[ResourceRef, dict[str, str]] = field(default_factory=dict)


def replaced_texts(before: GeneratedObjects, after: GeneratedObjects) -> Mapping[str, str]:
    """The texts that are generated differently after masking, each with its new text."""
    return {old: new for texts in _replacements(before, after).texts.values() for old, new in texts.items()}


def with_masked_children(recorded: RecordedWorld, before: GeneratedObjects, after: GeneratedObjects) -> RecordedWorld:
    """The world with children, and digests of last generated, as owners generate them from masked values."""
    changed = _replacements(before, after)
    return replace(recorded, resources=tuple(_with_replacements(one, changed) for one in recorded.resources))


def _replacements(before: GeneratedObjects, after: GeneratedObjects) -> _Replacements:
    changed = _Replacements()
    for owner, children in before.items():
        for ref, child in children.items():
            for old, new in _pairs(dict(child), dict(after.get(owner, {}).get(ref, child))):
                changed.digests.setdefault(owner, {})[digest(without_empty(old))] = digest(without_empty(new))
                if isinstance(old, str) and isinstance(new, str):
                    changed.texts.setdefault(ref, {})[old] = new
    return changed


def _pairs(old: Json, new: Json) -> Iterator[tuple[Json, Json]]:
    """Every part that differs, from the outside in."""
    if same(old, new):
        return
    yield old, new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in old.keys() & new.keys():
            yield from _pairs(old[name], new[name])
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for one, other in zip(old, new, strict=False):
            yield from _pairs(one, other)


def _with_replacements(resource: Resource, changed: _Replacements) -> Resource:
    document = dict(resource.document)
    texts, digests = changed.texts.get(resource.ref, {}), changed.digests.get(resource.ref, {})
    if texts:
        document = {
            name: member if name == "status" else replace_texts(member, texts) for name, member in document.items()
        }
    status = document.get("status")
    if digests and isinstance(status, Mapping):
        ours = (LAST_GENERATED, ENGINE_STATE)
        document["status"] = {
            name: replace_texts(one, digests) if name in ours else one for name, one in status.items()
        }
    return Resource(document) if texts or digests else resource


def replace_texts(value: Json, texts: Mapping[str, str]) -> Json:
    """`value` with these texts replaced, at every depth."""
    if isinstance(value, Mapping):
        return {name: replace_texts(member, texts) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [replace_texts(one, texts) for one in value]
    return texts.get(value, value) if isinstance(value, str) else value
