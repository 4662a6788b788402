"""The children of an owner: what is generated, what is live, both digests, and the plan between the two."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from setpoint.core.decide import Decision, DecisionReason, decide
from setpoint.core.merge.child_plan import ChildPlan, plan_child
from setpoint.core.merge.children import Child, ChildUpdatePolicy, last_generated_status, resolve_last_generated
from setpoint.core.merge.threeway import LastGenerated
from setpoint.core.owner_references import Ownership, ownership
from setpoint.core.plan import Plan
from setpoint.core.redaction import is_secret
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.context import EngineContext, StepContext
from setpoint.engine.owner import GeneratedChildren, Owner
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.state import AppliedIntent
from setpoint.engine.step.hold import HeldField, held_fields, withhold
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.errors import NotReady, SetpointError, UserError

# On an owner: `two-way` asks for a merge without the last generated state, as trustee-operator merges.
MERGE: Final = known_annotations.MERGE
TWO_WAY: Final = "two-way"
# In its status: the last generated state, as digests by child, and the fields with edits that conflict with it.
LAST_GENERATED: Final = "lastGenerated"
CONFLICTS: Final = "conflicts"
_LABELS: Final = Path(("metadata", "labels"))
_OWNERS: Final = Path(("metadata", "ownerReferences"))


@dataclass(frozen=True, slots=True)
class OwnerObservation:
    """An owner and all of its children, as observed. `live` has those that exist, by their keys."""

    owner: Resource
    generated: GeneratedChildren
    live: Mapping[str, Resource]
    # The digest of everything that the children are generated from; and what of it is the author's.
    intent: str
    applied: AppliedIntent
    # The versions of the owner and its sources that all of this was read from.
    inputs: Mapping[ResourceRef, str]

    @property
    def live_digest(self) -> str | Missing:
        """The digest of the generated and merged parts of the live children; MISSING when none exists."""
        parts = {child.key: _managed_parts(child, self.live.get(child.key)) for child in self.generated.children}
        return digest(parts) if self.live else MISSING


async def observe_children(resource: Resource, owner: Owner, engine: EngineContext) -> OwnerObservation:
    """Reads the sources, generates the children, and reads the live ones; ReferenceNotGranted before any is read."""
    sources, store = owner.sources(resource), engine.store
    namespaced = [("spec", ref) for ref in sources if _is_in_namespace(ref, owner)]
    await engine.require_granted(resource.ref, namespaced)
    read = await store.get_many(sources)
    found = {ref: one for ref, one in zip(sources, read, strict=True) if one is not None}
    generated = owner.generate(resource, found)
    live = await store.get_many([child_ref(child) for child in generated.children])
    existing = {child.key: one for child, one in zip(generated.children, live, strict=True) if one is not None}
    intent, applied = _intent(resource, owner, generated, found), _applied(resource, owner, found)
    inputs = input_versions((resource.ref, *sources), (resource, *read))
    return OwnerObservation(resource, generated, existing, intent, applied, inputs)


def input_versions(refs: Iterable[ResourceRef], found: Iterable[Resource | None]) -> Mapping[ResourceRef, str]:
    """The version of each object; without those that are not there."""
    return {ref: f"{one.uid}/{one.revision}" for ref, one in zip(refs, found, strict=True) if one is not None}


def child_ref(child: Child) -> ResourceRef:
    """The resource that a child is."""
    return Resource(child.object).ref


@dataclass(frozen=True, slots=True)
class ChildPlans:
    """The plans of all children, in order; `error` keeps further children from being planned."""

    plans: tuple[ChildPlan, ...] = ()
    error: SetpointError | None = None
    # The last generated state of the live children, by key.
    known: Mapping[str, LastGenerated] = field(default_factory=dict)


def plan_children(observation: OwnerObservation, begun: JsonObject | None, recorded: Json) -> ChildPlans:
    """The plan of each child up to the first error.

    `recorded` is the last generated state of all of them, `begun` what an earlier step was about to write.
    """
    owner, plans, known = observation.owner, list[ChildPlan](), dict[str, LastGenerated]()
    is_two_way = is_two_way_merge(owner.annotations)
    for child in observation.generated.children:
        live = observation.live.get(child.key)
        tree = None if live is None else live.document
        last = None if tree is None else _last_generated(child, tree, observation, begun, recorded)
        if last is not None:
            known[child.key] = last
        try:
            plans.append(plan_child(child, tree, owner.document, None if is_two_way else last))
        except SetpointError as error:
            return ChildPlans(tuple(plans), error, known)
    return ChildPlans(tuple(plans), observation.generated.error, known)


def _last_generated(
    child: Child, live: JsonObject, observation: OwnerObservation, begun: JsonObject | None, recorded: Json
) -> LastGenerated | None:
    is_ours = ownership(live, observation.owner.document) is Ownership.OURS
    return resolve_last_generated(child, live, recorded, begun, is_ours=is_ours)


def is_two_way_merge(annotations: Mapping[str, str]) -> bool:
    """Whether the author asks for a merge without the last generated state; ManifestInvalid for an unknown word."""
    return annotation_value(annotations, MERGE) == TWO_WAY


# --- Digests ----------------------------------------------------------------------------------------------------------


def _intent(
    resource: Resource, owner: Owner, generated: GeneratedChildren, found: Mapping[ResourceRef, Resource]
) -> str:
    return digest(
        {
            "written": resource.author_digest,
            "annotations": _meaningful_annotations(resource, owner),
            "revision": owner.revision,
            "generated": list(_without_secrets(generated.children)),
            "trouble": None if generated.error is None else str(generated.error),
            # A Secret counts by its version, never by its values.
            "sources": {str(ref): f"{one.uid}/{one.revision}" for ref, one in found.items() if is_secret(one.document)},
        }
    )


def _applied(resource: Resource, owner: Owner, found: Mapping[ResourceRef, Resource]) -> AppliedIntent:
    """The revision, and a short digest of what authors wrote in the owner and its sources: not of the children."""
    sources: dict[str, Json] = {
        str(ref): f"{one.uid}/{one.revision}" if is_secret(one.document) else one.author_digest
        for ref, one in found.items()
    }
    written: Json = [resource.author_digest, _meaningful_annotations(resource, owner), sources]
    return AppliedIntent(owner.revision, digest(written)[:16])


def _meaningful_annotations(resource: Resource, owner: Owner) -> dict[str, Json]:
    annotations = resource.annotations
    return {key: annotations[key] for key in (MERGE, *owner.annotations) if key in annotations}


def _without_secrets(children: Iterable[Child]) -> Iterator[Json]:
    for child in children:
        hidden = ("data", "stringData") if is_secret(child.object) else ()
        yield {name: value for name, value in child.object.items() if name not in hidden}


def _managed_parts(child: Child, live: Resource | None) -> Json:
    if live is None:
        return None
    if is_secret(live.document):
        return [live.uid, live.revision]
    contents = None if child.update_policy is ChildUpdatePolicy.CREATE_ONLY else child.view.read(live.document)
    return [_value_at(live, _LABELS), _value_at(live, _OWNERS), contents]


def _value_at(live: Resource, path: Path) -> Json:
    found = get_at(live.document, path)
    return None if isinstance(found, Missing) else found


@dataclass(frozen=True, slots=True)
class OwnerPlan:
    """The plan of an owner's step: the observation, the plans of its children, and the plan as a whole."""

    observation: OwnerObservation
    children: ChildPlans
    plan: Plan
    # The keys of the children that differ and are not written now: they have a held field.
    withheld: frozenset[str] = frozenset()

    @property
    def to_write(self) -> tuple[ChildPlan, ...]:
        """The plans of the children that are written, in order."""
        return tuple(one for one in self.children.plans if one.write is not None and one.child.key not in self.withheld)


