"""Versions of sets: what declaring them would do, whether they may be declared, and the declaration.

START HERE: `plan_versions`. Everything that is refused is refused there, before anything is written.
"""

from collections.abc import Iterable, Mapping, Sequence

from setpoint.core.schema.annotations import PREVENT_PRUNE, annotation_value
from setpoint.core.values.canonical import canonical, sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.problems import joined_problems
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.declare import DeclaredMembers, declare
from setpoint.engine.sets.resource_set import (
    SetDeclaration,
    SetMember,
    SetRecord,
    SetState,
    is_leaving,
    set_of,
    source_text,
)
from setpoint.engine.sets.set_plan import PresentResource, SetPlan, plan_sets
from setpoint.errors import ManifestInvalid, UserError
from setpoint.library.deletion import deletion_problem
from setpoint.library.manifests.checks import CheckedManifests, dry_run_manifests, in_order
from setpoint.library.manifests.reading import LoadedManifest, ReadManifests


@dataclass(frozen=True, slots=True)
class SetVersion:
    """The manifests of a set at one revision of its source."""

    name: str
    source: str
    revision: str
    read: ReadManifests


@dataclass(frozen=True, slots=True)
class PlannedVersions:
    """Valid versions of sets, and what declaring them does."""

    versions: tuple[SetVersion, ...]
    checked: CheckedManifests
    # Those with a kind, in the order of their dependencies.
    order: Sequence[ResourceRef]
    plan: SetPlan
    # What is there now of the resources that leave.
    leaving: Mapping[ResourceRef, Resource]

    def declaration(self, before: Iterable[SetRecord], now: str) -> SetDeclaration:
        """All that is committed at once: what is declared, what is kept and leaves, and the records that change."""
        manifests = {one.ref: (version, one) for version in self.versions for one in version.read.manifests}
        members = [_member(*manifests[ref], seen) for ref, (_, seen) in self.plan.declared.items()]
        known = {one.name: one for one in before}
        records = [self._record(version, known.get(version.name), now) for version in self.versions]
        return SetDeclaration(
            tuple(members),
            tuple(self.plan.pruned.items()),
            tuple((ref, name) for ref, (name, _) in self.plan.kept.items()),
            tuple(one for one in records if one != known.get(one.name)),
        )

    def _record(self, version: SetVersion, before: SetRecord | None, now: str) -> SetRecord:
        is_new = before is None or (before.source, before.revision) != (version.source, version.revision)
        return SetRecord(
            version.name,
            version.source,
            version.revision,
            now if is_new or before is None else before.declared_at,
            len(version.read.manifests),
            self._state(version),
        )

    def _state(self, version: SetVersion) -> SetState:
        if any(one.ref in self.plan.postponed for one in version.read.manifests):
            return SetState.WAITING
        return SetState.CURRENT


def _member(version: SetVersion, manifest: LoadedManifest, seen: str) -> SetMember:
    return SetMember(manifest.tree, version.name, source_text(version.revision, manifest.file), seen)


async def plan_versions(
    versions: Sequence[SetVersion], engine: EngineContext, *, adopts: bool = False
) -> PlannedVersions:
    """What declaring these versions does; ManifestInvalid for any mistake, and for what another set declares."""
    all_of_them = ReadManifests(
        tuple(one for version in versions for one in version.read.manifests),
        tuple(one for version in versions for one in version.read.problems),
    )
    checked = await dry_run_manifests(all_of_them, engine)
    declared = {version.name: [one.ref for one in version.read.manifests] for version in versions}
    refs = {one.ref for one in all_of_them.manifests}
    resources = (await engine.store.list()).resources
    present = {
        one.ref: _present(one, engine, leaves=one.ref not in refs)
        for one in resources
        if one.ref in refs or set_of(one.annotations) in declared
    }
    plan = plan_sets(declared, present, adopts=adopts)
    if plan.conflicts:
        advice = "take it out of one of them; --adopt moves it to the set that is declared now"
        raise joined_problems([ManifestInvalid(f"{one}: {advice}") for one in plan.conflicts])
    order = in_order(checked.manifests, engine)
    leaving = {one.ref: one for one in resources if one.ref in plan.pruned or one.ref in plan.kept}
    return PlannedVersions(tuple(versions), checked, order, plan, leaving)


def _present(resource: Resource, engine: EngineContext, *, leaves: bool) -> PresentResource:
    protection = prune_protection(resource, engine) if leaves else ""
    names = resource.annotations
    return PresentResource(set_of(names), is_leaving(names), resource.is_deleting, protection)


def prune_protection(resource: Resource, engine: EngineContext) -> str:
    """Why a resource stays although it left its set; empty for one that is pruned."""
    try:
        if annotation_value(resource.annotations, PREVENT_PRUNE) == "true":
            return f"{PREVENT_PRUNE} is true"
    except ManifestInvalid as error:
        return str(error)
    return deletion_problem(resource, engine)


async def declare_versions(
    planned: PlannedVersions, engine: EngineContext, before: Iterable[SetRecord]
) -> DeclaredMembers:
    """Commits the versions: all of them, or nothing."""
    declaration = planned.declaration(before, engine.clock.now())
    return await declare(declaration, engine.store, engine.clock)


def require_source(known: SetRecord, source: str, *, adopts: bool) -> None:
    """UserError when a set was declared from another source: what that one has would be pruned."""
    # A set of which every version was refused has declared nothing.
    if known.declared_at and known.source not in ("", source) and not adopts:
        raise UserError(
            f"the set {known.name} was declared from {known.source}, and this is {source}: what is not there would be "
            "pruned; name another set, or --adopt to go on from here"
        )


def digest_of_manifests(read: ReadManifests) -> str:
    """The revision of manifests without a commit: of what they declare, wherever it stands."""
    trees = sorted((str(one.ref), dict(one.tree)) for one in read.manifests)
    return f"sha256:{sha256_hex(canonical([[name, tree] for name, tree in trees]))}"
