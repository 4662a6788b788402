"""The proof of an import: each draft is planned as if the others were applied, and says more until nothing changes."""

import asyncio
from collections import ChainMap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.context import EngineContext
from setpoint.engine.importing.drafts import (
    ImportDraft,
    ReferenceIndex,
    named_references,
    restored,
    with_references,
)
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import ENGINE_STATE
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import Bug, NotReady, SetpointError

# How often a draft is planned: with each plan that is not empty it says more.
_MOST_PLANS: Final = 8
_AT_ONCE: Final = 16


class ImportOutcome(StrEnum):
    """What the plan of a manifest says."""

    # Applying it changes nothing.
    UNCHANGED = "unchanged"
    # It would change fields, which are named: no manifest of this kind says what is there.
    DIFFERS = "differs"
    # It needs a Secret, which is not told: nothing can be planned before there is one.
    NEEDS_SECRET = "needs secret"  # no secret
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProvenDraft:
    """A draft with the outcome of its plan; `explicit` are fields that were written out so that it is empty."""

    draft: ImportDraft
    outcome: ImportOutcome
    fields: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()
    error: str = ""


# Makes the resource that an apply of a manifest would result in.
DryRun = Callable[[JsonObject], Awaitable[Resource]]


async def prove(
    drafts: Sequence[ImportDraft],
    index: ReferenceIndex,
    engine: EngineContext,
    dry_run: DryRun,
    *,
    proven: Callable[[ProvenDraft], None] = lambda one: None,
) -> tuple[ProvenDraft, ...]:
    """Each draft with references to the others, and as explicit as its plan needs to be empty."""
    settled = {one.ref: _as_settled(await dry_run(one.manifest), one) for one in drafts}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(draft: ImportDraft) -> ProvenDraft:
        async with turns:
            found = await _proven(draft, index, _Planner(engine, settled, dry_run))
        proven(found)
        return found

    return tuple(await asyncio.gather(*map(one, drafts)))


def _as_settled(resource: Resource, draft: ImportDraft) -> Resource:
    """The resource as it is once it was applied: what others take from it is on record."""
    status: dict[str, Json] = {
        **draft.live.present.outputs,
        "observedGeneration": resource.generation,
        "conditions": [{"type": "Ready", "status": "True", "reason": "UpToDate"}],
        ENGINE_STATE: {"location": draft.live.location},
    }
    return Resource({**resource.document, "status": status})


@dataclass(frozen=True, slots=True)
class _Planner:
    engine: EngineContext
    settled: dict[ResourceRef, Resource]
    dry_run: DryRun

    def kind_of(self, draft: ImportDraft) -> AnyKind:
        """The kind of a draft."""
        return self.engine.kinds[draft.live.kind]

    async def plan(self, draft: ImportDraft) -> Plan | SetpointError:
        """The plan of the first step of a draft, once those that it refers to were applied."""
        try:
            resource = await self.dry_run(draft.manifest)
            store = OverlayStore(self.engine.store, ChainMap({draft.ref: resource}, self.settled))
            return await preview(draft.ref, replace(self.engine, store=store))
        except SetpointError as error:
            return error


async def _proven(draft: ImportDraft, index: ReferenceIndex, planner: _Planner) -> ProvenDraft:
    plain, kind = draft, planner.kind_of(draft)
    skipped: set[Path] = set()
    explicit: list[str] = []
    found: Plan | SetpointError = Bug("it was not planned")
    for _ in range(_MOST_PLANS):
        draft = with_references(plain, kind, index, skipped)
        found = await planner.plan(draft)
        if isinstance(found, Plan) and found.is_empty and not found.withheld:
            return ProvenDraft(draft, ImportOutcome.UNCHANGED, (), tuple(explicit))
        named = set(named_references(draft, kind))
        if isinstance(found, SetpointError):
            if not named:
                return _failed(draft, found)
            # A reference that cannot be resolved: the object itself is named instead.
            skipped |= named
            continue
        changed = [change.path for change in (*found.changes, *found.withheld)]
        wrong = {path for path in named if any(path.covers(one) or one.covers(path) for one in changed)}
        more = plain
        for path in changed:
            more = restored(more, path)
        if not wrong and more.manifest == plain.manifest:
            more = _restored_members(plain, changed)
        if not wrong and more.manifest == plain.manifest:
            return ProvenDraft(draft, ImportOutcome.DIFFERS, tuple(map(str, changed)), tuple(explicit))
        skipped |= wrong
        explicit += [str(path) for path in changed if not wrong and str(path) not in explicit]
        plain = plain if wrong else more
    return _failed(draft, found) if isinstance(found, SetpointError) else _differs(draft, found, explicit)


def _restored_members(draft: ImportDraft, changed: Sequence[Path]) -> ImportDraft:
    """The draft with each member of the spec that something changes in written out as a whole."""
    for path in changed:
        draft = restored(draft, Path(path.steps[:2]))
    return draft


def _differs(draft: ImportDraft, plan: Plan, explicit: Sequence[str]) -> ProvenDraft:
    changed = tuple(str(change.path) for change in (*plan.changes, *plan.withheld))
    return ProvenDraft(draft, ImportOutcome.DIFFERS, changed, tuple(explicit))


def _failed(draft: ImportDraft, error: SetpointError) -> ProvenDraft:
    is_waiting = isinstance(error, NotReady) and bool(draft.secrets)
    return ProvenDraft(draft, ImportOutcome.NEEDS_SECRET if is_waiting else ImportOutcome.FAILED, error=str(error))