def owner_plan(context: StepContext, observation: OwnerObservation) -> OwnerPlan:
    """The plan of an owner's step; nothing is written when both digests match."""
    memory = context.state
    live = observation.live_digest
    decision = decide(memory.cookie, observation.intent, live, is_revised=_is_only_revised(context, observation))
    is_settled = decision is Decision.IN_SYNC and memory.generating is None
    if is_settled and not context.status_edited:
        return OwnerPlan(observation, ChildPlans(), Plan(decision))
    # With both digests as they were, what is generated now was generated last: another writer may have removed that.
    children = plan_children(
        observation,
        memory.generating,
        last_generated_status(observation.generated.children)
        if is_settled
        else context.resource.status.get(LAST_GENERATED, {}),
    )
    writes = tuple(one.write for one in children.plans if one.write is not None)
    kept = tuple(change for one in children.plans for change in one.kept)
    was_there = decision is Decision.CREATE and memory.cookie is not None
    reason = DecisionReason.DELETED if was_there else None
    planned = OwnerPlan(observation, children, Plan(decision, writes, kept, reason=reason))
    held = held_fields(planned.plan, observation.intent, context)
    return _withholding(held, planned) if held else planned


def _is_only_revised(context: StepContext, observation: OwnerObservation) -> bool:
    """Whether the revision changed since the last intent was applied, and nothing that authors wrote."""
    before, now = context.state.applied, observation.applied
    return before is not None and before.revision != now.revision and before.authored == now.authored


