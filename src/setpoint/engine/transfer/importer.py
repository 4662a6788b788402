"""Imports an export into a store, so that the next step there continues where the last one elsewhere left off.

Everything is checked before anything is written, and writing is idempotent: an import that was killed is run again.
Which digests and secret versions mean the same in both stores is proved here, never assumed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias

from setpoint.core.schema.annotations import SET, SOURCE
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import join_names
from setpoint.engine.context import FINALIZER, EngineContext
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
    unknown_kind,
)
from setpoint.engine.management import MANAGEMENT, Management, management_of
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

_COMPARED: Final = "the next step compares every field"
_Secrets: TypeAlias = Mapping[ResourceRef, ExportedObject]
# New versions of secrets, by field and old version.
_Versions: TypeAlias = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class ProvenTranslation:
    """The translation that is proved, and remarks for people about what is not."""

    translation: StateTranslation
    remarks: tuple[str, ...] = ()


async def prove_translation(
    item: ExportedResource, imported: Resource, secrets: _Secrets, engine: EngineContext
) -> ProvenTranslation:
    """The translation of one resource; `imported` is the resource in the new store, where its dependencies exist."""
    if isinstance(engine.resource_type_of(imported), Owner):
        # An owner goes by its last generated state, which is carried over in the status.
        return ProvenTranslation(StateTranslation(), _remarks(item, "", {}))
    engine = await engine.for_namespace(imported.ref.namespace)
    kind = engine.kind_of(imported)
    keys = secret_keys(imported, kind)
    versions = _carried_secrets(item, keys, await resolve_available(keys, imported.ref, engine), secrets)
    try:
        intent = await resolve_ignoring_readiness(imported, engine)
    except (NotReady, UserError) as error:
        return ProvenTranslation(StateTranslation({}, versions), _remarks(item, str(error), versions))
    versions = {**versions, **_carried_values(item, imported, keys, intent)}
    why = _why_not_proved(item, imported, kind, intent)
    is_whole = all((name, version) in versions for name, version in item.facts.versions.items())
    intents = {item.facts.intent: intent.digest} if item.facts.intent and is_whole and not why else {}
    return ProvenTranslation(
        StateTranslation(intents, versions), _remarks(item, _why_compared_again(item, kind, why), versions)
    )


def _carried_secrets(
    item: ExportedResource, keys: Sequence[SecretKeyReference], here: ResolvedReferences, secrets: _Secrets
) -> _Versions:
    """The versions of the secrets with values that are proved to be equal in both stores."""
    old = {key: item.facts.versions.get(key.field) for key in keys}
    return {
        (key.field, version): here.versions[key.field]
        for key, version in old.items()
        if version is not None and key.field in here.versions and _is_same(key, version, here, secrets.get(key.secret))
    }


def _is_same(key: SecretKeyReference, version: str, here: ResolvedReferences, secret: ExportedObject | None) -> bool:
    """Whether this is the same Secret, or its exported value equals the one in this store."""
    if version == here.versions[key.field]:
        return True
    if secret is None or version != f"{secret.facts.version}/{key.key}":
        return False
    return secret_value(key, secret.resource) == here.secrets[key.field]


def _carried_values(
    item: ExportedResource, imported: Resource, keys: Sequence[SecretKeyReference], intent: Intent
) -> _Versions:
    """The versions of secret values in the spec itself: the same spec has the same values."""
    if imported.author_digest != item.resource.author_digest:
        return {}
    in_secrets = {key.field for key in keys}
    own = {name: new for name, new in intent.resolved.versions.items() if name not in in_secrets}
    return {(name, old): own[name] for name, old in item.facts.versions.items() if name in own}


def _why_not_proved(item: ExportedResource, imported: Resource, kind: AnyKind, intent: Intent) -> str:
    """Why the intent is not proved to be the same; empty when it is.

    With the old versions of its secrets in place of the new ones, it must have the old digest: then nothing else that
    an intent covers has changed, neither spec nor labels, annotations, references or the kind itself.
    """
    if item.facts.intent is None:
        return f"what it refers to was not there where it came from: {_COMPARED}"
    if imported.author_digest != item.resource.author_digest:
        return f"its spec reads differently here: {_COMPARED}"
    before = intent_of(imported, kind, replace(intent.resolved, versions=item.facts.versions))
    if before.digest != item.facts.intent:
        return f"its labels, what it refers to, or its kind mean something else here: {_COMPARED}"
    return ""


def _why_compared_again(item: ExportedResource, kind: AnyKind, why: str) -> str:
    """Why the next step of a stateful kind has to compare everything; empty when the cookie still matches."""
    if kind.reconciliation is Reconciliation.STATELESS:
        return ""
    cookie = StoredState.of(item.resource).cookie
    is_settled = cookie is not None and cookie.intent == item.facts.intent
    if why or is_settled or management_of(item.resource.annotations) is not Management.FULL:
        return why
    return "not settled where it came from: what was left to do is left to do here"


def _remarks(item: ExportedResource, why: str, versions: _Versions) -> tuple[str, ...]:
    """The remarks about one resource."""
    facts, sent = item.facts, StoredState.of(item.resource).secrets
    if facts.deleting:
        return ("its deletion continues here",)
    again = [name for name, old in facts.versions.items() if sent.get(name) == old and (name, old) not in versions]
    resent = (
        f"{join_names(again)} is not known to be the same here: it counts as new, and is sent once" if again else ""
    )
    return tuple(remark for remark in (why, resent) if remark)


# The resource that an apply would result in, or its error; nothing is written.
DryRunApply: TypeAlias = Callable[[JsonObject], Awaitable[Resource]]


class ImportTarget(Enum):
    """What the store has already under the name of an exported item."""

    NOTHING = "nothing"
    # The same, or what an earlier run of this import wrote.
    OURS = "ours"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class ImportedResource:
    """A resource that was imported: whether anything was written, and remarks about its next step."""

    ref: ResourceRef
    is_new: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """What the store has already, and its revision; None for nothing."""

    target: ImportTarget
    revision: Revision | None


async def check_import(
    export: StoreExport, engine: EngineContext, dry_run: DryRunApply, *, overwrite: bool = False
) -> "CheckedImport":
    """The import, if it can be done; UserError for what is in its way. Nothing is written.

    `overwrite`: what the store has under the same names is replaced.
    """
    check = _ImportCheck(export, engine, dry_run)
    dependencies = {item.ref: check.dependencies(item) for item in export.resources}
    order = reconcile_order(dependencies)
    await check.require_dependencies(dependencies)
    found = {item.ref: await check.find(item) for item in export.items}
    conflicting = [str(ref) for ref, finding in found.items() if finding.target is ImportTarget.OTHER]
    if conflicting and not overwrite:
        raise UserError(
            f"{join_names(conflicting)}: here already, and not as in the export; nothing was written. "
            "Leave it out of the export, or give up what is here with --overwrite"
        )
    by_ref = {item.ref: item for item in export.resources}
    return CheckedImport(check.translations, [by_ref[ref] for ref in order], found)


@dataclass(frozen=True, slots=True)
class _ImportCheck:
    """The checks before anything is written."""

    export: StoreExport
    engine: EngineContext
    dry_run: DryRunApply

    @property
    def translations(self) -> "_Translations":
        return _Translations(self.engine, {one.ref: one for one in self.export.objects})

    def dependencies(self, item: ExportedResource) -> Sequence[Dependency]:
        """The dependencies of a resource; ManifestInvalid for one that is invalid here."""
        try:
            kind = self.engine.resource_type_of(item.resource)
            check_manifest(item.resource, kind)
            return dependencies_of(item.resource, self.engine.resource_types)
        except UserError as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error

    async def require_dependencies(self, dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> None:
        """UserError for a dependency that existed in the old store and would not exist here."""
        here = {item.ref for item in self.export.items}
        had = [item.ref for item in self.export.resources if item.facts.intent is not None]
        targets = dict.fromkeys(dependency_target(dependency) for ref in had for dependency in dependencies[ref])
        missing = [str(one) for one in targets if one not in here and await self.engine.store.get(one) is None]
        if missing:
            raise UserError(
                f"{join_names(missing)}: referred to, and neither in the export nor in this store. "
                "Put it there first, or export it, too: Secrets with --with-secrets"
            )

    async def find(self, item: ExportedItem) -> ImportFinding:
        """What the store has under this name; ManifestInvalid when it cannot be imported even with `overwrite`."""
        present = await self.engine.store.get(item.ref)
        try:
            if isinstance(item, ExportedObject):
                target = await self._object(item, present)
            else:
                target = await self._resource(item, present)
        except (UserError, NotReady) as error:
            raise ManifestInvalid(f"{item.place}: {error}") from error
        return ImportFinding(target, None if present is None else present.revision)

    async def _object(self, item: ExportedObject, present: Resource | None) -> ImportTarget:
        if not is_unreconciled(item.ref, self.engine):
            raise unknown_kind(item.ref.kind, (), str(item.ref), advice="leave it out of the export")
        if present is not None and _has_all_values(present, item.resource):
            return ImportTarget.OURS
        await self.dry_run(manifest_of(item.resource))
        return ImportTarget.NOTHING if present is None else ImportTarget.OTHER

    async def _resource(self, item: ExportedResource, present: Resource | None) -> ImportTarget:
        if present is None:
            await self.dry_run(manifest_of(item.resource))
            return ImportTarget.NOTHING
        # A resource that is being deleted accepts no manifest: then its own is the one to compare.
        declared = item.resource if present.is_deleting else await self.dry_run(manifest_of(item.resource))
        if _is_same_declaration(present, declared, item) and await self._is_import_status(present, item):
            return ImportTarget.OURS
        _require_replaceable(present, item)
        return ImportTarget.OTHER

    async def _is_import_status(self, present: Resource, item: ExportedResource) -> bool:
        """Whether its status is empty, or one that this import writes: no step was taken here."""
        generation = present.generation
        proven = await self.translations.of(item, present)
        written: tuple[JsonObject, ...] = (
            {},
            initial_status(item, generation),
            translated_status(item, generation, proven.translation),
        )
        return any(same(present.status, one) for one in written)


@dataclass(frozen=True, slots=True)
class _Translations:
    """Proves the translation of each resource."""

    engine: EngineContext
    objects: Mapping[ResourceRef, ExportedObject]

    async def of(self, item: ExportedResource, imported: Resource) -> ProvenTranslation:
        return await prove_translation(item, imported, self.objects, self.engine)


@dataclass(frozen=True, slots=True)
class CheckedImport:
    """An import after its checks."""

    translations: _Translations
    order: Sequence[ExportedResource]
    found: Mapping[ResourceRef, ImportFinding]

    async def run_import(self) -> tuple[ImportedResource, ...]:
        """Writes everything: objects first, then each resource after its dependencies."""
        for one in self.translations.objects.values():
            if self.found[one.ref].target is not ImportTarget.OURS:
                await self._store.apply(manifest_of(one.resource))
        for item in self.order:
            await self._write(item)
        # Only now every dependency exists, which the translation needs.
        return tuple([await self._translate(item) for item in self.order])

    async def _write(self, item: ExportedResource) -> None:
        """Writes the manifest, the finalizer, and the status in the terms of the old store."""
        store, found = self._store, self.found[item.ref].target
        there = await (
            self._present(item.ref) if found is ImportTarget.OURS else store.apply(manifest_of(item.resource))
        )
        if FINALIZER in item.resource.finalizers and FINALIZER not in there.finalizers:
            held = await store.set_finalizers(there, (*there.finalizers, FINALIZER))
            assert held is not None
            there = held
        if found is ImportTarget.OTHER or not there.status:
            await store.update_status(there, initial_status(item, there.generation))

    async def _translate(self, item: ExportedResource) -> ImportedResource:
        """Writes the status in the terms of this store, and requests the deletion that was requested in the old one."""
        store, there = self._store, await self._present(item.ref)
        proven = await self.translations.of(item, there)
        there = await store.annotate(there, translated_annotations(item, proven.translation))
        there = await store.update_status(there, translated_status(item, there.generation, proven.translation))
        if item.facts.deleting and not there.is_deleting:
            await store.delete(item.ref)
        return ImportedResource(item.ref, self.found[item.ref].revision != there.revision, proven.remarks)

    async def _present(self, ref: ResourceRef) -> Resource:
        found = await self._store.get(ref)
        if found is None:
            raise UserError(f"{ref} was deleted during the import: run it again")
        return found

    @property
    def _store(self) -> Store:
        return self.translations.engine.store


def _has_all_values(present: Resource, wanted_object: Resource) -> bool:
    """Whether the store has every value of an exported object: each key of a ConfigMap or Secret, else all of it."""
    there, wanted = present.document.get("data"), wanted_object.document.get("data")
    if "data" not in wanted_object.document:
        return present.author_digest == wanted_object.author_digest
    there = there if isinstance(there, dict) else {}
    return not isinstance(wanted, dict) or same({key: there.get(key) for key in wanted}, wanted)


def _is_same_declaration(present: Resource, declared: Resource, item: ExportedResource) -> bool:
    """Whether an apply would change nothing, and the management is that of the export."""
    return (
        present.author_digest == declared.author_digest
        and present.labels == declared.labels
        and _author_annotations(present) == _author_annotations(declared)
        and present.annotations.get(MANAGEMENT) == item.resource.annotations.get(MANAGEMENT)
        and present.is_deleting <= item.facts.deleting
    )


def _author_annotations(resource: Resource) -> Mapping[str, str]:
    # Which set it is in is a matter of each store.
    left_out = (*ENGINE_ANNOTATIONS, SET, SOURCE)
    return {name: text for name, text in resource.annotations.items() if name not in left_out}


def _require_replaceable(present: Resource, item: ExportedResource) -> None:
    """UserError for a resource that must not be overwritten: its live object would be left behind."""
    if present.is_deleting:
        raise NotReady(f"{item.ref} is being deleted here: wait until it is gone")
    here, there = StoredState.of(present).location, StoredState.of(item.resource).location
    if here is not None and here != there:
        raise UserError(
            f"{item.ref} stands for {here} here, and for {there or 'nothing yet'} in the export: leave it out of the "
            "export, or let go of the one that is here"
        )
