"""The answers of the API v1 as types: handlers encode them, and the OpenAPI document is made from them."""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

# Any JSON value, without secret values.
AnyJson: TypeAlias = Any

State: TypeAlias = Literal[
    "ready",
    "progressing",
    "waiting",
    "blocked",
    "failed",
    "contested",
    "notConverged",
    "observed",
    "paused",
    "deleting",
    "unknown",
]
ActionName: TypeAlias = Literal["reconcile", "pause", "resume"]
OutputStateName: TypeAlias = Literal["null", "unknown", "known"]


class Model(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value of the API; its members are in camel case."""


class ApiError(Model, frozen=True, kw_only=True):
    """What went wrong, for programs (`code`) and for people; `hint` says what helps."""

    code: str
    message: str
    hint: str | UnsetType = UNSET


class ErrorAnswer(Model, frozen=True, kw_only=True):
    """The body of every answer that is no success."""

    error: ApiError


class DashboardSource(Model, frozen=True, kw_only=True):
    """Where the resources are: a store in a file or in memory, a cluster, or a recording."""

    type: Literal["store", "cluster", "recording"]
    name: str


class SessionInfo(Model, frozen=True, kw_only=True):
    """What is shown, to which user, and what the user may do here.

    `is_live`: changes arrive on the stream; otherwise all is as it was when the recording was made.
    """

    version: str
    api_version: Literal["v1"] = "v1"
    source: DashboardSource
    user: str | None
    is_live: bool
    recorded_at: str | None
    actions: tuple[ActionName, ...]
    has_plan: bool
    has_upgrade_report: bool


class LoginOptions(Model, frozen=True, kw_only=True):
    """How to sign in: by the token of a URL that was printed, or by a bearer token of the cluster.

    `is_signed_in`: the request has a session, so that there is no need to.
    """

    sign_in: Literal["url", "bearer"]
    is_signed_in: bool


class LoginRequest(Model, frozen=True, kw_only=True):
    """The one-time token of the URL, or a bearer token of the cluster."""

    token: str


class SignedIn(Model, frozen=True, kw_only=True):
    """The user that a session was opened for; null where the source has no users."""

    user: str | None


class SignedOut(Model, frozen=True, kw_only=True):
    """The session has ended."""


class Row(Model, frozen=True, kw_only=True):
    """A resource in the list. `drifted`: drift was found, and `drift` says what became of it.

    `nextStep`: when the next step is due, where a process says so; else when what was withheld may be written.
    """

    id: str
    kind: str
    group: str
    namespace: str
    name: str
    labels: dict[str, str]
    state: State
    reason: str
    message: str
    drifted: bool
    drift: Literal["", "corrected", "withheld", "contested"] = ""
    since: str | None
    last_step: str | None
    generation: int
    observed_generation: int | None
    # The last member: it is put into the encoded row.
    next_step: str | None


class ResourcePage(Model, frozen=True, kw_only=True):
    """Rows by kind, namespace and name; `next` is the cursor of the next page, `total` the number in all pages."""

    revision: str
    total: int
    next: str | None
    resources: tuple[Row, ...]


class SearchAnswer(Model, frozen=True, kw_only=True):
    """The resources with a name, label, path or value that contains the words; `is_complete`: no limit was reached."""

    ids: tuple[str, ...]
    is_complete: bool


class KindCount(Model, frozen=True, kw_only=True):
    """How many resources of a kind there are, by state."""

    kind: str
    group: str
    total: int
    by_state: dict[State, int]


class NamespaceCount(Model, frozen=True, kw_only=True):
    """How many resources a namespace has."""

    namespace: str
    total: int


class Attention(Model, frozen=True, kw_only=True):
    """A resource that needs a person."""

    id: str
    state: State
    reason: str
    message: str
    since: str | None


class Rates(Model, frozen=True, kw_only=True):
    """Events per second over the last minute."""

    steps: float
    writes: float
    requests: float
    errors: float


class QueueDepth(Model, frozen=True, kw_only=True):
    """How many resources of a kind wait for a worker, and for how long the first of them has waited."""

    kind: str
    depth: int
    oldest_seconds: float


class Budget(Model, frozen=True, kw_only=True):
    """The requests per second that a service gets, and its limit; `is_open`: its circuit breaker lets none through."""

    service: str
    used: float
    limit: float
    is_open: bool


class ProcessState(Model, frozen=True, kw_only=True):
    """The controller process that serves the page."""

    phase: str
    uptime_seconds: int
    rates: Rates
    queue: tuple[QueueDepth, ...]
    budgets: tuple[Budget, ...]

    @property
    def activity(self) -> tuple[object, ...]:
        """What changes when the process does something: everything but its age."""
        return self.phase, self.rates, self.queue, self.budgets


class ProcessLease(Model, frozen=True, kw_only=True):
    """A controller process of a cluster, by its leases: the shards that it holds."""

    identity: str
    shards: tuple[int, ...]
    is_this: bool
    renewed: str
    # What it does; null where it does not say.
    state: ProcessState | None = None


class ProcessAnswer(Model, frozen=True, kw_only=True):
    """The process that was asked: its identity, which is null outside of a cluster, and what it does.

    The state is null where no controllers run beside the page.
    """

    identity: str | None
    state: ProcessState | None


class Summary(Model, frozen=True, kw_only=True):
    """The counts of all resources that the user may see, those that need attention, and the processes."""

    total: int
    by_state: dict[State, int]
    by_kind: tuple[KindCount, ...]
    by_namespace: tuple[NamespaceCount, ...]
    attention: tuple[Attention, ...]
    process: ProcessState | None
    processes: tuple[ProcessLease, ...]


class ResourceChanges(Model, frozen=True, kw_only=True):
    """The event `resources` of the stream."""

    revision: str
    changed: tuple[Row, ...]
    deleted: tuple[str, ...]


class NextStepTimes(Model, frozen=True, kw_only=True):
    """When the next step of resources is due, by id; null: that is unknown. The event `nextSteps` of the stream."""

    revision: str
    times: dict[str, str | None]


class StoreTrouble(Model, frozen=True, kw_only=True):
    """The event `trouble` of the stream: why the store cannot be read, so that rows may be old; null once it can be."""

    message: str | None


class PlanProgress(Model, frozen=True, kw_only=True):
    """The event `plan` of the stream."""

    done: int
    total: int


class GraphNodeModel(Model, frozen=True, kw_only=True):
    """A resource, or what a resource names; `exists` is null where that may not be told."""

    id: str
    kind: str
    namespace: str
    name: str
    state: State
    exists: bool | None


class Edge(Model, frozen=True, kw_only=True):
    """`from` depends on `to`, or is its child. `state` says what flows; `is_blocking`: `from` waits for it."""

    from_: str = msgspec.field(name="from")
    to: str
    type: Literal["reference", "value", "order", "owner", "secret"]
    path: str | None
    output: str | None
    state: Literal["known", "unknown", "null", "ready", "notReady", "missing"]
    value: AnyJson
    is_blocking: bool
    # Whether it is part of a cycle: of what is in one, nothing comes first.
    is_in_cycle: bool = False


class Graph(Model, frozen=True, kw_only=True):
    """Resources and what depends on what; `cycle` says where there is no order. `is_cut`: there are more nodes."""

    nodes: tuple[GraphNodeModel, ...]
    edges: tuple[Edge, ...]
    cycle: str | None
    is_cut: bool
