"""What a step works with, and what it may end in: the engine's dependencies, the step context, the outcome."""

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self, TypeAlias

from setpoint.core.conditions import ConditionType
from setpoint.core.plan import Plan, PlannedWrite
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import ReadyCondition, condition_of, with_conditions
from setpoint.engine.idle_cache import IdleCache, ListedObjects
from setpoint.engine.kind import AnyKind, ResourceType
from setpoint.engine.oscillation import NO_OSCILLATIONS
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Clock, EventRecord, StepMetrics, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import COOKIE_ANNOTATION, StoredState
from setpoint.errors import ManifestInvalid, SetpointError

FINALIZER: Final = "cnrm.cloud.google.com/finalizer"
# Config Connector's guard: taken off what is being deleted, unless the kind itself is, with all of its resources.
DELETION_DEFENDER: Final = "cnrm.cloud.google.com/deletion-defender"
DELETION_POLICY: Final = "cnrm.cloud.google.com/deletion-policy"
MANAGEMENT: Final = "setpoint.dev/management"


class CookieLocation(StrEnum):
    """Where the cookie is written; both places are read."""

    STATUS = "status"
    ANNOTATION = "annotation"


class Management(StrEnum):
    """How far a step may go."""

    FULL = "full"
    OBSERVE = "observe"
    PAUSED = "paused"


def management_of(annotations: Mapping[str, str]) -> Management:
    """How far a step may go by the author's word; ManifestInvalid for one that means nothing."""
    word = annotations.get(MANAGEMENT, Management.FULL.value)
    try:
        return Management(word)
    except ValueError:
        allowed = ", ".join(mode.value for mode in Management)
        raise ManifestInvalid(f"{MANAGEMENT} is {word!r}: write one of {allowed}") from None


