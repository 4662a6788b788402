"""Follows the statuses of resources that another process reconciles, until each is settled, blocked or failed.

A status is current when it is of the newest generation and no reconcile request is open. What is not written to a
status, such as a service that does not answer, cannot be seen from here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import Any, Final

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.conditions import (
    DELETION_REASONS,
    REASONS,
    SETTLED_REASONS,
    ReadyCondition,
    ReadyDetails,
    condition_of,
)
from setpoint.engine.drivers.runner import OutcomeListener
from setpoint.engine.ports import EVERYTHING, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import StoredState, reconcile_request
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    ImmutableFieldChanged,
    ManagementConflict,
    OperationRunning,
    ProjectRefused,
    RemoteRefused,
    Retry,
    RevisionExpired,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
    is_same_error,
)

# Requests a reconcile of each; the request is on record when it returns.
RequestReconcile = Callable[[Sequence[ResourceRef]], Awaitable[None]]

_ERRORS: Final[Mapping[str, type[SetpointError]]] = {reason: error for error, reason in REASONS.items()}
# Errors after which a resource is not reconciled again by itself.
_FINAL_ERRORS: Final = (
    RemoteRefused,
    ImmutableFieldChanged,
    ProjectRefused,
    ManagementConflict,
    WaitTimedOut,
    WaitFailed,
)


async def step_records(refs: Iterable[ResourceRef], store: Store) -> Mapping[ResourceRef, JsonObject | None]:
    """The record of the last step of each resource, to be compared with that of a later one."""
    found = {ref: await store.get(ref) for ref in refs}
    return {ref: None if one is None else StoredState.of(one).step for ref, one in found.items()}


@dataclass(slots=True)
class StatusFollower:
    """Follows a set of resources. `listener` gets every new outcome; `before` has the step records at the beginning."""

    store: Store
    listener: OutcomeListener
    request_reconcile: RequestReconcile
    before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    outcomes: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    # The resources that are not done, each with its uid once that is known.
    _open: dict[ResourceRef, str | None] = field(default_factory=dict)
    _blocked: set[ResourceRef] = field(default_factory=set)
    # The value of `_progress` when a reconcile of each was last requested.
    _requested_at: dict[ResourceRef, int] = field(default_factory=dict)
    # How often a resource was done, or blocked by something new.
    _progress: int = 0
    # Resources of which only `record_error` reported something.
    _only_errors: set[ResourceRef] = field(default_factory=set)

    async def until_done(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The last outcome of each, once all are settled, failed or blocked with nothing under way; or at the timeout.

        A resource without an outcome by then is left out.
        """
        return await self._until(self._is_stuck, refs, timeout)

    async def until_first_outcome(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The first outcome of each."""

        async def has_all_outcomes() -> bool:
            return all(ref in self.outcomes for ref in self._open)

        return await self._until(has_all_outcomes, refs, timeout)

    async def refresh(self) -> None:
        """Reads the current status of every resource that is not done."""
        for ref in sorted(self._open):
            await self._read(ref)

    @property
    def left(self) -> Sequence[ResourceRef]:
        """The resources that are not done."""
        return sorted(self._open)

    def record_error(self, ref: ResourceRef, error: SetpointError) -> None:
        """A step of `ref` stopped with `error`, and will be retried: such an error is in no status."""
        last = self.outcomes.get(ref)
        if ref not in self._open or (last is not None and ref not in self._only_errors):
            return
        outcome = Stopped(error)
        if not _is_same_outcome(last, outcome):
            self.listener(ref, outcome)
        self.outcomes[ref] = outcome
        self._only_errors.add(ref)
        if error.retry is Retry.BUG:
            del self._open[ref]

    async def _until(
        self, is_over: Callable[[], Awaitable[bool]], refs: Iterable[ResourceRef], timeout: float | None
    ) -> Mapping[ResourceRef, StepOutcome]:
        self._open = dict.fromkeys(refs)
        try:
            async with asyncio.timeout(timeout):
                while not await self._watch(is_over):
                    pass
        except TimeoutError:
            pass
        return self.outcomes

    async def _watch(self, is_over: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it is over; False when the watch expired and has to be started again."""
        since = await _newest(self.store)
        await self.refresh()
        if await is_over():
            return True
        try:
            async for event in self.store.watch(since):
                if event.resource.ref in self._open:
                    await self._read(event.resource.ref)
                    if await is_over():
                        return True
        except RevisionExpired:
            pass
        return False

    async def _read(self, ref: ResourceRef) -> None:
        # As it is now: the event may show an older state.
        resource = await self.store.get(ref)
        outcome = self._outcome(ref, resource)
        if outcome is None:
            return
        is_new = not _is_same_outcome(self.outcomes.get(ref), outcome)
        if is_new:
            self.listener(ref, outcome)
        self.outcomes[ref] = outcome
        self._only_errors.discard(ref)
        self._blocked.discard(ref)
        if not isinstance(outcome, Stopped) or isinstance(outcome.error, _FINAL_ERRORS):
            del self._open[ref]
            self._progress += 1
        elif isinstance(outcome.error, DependencyNotReady | Blocked):
            self._blocked.add(ref)
            # A new block is part of the chain that dependants report.
            self._progress += is_new and len(self._open) > 1

    def _outcome(self, ref: ResourceRef, resource: Resource | None) -> StepOutcome | None:
        if resource is None:
            return Gone()
        first = self._open[ref] = self._open[ref] or resource.uid
        # Another resource of the same name: the one that was followed is gone.
        if resource.uid != first:
            return Gone()
        # Without a cluster no controller runs the children of owners, which never become ready: writing them is all.
        return outcome_of(resource, self.before.get(ref), waits_for_children=self.store.collects)

    async def _is_stuck(self) -> bool:
        """Whether all that are left are blocked, and each was reconciled since the last progress."""
        if set(self._open) - self._blocked:
            return False
        stale = sorted(ref for ref in self._open if self._requested_at.get(ref, 0) < self._progress)
        if not stale:
            return True
        for ref in stale:
            self._requested_at[ref] = self._progress
        self._blocked.difference_update(stale)
        await self.request_reconcile(stale)
        return False


def outcome_of(
    resource: Resource, before: JsonObject | None = None, *, waits_for_children: bool = True
) -> StepOutcome | None:
    """The outcome of the last step, by the status; None while another step is due, or under way without a report.

    `before` is the record of an earlier step, which does not count. `waits_for_children`: an owner is not done before
    its children are ready.
    """
    ready, details = condition_of(resource, ConditionType.READY), ReadyDetails.of(resource)
    if ready is None or details.is_claim or not _is_current(resource) or _is_outdated(resource, ready):
        return None
    # A status of a version without details has the whole message alone.
    error = details.error or ready.message
    match ready.reason:
        case ConditionReason.UPDATING:
            return Stopped(OperationRunning(error))
        case ConditionReason.DELETING:
            return Stopped(_deleting(resource, ready, details))
        case ConditionReason.DELETION_TIMED_OUT:
            return Stopped(WaitTimedOut(error))
        case ConditionReason.UPDATE_FAILED | ConditionReason.DELETE_FAILED:
            return Stopped(RemoteRefused(error))
        case reason if reason in _ERRORS:
            return Stopped(_ERRORS[reason](error))
        case reason if ready.status == "False" and _is_waiting(reason, waits_for_children=waits_for_children):
            return Stopped(StillWaiting(error, inf))
        case _:
            return Settled(_plan(resource, before), ReadyCondition(ready.status, ready.reason, ready.message, details))


def _is_waiting(reason: str, *, waits_for_children: bool) -> bool:
    """Whether it waits for its object; or is an owner whose children are not ready yet."""
    return reason == ConditionReason.WAITING or (waits_for_children and reason not in SETTLED_REASONS)


def _deleting(resource: Resource, ready: Condition, details: ReadyDetails) -> OperationRunning:
    if details.error:
        return StillWaiting(details.error, inf)
    operation = StoredState.of(resource).operation
    return OperationRunning(f"operation {operation.name} is running" if operation else ready.message)


def _is_same_outcome(before: StepOutcome | None, after: StepOutcome) -> bool:
    if isinstance(before, Stopped) and isinstance(after, Stopped):
        return is_same_error(before.error, after.error)
    return before == after


def _is_outdated(resource: Resource, ready: Condition) -> bool:
    """Whether the condition is of before the resource was to be deleted."""
    return resource.is_deleting and ready.reason not in DELETION_REASONS


def _is_current(resource: Resource) -> bool:
    is_newest = resource.status.get("observedGeneration") == resource.generation
    return is_newest and StoredState.of(resource).handled == reconcile_request(resource.annotations)


def _plan(resource: Resource, before: JsonObject | None) -> Plan:
    """The writes since `before`, without their fields."""
    step: Any = StoredState.of(resource).step
    if step is None or same(step, before):
        return Plan(Decision.IN_SYNC)
    reason = next((one for one in DecisionReason if one == step.get("reason")), None)
    return Plan(
        Decision(step["decision"]),
        tuple(PlannedWrite(Action(one["action"]), one["name"]) for one in step["writes"]),
        reason=reason,
        retained=tuple(map(_retained, step.get("retained", ()))),
    )


def _retained(data: Mapping[str, Any]) -> FieldChange:
    """A retained field, without its value."""
    return FieldChange(Path.parse(data["path"]), MISSING, MISSING, Rule(data["rule"]))


async def _newest(store: Store) -> Revision:
    """The revision to watch from."""
    async for page in store.pages(EVERYTHING, 1):
        return page.revision
    raise AssertionError("a store without a page")
