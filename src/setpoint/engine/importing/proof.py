"""The proof of an import: each draft is planned as if the others were applied, and says more until nothing changes."""

import asyncio
from collections import ChainMap
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Final

from setpoint.core.plan import Plan
from setpoint.core.schema.annotations import UNMANAGED
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
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
from setpoint.engine.step.outcomes import AdoptedObject
from setpoint.engine.step.preview import as_adopted
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import Bug, ImmutableFieldChanged, NotReady, SetpointError

# How often a draft is planned: with each plan that is not empty it says more.
_MOST_PLANS: Final = 40
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
    """A draft with the outcome of its plan.

    So that it is empty, `explicit` are fields that were written out, and `unmanaged` those left to other writers.
    """

    draft: ImportDraft
    outcome: ImportOutcome
    fields: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()
    unmanaged: tuple[str, ...] = ()
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
    settled = {one.ref: as_adopted(await dry_run(one.manifest), _adopted(one)) for one in drafts}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(draft: ImportDraft) -> ProvenDraft:
        async with turns:
            found = await _proven(draft, index, _Planner(engine, settled, dry_run))
        proven(found)
        return found

    return tuple(await asyncio.gather(*map(one, drafts)))


def _adopted(draft: ImportDraft) -> AdoptedObject:
    return AdoptedObject(draft.live.location, draft.live.present.outputs)


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


@dataclass(slots=True)
class _Attempt:
    """What was found of a draft by its plans so far."""

    # Without references to resources.
    plain: ImportDraft
    # References that did not mean what is there, or could not be resolved.
    skipped: set[Path] = field(default_factory=set)
    explicit: tuple[str, ...] = ()
    unmanaged: tuple[str, ...] = ()

    def say_more(self, changed: Sequence[Path], named: Collection[Path]) -> bool:
        """Whether the draft can say more, so that these fields do not change: then it does."""
        wrong = {path for path in named if any(path.covers(one) or one.covers(path) for one in changed)}
        self.skipped |= wrong
        return bool(wrong) or self._write_out(changed) or self._leave_alone(changed)

    def _write_out(self, changed: Sequence[Path]) -> bool:
        """Whether live values can be written out: those of the fields, else those of the members that they are in."""
        for paths in (changed, [Path(path.steps[:2]) for path in changed]):
            more = self.plain
            for path in paths:
                more = restored(more, path)
            if more.manifest != self.plain.manifest:
                self.plain = more
                self.explicit = tuple(dict.fromkeys((*self.explicit, *map(str, changed))))
                return True
        return False

    def _leave_alone(self, changed: Sequence[Path]) -> bool:
        """Whether fields that no spec can say are left to other writers, by an annotation: once."""
        if self.unmanaged:
            return False
        self.unmanaged = tuple(map(str, changed))
        self.plain = self.plain.annotated(UNMANAGED, ",".join(self.unmanaged))
        return True

    def as_proven(self, draft: ImportDraft, outcome: ImportOutcome, fields: Iterable[str] = ()) -> ProvenDraft:
        """The draft with what its last plan said."""
        return ProvenDraft(draft, outcome, tuple(fields), self.explicit, self.unmanaged)


async def _proven(draft: ImportDraft, index: ReferenceIndex, planner: _Planner) -> ProvenDraft:
    attempt, kind = _Attempt(draft), planner.kind_of(draft)
    for _ in range(_MOST_PLANS):
        draft = with_references(attempt.plain, kind, index, attempt.skipped)
        found = await planner.plan(draft)
        if isinstance(found, Plan) and found.is_empty and not found.withheld:
            return attempt.as_proven(draft, ImportOutcome.UNCHANGED)
        named = set(named_references(draft, kind))
        changed = _changed(found)
        if isinstance(found, SetpointError) and not changed:
            if not named:
                return _failed(draft, found)
            # A reference that cannot be resolved: the object itself is named instead.
            attempt.skipped |= named
        elif not attempt.say_more(changed, named):
            return attempt.as_proven(draft, ImportOutcome.DIFFERS, map(str, changed))
    raise Bug(f"{draft.ref}: its manifest says more with each plan, and never enough")


def _changed(found: Plan | SetpointError) -> Sequence[Path]:
    """The fields that an apply would change, or would be refused to change; none of any other error."""
    if isinstance(found, Plan):
        return [change.path for change in (*found.changes, *found.withheld)]
    return list(map(Path.parse, found.paths)) if isinstance(found, ImmutableFieldChanged) else ()


def _failed(draft: ImportDraft, error: SetpointError) -> ProvenDraft:
    is_waiting = isinstance(error, NotReady) and bool(draft.secrets)
    return ProvenDraft(draft, ImportOutcome.NEEDS_SECRET if is_waiting else ImportOutcome.FAILED, error=str(error))
