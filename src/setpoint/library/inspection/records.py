"""What is on record about resources: all of one, why its last step did what it did, and its events."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.decide import Cookie
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.conditions import condition_of
from setpoint.engine.owners.status import is_waiting_for_children
from setpoint.engine.ports import EventRecord
from setpoint.engine.requeue import (
    DEFAULT_RESYNC_SECONDS,
    NOT_READY_SECONDS,
    RESYNC_INTERVAL,
    jittered_resync,
    resync_seconds,
)
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile_request import latest_request
from setpoint.errors import ManifestInvalid
from setpoint.library.declared import DeclaredResource, SessionValue


@dataclass(frozen=True, slots=True, eq=False)
class EventListing(SessionValue):
    """Events on record, the oldest first; a watch of events from it misses none."""

    events: tuple[EventRecord, ...]
    revision: Revision

    def __iter__(self) -> Iterator[EventRecord]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> EventRecord:
        return self.events[index]

    def to_data(self) -> Json:
        """A list of events."""
        return events_data(self.events)

    def __repr__(self) -> str:
        return f"<{len(self)} event{'s' * (len(self) != 1)}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import events_html

        return events_html(self.events)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceDescription(SessionValue):
    """Everything on record about one resource: what is declared, its status, and its events."""

    resource: DeclaredResource
    events: tuple[EventRecord, ...] = ()

    @property
    def ref(self) -> ResourceRef:
        """Which resource."""
        return self.resource.ref

    def to_data(self) -> Json:
        """The document of the resource, with its events as `notes`."""
        return {**self.resource.document, "notes": events_data(self.events)}

    def __repr__(self) -> str:
        return f"<{self.resource!r}, {len(self.events)} event{'s' * (len(self.events) != 1)}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import description_html

        return description_html(self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepExplanation(SessionValue):
    """Why the last step of a resource did what it did, and when the next one is due.

    `step` is its record: what triggered it, what it decided, the fields that it wrote, kept and withheld, and the rule
    of each; None before a step came as far as a plan. `moved` names the digests that had changed: `intent`, `live`.
    `request` is that of a step which is not on record (yet).
    """

    ref: ResourceRef
    step: JsonObject | None
    moved: tuple[str, ...]
    request: JsonObject | None
    # The Ready condition; None before the first step.
    ready: Condition | None
    # In words.
    next_step: str
    # The Contested condition, while other writers undo what is written.
    contested: Condition | None = None
    # Whether a running controller takes steps by itself, and whether it is of a resource with children.
    is_resynced: bool = False
    is_owner: bool = False

    @staticmethod
    def of(resource: Resource, *, is_resynced: bool = False, is_owner: bool = False) -> "StepExplanation":
        """What the status of a resource says about its last step."""
        step = StoredState.of(resource).step
        return StepExplanation(
            ref=resource.ref,
            step=step,
            moved=tuple(moved_digests(step)),
            request=latest_request(resource),
            ready=condition_of(resource, ConditionType.READY),
            next_step=_next_step(resource, is_resynced=is_resynced, is_owner=is_owner),
            contested=_contested(resource),
            is_resynced=is_resynced,
            is_owner=is_owner,
        )

    @property
    def trigger(self) -> str:
        """What led to the step, such as `setpoint apply`; empty without a record."""
        return str((self.step or {}).get("trigger", ""))

    @property
    def decision(self) -> str:
        """What the step decided, such as `create` or `drifted`; empty without a record."""
        return str((self.step or {}).get("decision", ""))

    @property
    def now(self) -> str:
        """The state in words: of a contested resource not that all is well."""
        ready, contested = self.ready, self.contested
        if ready is None:
            return "no step yet"
        if contested is None or ready.reason == ConditionReason.CONTESTED:
            return f"{ready.reason}, {ready.message}"
        # That it is ready, too, is what dependants go by.
        return f"{ConditionType.CONTESTED}, {contested.message} (Ready is {ready.status}: {ready.reason})"

    def to_data(self) -> Json:
        """The record of the last step; null before there is one."""
        data: dict[str, Json] = {"kind": self.ref.kind, "namespace": self.ref.namespace, "name": self.ref.name}
        data |= {"step": self.step, "moved": list(self.moved)}
        return data if self.request is None else {**data, "request": self.request}

    def __repr__(self) -> str:
        moved = f", moved: {', '.join(self.moved)}" if self.moved else ""
        return f"<{self.ref}: {self.decision or 'no step yet'}{moved}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import explanation_html

        return explanation_html(self)


Inspected = TypeVar("Inspected", ResourceDescription, StepExplanation)


@dataclass(frozen=True, slots=True, eq=False)
class Inspection(SessionValue, Generic[Inspected]):
    """What `describe` or `explain` shows of each resource, at one revision; a watch from it misses nothing."""

    items: tuple[Inspected, ...]
    revision: Revision

    def __iter__(self) -> Iterator[Inspected]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, which: int | str | ResourceRef) -> Inspected:
        """What is shown of a resource: by its position, its ref, or KIND/NAME. KeyError when there is none."""
        if isinstance(which, int):
            return self.items[which]
        for one in self.items:
            if which in (one.ref, f"{one.ref.kind}/{one.ref.name}"):
                return one
        raise KeyError(which)

    def to_data(self) -> Json:
        """A list with what is shown of each; the command prints one that is named by itself."""
        return [one.to_data() for one in self.items]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.items))}]"

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.items)


def events_data(events: Iterable[EventRecord]) -> list[Json]:
    """Events as JSON, with stable member names."""
    return [_event_data(one) for one in events]


def _event_data(one: EventRecord) -> Json:
    ref: Json = {"kind": one.ref.kind, "namespace": one.ref.namespace, "name": one.ref.name}
    rest: dict[str, Json] = {"severity": one.severity, "reason": one.reason, "message": one.message}
    return {"at": one.at, "resource": ref, "count": one.count, **rest}


def moved_digests(step: JsonObject | None) -> Iterator[str]:
    """Which digests differ from those of the last agreement: of the intent, of the live state."""
    cookies = step.get("cookie") if step else None
    if not isinstance(cookies, Mapping):
        return
    before, after = Cookie.parse(cookies.get("before")), Cookie.parse(cookies.get("after"))
    if before is not None and after is not None:
        sides = {"intent": before.intent != after.intent, "live": before.live != after.live}
        yield from (side for side, moved in sides.items() if moved)


def _contested(resource: Resource) -> Condition | None:
    found = condition_of(resource, ConditionType.CONTESTED)
    return found if found is not None and found.status == "True" else None


def _next_step(resource: Resource, *, is_resynced: bool, is_owner: bool) -> str:
    if not is_resynced:
        return "with the next `setpoint apply` or `setpoint reconcile`"
    ready = condition_of(resource, ConditionType.READY)
    try:
        mean = resync_seconds(resource.annotations)
    except ManifestInvalid as error:
        return f"when it is edited: {error}"
    if mean == 0 and ready is not None and ready.status == "True":
        return f"when it is edited or requested: {RESYNC_INTERVAL} is 0"
    seconds = jittered_resync(resource.ref, mean or DEFAULT_RESYNC_SECONDS)
    if is_owner and is_waiting_for_children(resource):
        seconds = min(seconds, NOT_READY_SECONDS)
    return f"by the running process, at the latest {seconds:.0f} s after the last step; at once after an edit"
