"""Follows the statuses of resources that another process reconciles, until each is settled, blocked or failed.

A status is current when it is of the newest generation and no reconcile request is open. What is not written to a
status, such as a service that does not answer, cannot be seen from here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import (
    DELETION_REASONS,
    REASONS,
    SETTLED_REASONS,
    ReadyCondition,
    ReadyDetails,
    condition_of,
)
from setpoint.engine.context import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.drivers.runner import OutcomeListener
from setpoint.engine.ports import EVERYTHING, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import RECONCILE_REQUESTED, StoredState
from setpoint.errors import (
    Blocked,
    DependencyNotReady,
    ImmutableFieldChanged,
    OperationRunning,
    RemoteRefused,
    Retry,
    RevisionExpired,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)

# Requests another look at these; it is on record when it returns.
RequestReconcile = Callable[[Sequence[ResourceRef]], Awaitable[None]]

_ERRORS: Final[Mapping[str, type[SetpointError]]] = {reason: error for error, reason in REASONS.items()}
# Errors after which a resource is not reconciled again by itself.
_FINAL_ERRORS: Final = (RemoteRefused, ImmutableFieldChanged, WaitTimedOut, WaitFailed)


async def step_records(refs: Iterable[ResourceRef], store: Store) -> Mapping[ResourceRef, JsonObject | None]:
    """The record of each one's last step, to be told from that of a later one."""
    found = {ref: await store.get(ref) for ref in refs}
    return {ref: None if one is None else StoredState.of(one).step for ref, one in found.items()}


