"""Imports an export into a store, so that the next step there continues where the last one elsewhere left off.

Everything is checked before anything is written, and writing is idempotent: an import that was killed is run again.
Which digests and secret versions mean the same in both stores is proved here, never assumed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import join_names
from setpoint.engine.context import FINALIZER, MANAGEMENT, EngineContext, Management, management_of
from setpoint.engine.dependency_graph import reconcile_order
from setpoint.engine.intent import check_manifest, intent_of, resolve_ignoring_readiness
from setpoint.engine.kind import (
    AnyKind,
    Dependency,
    Intent,
    Reconciliation,
    ResolvedReferences,
    SecretKeyReference,
    dependency_target,
)
from setpoint.engine.owner import Owner
from setpoint.engine.owners.children import is_unreconciled
from setpoint.engine.ports import Store
from setpoint.engine.references import dependencies_of, resolve_available, secret_value
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import StoredState
from setpoint.engine.transfer.export_format import (
    ENGINE_ANNOTATIONS,
    ExportedItem,
    ExportedObject,
    ExportedResource,
    StateTranslation,
    StoreExport,
    initial_status,
    manifest_of,
    translated_annotations,
    translated_status,
)
from setpoint.engine.transfer.exporter import secret_keys
from setpoint.errors import ManifestInvalid, NotReady, UserError

_LOOK: Final = "the next step looks closely"
_Secrets: TypeAlias = Mapping[ResourceRef, ExportedObject]
# New versions of secrets, by field and old version.
_Versions: TypeAlias = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class ProvenTranslation:
    """What can be carried over, and what people should know where something cannot."""

    translation: StateTranslation
    remarks: tuple[str, ...] = ()


async def prove_translation(
    item: ExportedResource, there: Resource, secrets: _Secrets, engine: EngineContext
) -> ProvenTranslation:
    """The way of one resource: `there` is how it stands in the new store, with all that it refers to."""
    if isinstance(engine.resource_type_of(there), Owner):
        # Its children are compared with what was generated last, and that went along in its status.
        return ProvenTranslation(StateTranslation(), _remarks(item, "", {}))
    kind = engine.kind_of(there)
    keys = secret_keys(there, kind)
    versions = _carried_secrets(item, keys, await resolve_available(keys, engine.store), secrets)
    try:
        intent = await resolve_ignoring_readiness(there, engine)
    except (NotReady, UserError) as error:
        return ProvenTranslation(StateTranslation({}, versions), _remarks(item, str(error), versions))
    versions = {**versions, **_carried_values(item, there, keys, intent)}
    why = _why_not_proved(item, there, kind, intent)
    is_whole = all((name, version) in versions for name, version in item.facts.versions.items())
    intents = {item.facts.intent: intent.digest} if item.facts.intent and is_whole and not why else {}
    return ProvenTranslation(
        StateTranslation(intents, versions), _remarks(item, _why_compared_again(item, kind, why), versions)
    )


def _carried_secrets(
    item: ExportedResource, keys: Sequence[SecretKeyReference], here: ResolvedReferences, secrets: _Secrets
) -> _Versions:
    """The versions of secrets whose values are surely those that there are here."""
    old = {key: item.facts.versions.get(key.field) for key in keys}
    return {
        (key.field, version): here.versions[key.field]
        for key, version in old.items()
        if version is not None and key.field in here.versions and _is_same(key, version, here, secrets.get(key.secret))
    }


def _is_same(key: SecretKeyReference, version: str, here: ResolvedReferences, secret: ExportedObject | None) -> bool:
    """Whether this is the very Secret, or its value went along and is the one that there is here."""
    if version == here.versions[key.field]:
        return True
    if secret is None or version != f"{secret.facts.version}/{key.key}":
        return False
    return secret_value(key, secret.resource) == here.secrets[key.field]


def _carried_values(
    item: ExportedResource, there: Resource, keys: Sequence[SecretKeyReference], intent: Intent
) -> _Versions:
    """The versions of values that stand in the spec itself: the same spec holds the same."""
    if there.author_digest != item.resource.author_digest:
        return {}
    in_secrets = {key.field for key in keys}
    own = {name: new for name, new in intent.resolved.versions.items() if name not in in_secrets}
    return {(name, old): own[name] for name, old in item.facts.versions.items() if name in own}


def _why_not_proved(item: ExportedResource, there: Resource, kind: AnyKind, intent: Intent) -> str:
    """Why the intent is not proved to be the same; empty when it is.

    With the old versions of its secrets in the place of the new ones, it has to come to the old digest: then nothing
    else that an intent covers has changed, neither spec nor labels, annotations, references or the kind itself.
    """
    if item.facts.intent is None:
        return f"what it refers to was not there where it came from: {_LOOK}"
    if there.author_digest != item.resource.author_digest:
        return f"its spec reads differently here: {_LOOK}"
    before = intent_of(there, kind, replace(intent.resolved, versions=item.facts.versions))
    if before.digest != item.facts.intent:
        return f"its labels, what it refers to, or its kind mean something else here: {_LOOK}"
    return ""


def _why_compared_again(item: ExportedResource, kind: AnyKind, why: str) -> str:
    """Why the next step of a resource that keeps a cookie cannot go by it; empty when it can."""
    if kind.reconciliation is Reconciliation.STATELESS:
        return ""
    cookie = StoredState.of(item.resource).cookie
    is_settled = cookie is not None and cookie.intent == item.facts.intent
    if why or is_settled or management_of(item.resource.annotations) is not Management.FULL:
        return why
    return "not settled where it came from: what was left to do is left to do here"


def _remarks(item: ExportedResource, doubt: str, versions: _Versions) -> tuple[str, ...]:
    """What people should know before the next step."""
    facts, sent = item.facts, StoredState.of(item.resource).secrets
    if facts.deleting:
        return ("its deletion goes on here",)
    again = [name for name, old in facts.versions.items() if sent.get(name) == old and (name, old) not in versions]
    told = f"{join_names(again)} is not known to be the same here: it counts as new, and is sent once" if again else ""
    return tuple(remark for remark in (doubt, told) if remark)


# What an apply would come to, or raise; nothing is written.
DryRunApply: TypeAlias = Callable[[JsonObject], Awaitable[Resource]]


class ImportTarget(Enum):
    """What an import finds in the place of a resource."""

    NOTHING = "nothing"
    # The same, or what an earlier run of this import left behind.
    OURS = "ours"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class ImportedResource:
    """A resource that is here now: whether anything was written, and what to know before its next step."""

    ref: ResourceRef
    is_new: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """What is there, and in which state; no state for nothing."""

    there: ImportTarget
    revision: Revision | None


async def check_import(
    export: StoreExport, engine: EngineContext, dry_run: DryRunApply, *, overwrite: bool = False
) -> "CheckedImport":
    """The import, when nothing stands in its way; UserError for whatever does. Nothing is written.

    `overwrite`: what is there and says something else gives way.
    """
    check = _ImportCheck(export, engine, dry_run)
    dependencies = {item.ref: check.dependencies(item) for item in export.resources}
    order = reconcile_order(dependencies)
    await check.require_needs(dependencies)
    found = {item.ref: await check.find(item) for item in export.items}
    others = [str(ref) for ref, finding in found.items() if finding.there is ImportTarget.OTHER]
    if others and not overwrite:
        raise UserError(
            f"{join_names(others)}: here already, and not as in the export; nothing was written. "
            "Leave it out of the export, or give up what is here with --overwrite"
        )
    by_ref = {item.ref: item for item in export.resources}
    return CheckedImport(check.crossings, [by_ref[ref] for ref in order], found)


@dataclass(frozen=True, slots=True)
class _ImportCheck:
    """What is looked at before anything is written."""

    export: StoreExport
    engine: EngineContext
    dry_run: DryRunApply

    @property
    def crossings(self) -> "_Translations":
        return _Translations(self.engine, {one.ref: one for one in self.export.objects})

    def dependencies(self, item: ExportedResource) -> Sequence[Dependency]:
        """What the spec refers to; ManifestInvalid for one that cannot be taken here."""
        try:
            kind = self.engine.resource_type_of(item.resource)
            check_manifest(item.resource, kind)
            return dependencies_of(item.resource, self.engine.resource_types)
        except UserError as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error

    async def require_needs(self, dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> None:
        """UserError for what a resource had at hand where it comes from, and would not have here."""
        here = {item.ref for item in self.export.items}
        had = [item.ref for item in self.export.resources if item.facts.intent is not None]
        targets = dict.fromkeys(dependency_target(dependency) for ref in had for dependency in dependencies[ref])
        missing = [str(one) for one in targets if one not in here and await self.engine.store.get(one) is None]
        if missing:
            raise UserError(
                f"{join_names(missing)}: referred to, and neither in the export nor in this store. "
                "Put it there first, or "
                "export it, too: Secrets with --with-secrets"
            )

    async def find(self, item: ExportedItem) -> ImportFinding:
        """What is in its place; ManifestInvalid where it cannot be put there, whatever gives way."""
        present = await self.engine.store.get(item.ref)
        try:
            if isinstance(item, ExportedObject):
                there = await self._object(item, present)
            else:
                there = await self._resource(item, present)
        except (UserError, NotReady) as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error
        return ImportFinding(there, None if present is None else present.revision)

    async def _object(self, item: ExportedObject, present: Resource | None) -> ImportTarget:
        if not is_unreconciled(item.ref, self.engine):
            raise ManifestInvalid(f"{item.ref}: no kind {item.ref.kind} is known here: leave it out of the export")
        if present is not None and _has_all_values(present, item.resource):
            return ImportTarget.OURS
        await self.dry_run(manifest_of(item.resource))
        return ImportTarget.NOTHING if present is None else ImportTarget.OTHER

    async def _resource(self, item: ExportedResource, present: Resource | None) -> ImportTarget:
        if present is None:
            await self.dry_run(manifest_of(item.resource))
            return ImportTarget.NOTHING
        # What is being deleted takes no manifest any more: then the one that it had is the one to compare with.
        declared = item.resource if present.is_deleting else await self.dry_run(manifest_of(item.resource))
        if _says_the_same(present, declared, item) and await self._is_left_by_us(present, item):
            return ImportTarget.OURS
        _require_replaceable(present, item)
        return ImportTarget.OTHER

    async def _is_left_by_us(self, present: Resource, item: ExportedResource) -> bool:
        """Whether its status is none, or what an import writes: nobody has a memory of its own here."""
        generation = present.generation
        crossing = await self.crossings.of(item, present)
        written: tuple[JsonObject, ...] = (
            {},
            initial_status(item, generation),
            translated_status(item, generation, crossing.translation),
        )
        return any(same(present.status, one) for one in written)


@dataclass(frozen=True, slots=True)
class _Translations:
    """The way of each resource into a store."""

    engine: EngineContext
    objects: Mapping[ResourceRef, ExportedObject]

    async def of(self, item: ExportedResource, there: Resource) -> ProvenTranslation:
        return await prove_translation(item, there, self.objects, self.engine)


@dataclass(frozen=True, slots=True)
class CheckedImport:
    """An import that nothing stands in the way of."""

    crossings: _Translations
    order: Sequence[ExportedResource]
    found: Mapping[ResourceRef, ImportFinding]

    async def run_import(self) -> tuple[ImportedResource, ...]:
        """Everything is there: plain objects first, then each resource after those it needs."""
        for one in self.crossings.objects.values():
            if self.found[one.ref].there is not ImportTarget.OURS:
                await self._store.apply(manifest_of(one.resource))
        for item in self.order:
            await self._put(item)
        # Only now everything is here that another may refer to.
        return tuple([await self._settle(item) for item in self.order])

    async def _put(self, item: ExportedResource) -> None:
        """The resource as its author wrote it, held as it was, its status not yet in the terms of this store."""
        store, found = self._store, self.found[item.ref].there
        there = await (
            self._present(item.ref) if found is ImportTarget.OURS else store.apply(manifest_of(item.resource))
        )
        if FINALIZER in item.resource.finalizers and FINALIZER not in there.finalizers:
            held = await store.set_finalizers(there, (*there.finalizers, FINALIZER))
            assert held is not None
            there = held
        if found is ImportTarget.OTHER or not there.status:
            await store.update_status(there, initial_status(item, there.generation))

    async def _settle(self, item: ExportedResource) -> ImportedResource:
        """The resource with its memory in the terms of this store; a deletion that was asked for is asked for here."""
        store, there = self._store, await self._present(item.ref)
        crossing = await self.crossings.of(item, there)
        there = await store.annotate(there, translated_annotations(item, crossing.translation))
        there = await store.update_status(there, translated_status(item, there.generation, crossing.translation))
        if item.facts.deleting and not there.is_deleting:
            await store.delete(item.ref)
        return ImportedResource(item.ref, self.found[item.ref].revision != there.revision, crossing.remarks)

    async def _present(self, ref: ResourceRef) -> Resource:
        found = await self._store.get(ref)
        if found is None:
            raise UserError(f"{ref} was deleted during the import: run it again")
        return found

    @property
    def _store(self) -> Store:
        return self.crossings.engine.store


def _has_all_values(present: Resource, wanted_object: Resource) -> bool:
    """Whether every value of an exported object is there: of a ConfigMap or Secret each key, of any other the whole."""
    there, wanted = present.document.get("data"), wanted_object.document.get("data")
    if "data" not in wanted_object.document:
        return present.author_digest == wanted_object.author_digest
    there = there if isinstance(there, dict) else {}
    return not isinstance(wanted, dict) or same({key: there.get(key) for key in wanted}, wanted)


def _says_the_same(present: Resource, declared: Resource, item: ExportedResource) -> bool:
    """Whether an apply would change nothing, and nobody else has said how far steps may go."""
    return (
        present.author_digest == declared.author_digest
        and present.labels == declared.labels
        and _author_annotations(present) == _author_annotations(declared)
        and present.annotations.get(MANAGEMENT) == item.resource.annotations.get(MANAGEMENT)
        and present.is_deleting <= item.facts.deleting
    )


def _author_annotations(resource: Resource) -> Mapping[str, str]:
    return {name: text for name, text in resource.annotations.items() if name not in ENGINE_ANNOTATIONS}


def _require_replaceable(present: Resource, item: ExportedResource) -> None:
    """UserError for what must not be forgotten, whoever asks for it: an object would be left behind."""
    if present.is_deleting:
        raise NotReady(f"{item.ref} is being deleted here: wait until it is gone")
    here, there = StoredState.of(present).location, StoredState.of(item.resource).location
    if here is not None and here != there:
        raise UserError(
            f"{item.ref} stands for {here} here, and for {there or 'nothing yet'} in the export: leave it out of the "
            "export, or let go of the one that is here"
        )