def _withholding(held: Sequence[HeldField], planned: OwnerPlan) -> OwnerPlan:
    """The plan without the children that have a held field: a child is written as a whole."""
    paths = {one.path for one in held}
    keys = frozenset(
        write.name for write in planned.plan.writes if any(str(change.path) in paths for change in write.changes)
    )
    left = tuple(write for write in planned.plan.writes if write.name not in keys)
    changes = tuple(change for write in planned.plan.writes if write.name in keys for change in write.changes)
    return replace(planned, plan=withhold(replace(planned.plan, writes=left), changes, held), withheld=keys)


def unreconciled_kinds(engine: EngineContext) -> frozenset[GroupKind]:
    """The kinds of objects that can be stored and are not reconciled: Secrets, grants, what owners make or read."""
    named = {(one.group, one.kind) for owner in engine.owners.values() for one in (*owner.makes, *owner.reads)}
    grants = () if engine.tenancy is None else (REFERENCE_GRANT,)
    return frozenset({SECRET, *named, *grants} - engine.resource_types.keys())


def is_unreconciled(ref: ResourceRef, engine: EngineContext) -> bool:
    """Whether `ref` is of one of these kinds."""
    return ref.group_kind not in engine.resource_types and ref.group_kind in unreconciled_kinds(engine)


# Children with contents of their own; any other can be generated again from the owner and its sources.
_EDITABLE: Final = (ChildUpdatePolicy.MERGE, ChildUpdatePolicy.CREATE_ONLY)


def owners_of_children(children: Iterable[Resource | None], engine: EngineContext) -> tuple[ResourceRef, ...]:
    """The owners that control these, if they are reconciled here: they merge an edit of a child."""
    owners = dict.fromkeys(one.controller for one in children if one is not None)
    return tuple(owner for owner in owners if owner is not None and owner.group_kind in engine.owners)


async def related_objects(resource: Resource, engine: EngineContext) -> tuple[Resource, ...]:
    """The unreconciled objects of an owner: children with contents of their own, and the sources that it reads.

    Cluster-scoped objects are left out. A resource of a kind has none.
    """
    owner = engine.owners.get(resource.ref.group_kind)
    if owner is None:
        return ()
    try:
        observation = await observe_children(resource, owner, engine)
        sources = await engine.store.get_many([ref for ref in owner.sources(resource) if _is_in_namespace(ref, owner)])
    except (NotReady, UserError):
        # The status of the resource has the error.
        return ()
    found = {one.ref: one for one in (*_children_with_contents(observation), *sources) if one is not None}
    return tuple(one for ref, one in found.items() if is_unreconciled(ref, engine))


def _children_with_contents(observation: OwnerObservation) -> Iterator[Resource]:
    for child in observation.generated.children:
        live = observation.live.get(child.key)
        if live is None or child.update_policy not in _EDITABLE:
            continue
        if ownership(live.document, observation.owner.document) is not Ownership.OTHER_OWNER:
            yield live


def _is_in_namespace(ref: ResourceRef, owner: Owner) -> bool:
    kinds = {(one.group, one.kind): one for one in (*owner.makes, *owner.reads)}
    return ref.group_kind not in kinds or kinds[ref.group_kind].is_namespaced
