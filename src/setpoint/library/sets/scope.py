"""The scope of a single command: the set that its manifests are, or the labels that they have; and what it prunes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan, plan_delete
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.declare import set_store_of
from setpoint.engine.sets.resource_set import SetDeclaration, SetStore, require_set_name, set_of
from setpoint.errors import ManifestInvalid
from setpoint.library.command_document import ResultData, ResultOutcome
from setpoint.library.command_record import CommandRecord
from setpoint.library.deletion import Deletion, announce, read_deletion
from setpoint.library.manifests.checks import CheckedManifests, dry_run_manifests, in_order
from setpoint.library.manifests.reading import ReadManifests
from setpoint.library.outcome import ExitCode
from setpoint.library.sets.declaring import (
    PlannedVersions,
    SetVersion,
    digest_of_manifests,
    plan_versions,
    prune_protection,
    require_source,
)
from setpoint.library.targets import Selection

# That of a set which a single command declares.
_SOURCE: Final = "setpoint apply"
_LABEL: Final = re.compile(r"([A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?)==?([-A-Za-z0-9_.]*)")


def parse_labels(text: str) -> Mapping[str, str]:
    """The labels of a selector, `key=value,key=value`; ManifestInvalid for anything else."""
    found = dict[str, str]()
    for part in text.split(","):
        match = _LABEL.fullmatch(part.strip())
        if match is None:
            raise ManifestInvalid(f"-l {text}: {part.strip()!r} is no label: write key=value, with commas between")
        found[match[1]] = match[2]
    return found


@dataclass(frozen=True, slots=True)
class SetScope:
    """What the manifests of a call are all of: a set, which is recorded; or what has these labels, and no set.

    With `prune`, what is in the scope and not among the manifests is deleted. `adopts`: what another set declares comes
    into this one. Without `allow_empty`, no manifest at all is a mistake.
    """

    set_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    prune: bool = False
    adopts: bool = False
    allow_empty: bool = False

    def __post_init__(self) -> None:
        if self.set_name:
            require_set_name(self.set_name)
        if self.set_name and self.labels:
            raise ManifestInvalid(
                f"--set {self.set_name} and -l say different things of what is pruned: name one of both"
            )
        if not self.set_name and not self.labels:
            raise ManifestInvalid(
                "name a set with --set NAME, or labels with -l KEY=VALUE: without either, everything that is not in "
                "the manifests would be pruned"
            )

    def selected(self, read: ReadManifests) -> ReadManifests:
        """The manifests in the scope: with labels, only those that have them, as kubectl does.

        ManifestInvalid for none: in which namespaces to prune is not known then.
        """
        wanted = self.labels.items()
        chosen = tuple(one for one in read.manifests if wanted <= one.resource.labels.items())
        if self.labels and not chosen and not read.problems:
            text = ",".join(f"{key}={value}" for key, value in wanted)
            raise ManifestInvalid(
                f"no manifest has the labels {text}: nothing is pruned for that; `setpoint delete -l {text}` deletes "
                "all that is declared with them"
            )
        return replace(read, manifests=chosen)


@dataclass(frozen=True, slots=True)
class PlannedScope:
    """What a command does to its scope, before anything is written."""

    checked: CheckedManifests
    order: Sequence[ResourceRef]
    # What is to be deleted, and what stays, with the reason.
    pruned: Mapping[ResourceRef, Resource]
    kept: Mapping[ResourceRef, str]
    planned: PlannedVersions | None

    def warn(self, scope: SetScope, record: CommandRecord) -> None:
        """Warns of what stays: protected, or because pruning was not asked for."""
        for ref, why in self.kept.items():
            record.warn_at_once(f"{ref} is not among the manifests, and is kept: {why}")
        if self.pruned and not scope.prune:
            names = ", ".join(map(str, sorted(self.pruned)))
            record.warn_at_once(f"not among the manifests, and left as they are without --prune: {names}")

    async def declaration(self, engine: EngineContext) -> SetDeclaration | None:
        """What is committed; None where no set is recorded."""
        if self.planned is None:
            return None
        return self.planned.declaration(await set_store_of(engine.store).sets(), engine.clock.now())


async def plan_scope(read: ReadManifests, scope: SetScope, engine: EngineContext) -> PlannedScope:
    """What declaring the manifests as all of the scope does; ManifestInvalid for any mistake."""
    if not scope.set_name:
        return await _plan_labels(scope.selected(read), scope, engine)
    if isinstance(engine.store, SetStore):
        for known in await engine.store.sets():
            if known.name == scope.set_name:
                require_source(known, _SOURCE, adopts=scope.adopts)
    version = SetVersion(scope.set_name, _SOURCE, digest_of_manifests(read), read)
    planned = await plan_versions([version], engine, adopts=scope.adopts)
    if planned.plan.postponed:
        names = ", ".join(map(str, sorted(planned.plan.postponed)))
        raise ManifestInvalid(f"being deleted: {names}: wait until they are gone, then apply it again")
    if not scope.prune:
        # A resource that stays is still a member: a later prune decides about it.
        planned = replace(planned, plan=replace(planned.plan, kept={}, pruned={}))
    leaving = {ref: one for ref, one in planned.leaving.items() if not one.is_deleting}
    kept = {ref: prune_protection(one, engine) for ref, one in leaving.items()}
    return PlannedScope(
        planned.checked,
        planned.order,
        {ref: one for ref, one in leaving.items() if not kept[ref]},
        {ref: why for ref, why in kept.items() if why},
        planned,
    )


async def _plan_labels(read: ReadManifests, scope: SetScope, engine: EngineContext) -> PlannedScope:
    checked = await dry_run_manifests(read, engine)
    refs = {one.ref for one in read.manifests}
    namespaces = {ref.namespace for ref in refs}
    found = (await engine.store.list(ResourceQuery(labels=scope.labels))).resources
    leaving = [
        one
        for one in found
        if one.ref not in refs and one.ref.namespace in namespaces and not one.is_deleting and one.controller is None
    ]
    kept = {
        one.ref: f"it belongs to the set {set_of(one.annotations)}"
        if set_of(one.annotations)
        else prune_protection(one, engine)
        for one in leaving
    }
    return PlannedScope(
        checked,
        in_order(checked.manifests, engine),
        {one.ref: one for one in leaving if not kept[one.ref]},
        {ref: why for ref, why in kept.items() if why},
        None,
    )


# --- Pruning ----------------------------------------------------------------------------------------------------------


async def read_prune(planned: PlannedScope, engine: EngineContext) -> Deletion | None:
    """What becomes of what is pruned, and what depends on it; None for nothing."""
    if not planned.pruned:
        return None
    return await read_deletion(Selection(targets=tuple(planned.pruned)), engine)


def prune_plans(deletion: Deletion) -> Mapping[ResourceRef, Plan]:
    """The plan of each deletion, in their order; without a write where only the resource goes, and its object stays."""
    plans = dict[ResourceRef, Plan]()
    for ref in deletion.order:
        fate = deletion.fate_of(ref)
        is_deleted = fate.outcome is ResultOutcome.DELETED
        plan = plan_delete(Decision.INTENT_CHANGED) if is_deleted else Plan(Decision.INTENT_CHANGED)
        plans[ref] = replace(plan, because=f"pruned: {fate.detail}" if fate.detail else "pruned")
    return plans


def add_prunes(deletion: Deletion, record: CommandRecord) -> None:
    """Adds what would be pruned to the results of a plan."""
    announce(deletion, record)
    plans = prune_plans(deletion)
    record.plans = {**record.plans, **plans}
    for ref, plan in plans.items():
        outcome = ResultOutcome.ABANDONED if plan.is_empty else ResultOutcome.DELETE
        data = ResultData(**ref._asdict(), outcome=outcome, message=plan.because, plan=plan.to_data())
        record.add(ref, data, ExitCode.CHANGES)