@dataclass(slots=True)
class StatusFollower:
    """Follows a set of resources. `listener` hears of every new outcome; `before` are the records they had at first."""

    store: Store
    listener: OutcomeListener
    ask: RequestReconcile
    before: Mapping[ResourceRef, JsonObject | None] = field(default_factory=dict)
    outcomes: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    # Those that are not done, each with its uid once that is known.
    _open: dict[ResourceRef, str | None] = field(default_factory=dict)
    _blocked: set[ResourceRef] = field(default_factory=set)
    # How much there was to hear of others when a look was last asked for.
    _asked_at: dict[ResourceRef, int] = field(default_factory=dict)
    _news: int = 0
    # Those of which only their trouble was heard.
    _troubled: set[ResourceRef] = field(default_factory=set)

    async def until_done(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The last outcome of each, once all are settled, failed or blocked with nothing under way; or at the timeout.

        Whoever was not heard of by then has none.
        """
        return await self._until(self._nothing_moves, refs, timeout)

    async def until_first_outcome(
        self, refs: Iterable[ResourceRef], timeout: float | None = None
    ) -> Mapping[ResourceRef, StepOutcome]:
        """The first outcome of each."""

        async def all_heard_of() -> bool:
            return all(ref in self.outcomes for ref in self._open)

        return await self._until(all_heard_of, refs, timeout)

    async def refresh(self) -> None:
        """Takes note of how it stands now with those that are not done."""
        for ref in sorted(self._open):
            await self._look(ref)

    @property
    def left(self) -> Sequence[ResourceRef]:
        """Those that are not done."""
        return sorted(self._open)

    def record_error(self, ref: ResourceRef, error: SetpointError) -> None:
        """A step of `ref` stopped with `error`, and will be taken again: no status says so."""
        last = self.outcomes.get(ref)
        if ref not in self._open or (last is not None and ref not in self._troubled):
            return
        outcome = Stopped(error)
        if not _is_same_outcome(last, outcome):
            self.listener(ref, outcome)
        self.outcomes[ref] = outcome
        self._troubled.add(ref)
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
        """Whether it is over; False when the watch has to begin anew."""
        since = await _newest(self.store)
        await self.refresh()
        if await is_over():
            return True
        try:
            async for event in self.store.watch(since):
                if event.resource.ref in self._open:
                    await self._look(event.resource.ref)
                    if await is_over():
                        return True
        except RevisionExpired:
            pass
        return False

    async def _look(self, ref: ResourceRef) -> None:
        # As it is now, whatever an event shows: that may be older.
        resource = await self.store.get(ref)
        outcome = self._outcome(ref, resource)
        if outcome is None:
            return
        is_new = not _is_same_outcome(self.outcomes.get(ref), outcome)
        if is_new:
            self.listener(ref, outcome)
        self.outcomes[ref] = outcome
        self._troubled.discard(ref)
        self._blocked.discard(ref)
        if not isinstance(outcome, Stopped) or isinstance(outcome.error, _FINAL_ERRORS):
            del self._open[ref]
            self._news += 1
        elif isinstance(outcome.error, DependencyNotReady | Blocked):
            self._blocked.add(ref)
            # It is part of what those say that wait for it.
            self._news += is_new and len(self._open) > 1

    def _outcome(self, ref: ResourceRef, resource: Resource | None) -> StepOutcome | None:
        if resource is None:
            return Gone()
        first = self._open[ref] = self._open[ref] or resource.uid
        # Another of the same name: the one that was followed is no more.
        if resource.uid != first:
            return Gone()
        # Where nobody runs what owners make, they are never ready: they are done when they have made it.
        return outcome_of(resource, self.before.get(ref), is_patient=self.store.collects)

    async def _nothing_moves(self) -> bool:
        """Whether all that are left wait in vain: none moves, and each was looked at since there was news."""
        if set(self._open) - self._blocked:
            return False
        stale = sorted(ref for ref in self._open if self._asked_at.get(ref, 0) < self._news)
        if not stale:
            return True
        for ref in stale:
            self._asked_at[ref] = self._news
        self._blocked.difference_update(stale)
        await self.ask(stale)
        return False


def outcome_of(resource: Resource, before: JsonObject | None = None, *, is_patient: bool = True) -> StepOutcome | None:
    """What the last step came to, by the status; None while another is due, or under way with nothing to tell.

    `before` is the record of a step that was taken earlier, and does not count. Whoever is patient waits until the
    children of an owner are ready.
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
        case reason if ready.status == "False" and _is_waiting(reason, is_patient=is_patient):
            return Stopped(StillWaiting(error, inf))
        case _:
            return Settled(_plan(resource, before), ReadyCondition(ready.status, ready.reason, ready.message, details))


def _is_waiting(reason: str, *, is_patient: bool) -> bool:
    """Whether it waits for its object; or is an owner whose children are not ready yet."""
    return reason == ConditionReason.WAITING or (is_patient and reason not in SETTLED_REASONS)


def _deleting(resource: Resource, ready: Condition, details: ReadyDetails) -> OperationRunning:
    if details.error:
        return StillWaiting(details.error, inf)
    operation = StoredState.of(resource).operation
    return OperationRunning(f"operation {operation.name} is running" if operation else ready.message)


def _is_same_outcome(before: StepOutcome | None, after: StepOutcome) -> bool:
    if isinstance(before, Stopped) and isinstance(after, Stopped):
        return repr(before.error) == repr(after.error)
    return before == after


def _is_outdated(resource: Resource, ready: Condition) -> bool:
    """Whether the condition is of before the resource was to be deleted."""
    return resource.is_deleting and ready.reason not in DELETION_REASONS


def _is_current(resource: Resource) -> bool:
    is_newest = resource.status.get("observedGeneration") == resource.generation
    return is_newest and StoredState.of(resource).handled == resource.annotations.get(RECONCILE_REQUESTED)


def _plan(resource: Resource, before: JsonObject | None) -> Plan:
    """What was written since `before`: enough to tell in a word."""
    step: Any = StoredState.of(resource).step
    if step is None or same(step, before):
        return Plan(Decision.IN_SYNC)
    return Plan(
        Decision(step["decision"]), tuple(PlannedWrite(Action(one["action"]), one["name"]) for one in step["writes"])
    )


async def _newest(store: Store) -> Revision:
    """The revision to watch from."""
    async for page in store.pages(EVERYTHING, 1):
        return page.revision
    raise AssertionError("a store without a page")