class NoMetrics:
    """Metrics that nobody reads."""

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See Metrics."""


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Where resources are kept, what time it is, and every kind by API group and name."""

    store: Store
    clock: Clock
    kinds: Mapping[tuple[str, str], AnyKind]
    cookies: CookieLocation = CookieLocation.STATUS
    metrics: StepMetrics = field(default_factory=NoMetrics)
    # What a long-running process remembers of resources at rest; a single command has nothing to remember.
    idle_cache: IdleCache | None = None
    # What listings showed to that process; a single command lists nothing.
    listed_objects: ListedObjects | None = None
    # Every owner, likewise.
    owners: Mapping[tuple[str, str], Owner] = field(default_factory=dict)

    @property
    def resource_types(self) -> Mapping[tuple[str, str], ResourceType]:
        """Everything that is looked after here: kinds and owners."""
        return {**self.kinds, **self.owners}

    def resource_type_of(self, resource: Resource) -> ResourceType:
        """What looks after `resource`."""
        found = self.resource_types.get((resource.ref.group, resource.ref.kind))
        if found is None:
            known = ", ".join(sorted(name for _, name in self.resource_types))
            raise ManifestInvalid(f"{resource.ref}: no kind {resource.ref.kind} is known here; there is {known}")
        return found

    def kind_of(self, resource: Resource) -> AnyKind:
        """The kind that handles `resource`."""
        self.resource_type_of(resource)
        return self.kinds[resource.ref.group, resource.ref.kind]


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do now. `plan` is what the step found and did.

    `again`: the seconds until there is something to do, when a put-back waits for its time.
    """

    plan: Plan
    ready: ReadyCondition
    again: float | None = None
    # Who else has something to do now: children that are looked after here.
    others: tuple[ResourceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step ended early; the class of `error` says when to try again."""

    error: SetpointError
    # As above.
    others: tuple[ResourceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """The resource is no more, or not ours to look after any more."""


StepOutcome: TypeAlias = Settled | Stopped | Gone


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step stopped before its first write: what it would write, and the function that carries it out.

    A preview reads `plan`; a step goes on with `execute`. Nothing was written to make one.
    """

    plan: Plan
    execute: Callable[[], Awaitable[StepOutcome]]


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step that ends with `error` before it writes to the service; `execute` puts that on record, and raises it."""

    error: SetpointError
    execute: Callable[[], Awaitable[StepOutcome]]


StepPlan: TypeAlias = PlannedStep | FailedStep


@dataclass(frozen=True, slots=True)
class StepContext:
    """A resource in the middle of a step: as it was last read or written, and what is to be remembered of it."""

    engine: EngineContext
    resource: Resource
    state: StoredState
    trigger: str = "a look"
    # Whether the author wants to see it done now, whatever waits for its time.
    asked: bool = False
    # Whether a wait whose time has run out has all of it again.
    anew: bool = False
    # What a status has to show, whatever else it does.
    least: JsonObject = field(default_factory=dict)
    # The finalizers that are to be there, with the next commit; None when they are.
    finalizers: tuple[str, ...] | None = None

    @property
    def management(self) -> Management:
        """How far this step may go; ManifestInvalid for a word that means nothing."""
        return management_of(self.resource.annotations)

    def with_current_oscillations(self, intent: str, mark: str) -> Self:
        """The moment with the contests that still go on, now that `mark` was seen; where nothing is written is none."""
        contests = self.state.contests
        if not contests.fields:
            return self
        is_held = self.management is Management.OBSERVE
        still = NO_OSCILLATIONS if is_held else contests.still_active(intent, mark, self.engine.clock.now())
        return replace(self, state=replace(self.state, contests=still))

    async def set_ready(
        self, ready: ReadyCondition, outputs: JsonObject | None = None, events: Iterable[EventRecord] = ()
    ) -> Self:
        """The context once the status has this Ready condition, the state and `outputs`: one commit, with all events.

        Nothing is written when the status says so already. Every change of a condition is an event of its own.
        """
        base = self.resource.status if outputs is None else {**_own_members(self.resource.status), **outputs}
        now, contests = self.engine.clock.now(), self.state.contests.reported
        status = with_conditions(self._with_state(self.state, base), self.resource.generation, ready, contests, now)
        news = self._condition_events(Resource({**self.resource.document, "status": status}), ready)
        return await self._commit(status, (*news, *events), self._cookie_annotation())

    async def set_outputs(self, outputs: JsonObject) -> Self:
        """The context once the status shows these outputs as well; its conditions stay."""
        return await self._commit({**self.resource.status, **outputs})

    async def save_state(self, outputs: JsonObject | None = None) -> Self:
        """The context once its state is on record; the conditions stay, and a reconcile request is still open."""
        still_open = replace(self.state, handled=StoredState.of(self.resource).handled)
        return await self._commit(self._with_state(still_open, {**self.resource.status, **(outputs or {})}))

    def event(self, reason: str, message: str, *, is_warning: bool = False) -> EventRecord:
        """An event of this resource, which `setpoint events` shows once it is recorded."""
        severity = "Warning" if is_warning else "Normal"
        ref, uid, now = self.resource.ref, self.resource.uid, self.engine.clock.now()
        return EventRecord(ref, uid, severity, str(reason), message, now)

    def _with_state(self, state: StoredState, status: JsonObject) -> JsonObject:
        return state.into(status, with_cookie=self.engine.cookies is CookieLocation.STATUS)

    async def _commit(
        self,
        status: JsonObject,
        events: Sequence[EventRecord] = (),
        annotations: Mapping[str, str | None] | None = None,
    ) -> Self:
        status = {**self.least, **status}
        is_same = same(status, self.resource.status) and self.finalizers is None and not annotations
        if is_same and not events:
            return self
        after = await self.engine.store.update(
            self.resource, status=status, finalizers=self.finalizers, annotations=annotations, events=events
        )
        assert after is not None, "a finalizer is only added here"
        return replace(self, resource=after, finalizers=None)

    def _condition_events(self, after: Resource, ready: ReadyCondition) -> Iterator[EventRecord]:
        """An event for each condition that says something new in `after`."""
        before = self.resource
        if condition_of(before, ConditionType.READY) != condition_of(after, ConditionType.READY):
            yield self.event(ready.reason, ready.message, is_warning=ready.is_failure)
        contested = condition_of(after, ConditionType.CONTESTED)
        if contested is not None and condition_of(before, ConditionType.CONTESTED) is None:
            yield self.event(ConditionType.CONTESTED, contested.message, is_warning=True)

    def _cookie_annotation(self) -> Mapping[str, str | None]:
        """The annotation to write where cookies are kept there; none when it is the same already."""
        cookie = None if self.state.cookie is None else str(self.state.cookie)
        is_kept = (
            self.engine.cookies is CookieLocation.STATUS or self.resource.annotations.get(COOKIE_ANNOTATION) == cookie
        )
        return {} if is_kept else {COOKIE_ANNOTATION: cookie}


@dataclass(frozen=True, slots=True)
class KindStepContext(StepContext):
    """The same for a resource that stands for one object."""

    kind: AnyKind = field(kw_only=True)
    # What the service says is left to write, where it can say so.
    dry_run_writes: tuple[PlannedWrite, ...] | None = None


def step_context(
    resource: Resource,
    engine: EngineContext,
    state: StoredState,
    *,
    trigger: str = "a look",
    asked: bool = False,
    anew: bool = False,
) -> StepContext:
    """The step of `resource` as it begins: a Scene for a kind. ManifestInvalid for a kind that is not known here."""
    engine.resource_type_of(resource)
    key = (resource.ref.group, resource.ref.kind)
    owner = engine.owners.get(key)
    if owner is not None:
        return StepContext(engine, resource, state, trigger, asked, anew, owner.least)
    return KindStepContext(engine, resource, state, trigger, asked, anew, kind=engine.kinds[key])


def _own_members(status: JsonObject) -> JsonObject:
    """The members that a kind's outputs do not replace."""
    return {name: status[name] for name in ("conditions",) if name in status}


# A clock that goes on while the machine sleeps, as leases do that run out meanwhile. Not every system has one.
_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The time of this machine."""

    def now(self) -> str:
        """See Clock."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)
