"""The answers of the API v1 about one resource, its fields and its timeline; and the plan of all."""

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from setpoint.dashboard.api.models import AnyJson, Model, OutputStateName, Row


class ConditionModel(Model, frozen=True, kw_only=True):
    """A condition of the status."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int | None


class EventModel(Model, frozen=True, kw_only=True):
    """An event of a resource, as `setpoint events` shows it."""

    at: str
    severity: str
    reason: str
    message: str
    count: int


class OutputModel(Model, frozen=True, kw_only=True):
    """A value that dependants get: not tracked (null), not there yet (unknown), or known."""

    path: str
    state: OutputStateName
    value: AnyJson
    reason: str


class Digests(Model, frozen=True, kw_only=True):
    """The digests of intent and live state, as the cookie has them."""

    intent: str
    live: str


class FieldChangeModel(Model, frozen=True, kw_only=True):
    """A field of a write, before and after it; a side without a value is left out."""

    path: str
    before: AnyJson | UnsetType = UNSET
    after: AnyJson | UnsetType = UNSET
    why: str = ""


class WriteModel(Model, frozen=True, kw_only=True):
    """A write of a step, with its fields; `more` were left out."""

    action: str
    name: str
    fields: tuple[FieldChangeModel, ...]
    more: int


class LastStep(Model, frozen=True, kw_only=True):
    """The record of the last step that came as far as a plan. `moved`: the digests that had changed."""

    time: str
    trigger: str
    decision: str
    moved: tuple[str, ...]
    writes: tuple[WriteModel, ...]
    kept: tuple[FieldChangeModel, ...]
    withheld: tuple[FieldChangeModel, ...]
    note: str


class NextStep(Model, frozen=True, kw_only=True):
    """When the next step is due, if that is known, and why."""

    time: str | None
    why: str


class Contest(Model, frozen=True, kw_only=True):
    """A field that another writer keeps changing, with the value of each side; without `ours` it is to be unset."""

    path: str
    ours: AnyJson | UnsetType = UNSET
    theirs: AnyJson
    count: int
    since: str


class ResourceDetails(Model, frozen=True, kw_only=True):
    """Everything on record about one resource."""

    row: Row
    manifest: AnyJson
    status: AnyJson
    live: AnyJson
    conditions: tuple[ConditionModel, ...]
    events: tuple[EventModel, ...]
    outputs: tuple[OutputModel, ...]
    cookie: Digests | None
    digests: Digests | None
    is_fast: bool | None
    location: str | None
    # The same to be read by a person.
    location_text: str | None
    owner: str | None
    children: tuple[str, ...]
    depends_on: tuple[str, ...]
    dependants: tuple[str, ...]
    last_step: LastStep | None
    next_step: NextStep | None
    contests: tuple[Contest, ...]


FieldRule: TypeAlias = Literal[
    "spec",
    "default",
    "kept",
    "protected",
    "unmanaged",
    "ignored",
    "serviceChosen",
    "immutable",
    "pruned",
    "generated",
    "edited",
]


class FieldModel(Model, frozen=True, kw_only=True):
    """A field: a side without a value is left out. `reason` says in words why `desired` is what it is."""

    path: str
    spec: AnyJson | UnsetType = UNSET
    live: AnyJson | UnsetType = UNSET
    desired: AnyJson | UnsetType = UNSET
    rule: FieldRule
    reason: str
    differs: bool
    is_secret: bool


class Fields(Model, frozen=True, kw_only=True):
    """The fields of a resource. `is_fresh`: the live object was read for this; else `trouble` says why not."""

    observed_at: str
    is_fresh: bool
    trouble: str
    digests: Digests | None
    fields: tuple[FieldModel, ...]
    live_object: AnyJson


class RequestModel(Model, frozen=True, kw_only=True):
    """A request of a write; `status` is null when no usable response came."""

    method: str
    url: str
    status: int | None
    seconds: float


class Entry(Model, frozen=True, kw_only=True):
    """An entry of the timeline. `who`: what asked for the step, or which controller or writer it is from."""

    time: str
    type: Literal["step", "write", "drift", "event", "specChanged", "refused", "contested"]
    who: str
    text: str
    decision: str | UnsetType = UNSET
    fields: tuple[FieldChangeModel, ...] | UnsetType = UNSET
    requests: tuple[RequestModel, ...] | UnsetType = UNSET


class Heat(Model, frozen=True, kw_only=True):
    """How often a field drifted in each stretch of time."""

    path: str
    buckets: tuple[int, ...]


class Timeline(Model, frozen=True, kw_only=True):
    """What happened to a resource, the newest first; `next` is the value of `before` for the entries before these."""

    entries: tuple[Entry, ...]
    next: str | None
    heat: tuple[Heat, ...]
    bucket_seconds: int
    bucket_start: str | None


class PlanCounts(Model, frozen=True, kw_only=True):
    """How many resources the plan would create, update, delete or leave alone, and how many could not be planned."""

    create: int = 0
    update: int = 0
    delete: int = 0
    nothing: int = 0
    failed: int = 0


class PlannedResource(Model, frozen=True, kw_only=True):
    """What the next step of a resource would do."""

    id: str
    action: Literal["create", "update", "delete", "nothing", "failed"]
    decision: str
    finding: str
    fields: tuple[FieldChangeModel, ...]
    error: str | None


class FleetPlan(Model, frozen=True, kw_only=True):
    """The plan of all resources; `made_at` is null before the first one is made.

    `is_cancelled`: the one that was asked for last was cancelled, and `error` says so.
    """

    made_at: str | None
    is_running: bool
    done: int
    total: int
    counts: PlanCounts
    resources: tuple[PlannedResource, ...]
    error: str | None
    is_cancelled: bool = False


class ActionAnswer(Model, frozen=True, kw_only=True):
    """The resource as it was when the action was put on record."""

    row: Row
