"""Counts what a long-running process does, and serves the metrics page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from setpoint.clients.ratelimit.limiter import LimiterSnapshot as BudgetsSnapshot
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.core.decide import Decision
from setpoint.core.unstructured import GroupKind
from setpoint.engine.capabilities import SupportsList
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Reconciliation
from setpoint.engine.metrics import STEP_COUNTS, StepCount
from setpoint.errors import Retry
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.list_resync.lister import ListingResult
from setpoint.runtime.metrics.catalogue import (
    CONVERGENCE_BUCKETS,
    DRIFT_AGE_BUCKETS,
    RECONCILE_BUCKETS,
    Histogram,
    HistogramSnapshot,
    MetricType,
    Sample,
)
from setpoint.runtime.metrics.exposition import (
    ControllerSnapshot,
    ReplicaSnapshot,
    ResourceCounts,
    api_samples,
    controller_samples,
    controller_snapshot,
    counter,
    encode_page,
    metric_families,
    replica_samples,
    replica_snapshot,
    resource_samples,
    samples_by_metric,
)
from setpoint.runtime.sharding.replica import ControllerReplica

# controller-runtime's names for the results of a step. Any other is an error.
_RESULTS: Final = {
    "settled": "success",
    "gone": "success",
    Retry.ON_CHANGE.name.lower(): "requeue_after",
    Retry.STEP_AGAIN.name.lower(): "requeue",
}
_ERROR: Final = "error"
_EVERY_RESULT: Final = ("success", _ERROR, "requeue", "requeue_after")


# Requests by method, host and code.
RequestCounts: TypeAlias = Mapping[tuple[str, str, str], int]


class MonitoredManager(Protocol):
    """What the metrics page reads of a manager."""

    @property
    def replica(self) -> ControllerReplica | None:
        """Its replica, if there are several."""
        ...

    @property
    def engine(self) -> EngineContext:
        """Its kinds."""
        ...

    @property
    def index(self) -> ResourceIndex:
        """All resources."""
        ...

    @property
    def controllers(self) -> Mapping[GroupKind, Controller]:
        """One for each kind."""
        ...


class _Tally:
    """Steps of one kind with the same outcome and decision; their durations are counted by kind."""

    __slots__ = ("number", "times")

    def __init__(self, times: Histogram) -> None:
        self.number = 0
        self.times = times


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Everything that is measured, at one moment. `steps` are by kind, outcome and decision."""

    kinds: tuple[str, ...]
    with_cookies: frozenset[str]
    steps: Mapping[tuple[str, str, str], int]
    counts: Mapping[tuple[StepCount, str], int]
    times: Mapping[str, HistogramSnapshot]
    convergence: Mapping[str, HistogramSnapshot]
    drift: Mapping[str, HistogramSnapshot]
    # By kind and result; the resyncs that they saved, by kind. Only of kinds that can be listed.
    listings: Mapping[tuple[str, str], int]
    listed_looks: Mapping[str, int]
    controllers: tuple[ControllerSnapshot, ...]
    resources: ResourceCounts
    replica: ReplicaSnapshot | None
    apis: tuple[BudgetsSnapshot, ...]
    # By method, host and code.
    requests: RequestCounts


class Telemetry:
    """The StepMetrics of an engine and the ControllerMetrics of its controllers, for one event loop."""

    def __init__(self, budgets: Sequence[QuotaBudgets] = (), requests: Sequence[RequestCounts] = ()) -> None:
        self._budgets = tuple(budgets)
        self._requests = tuple(requests)
        self._watched: MonitoredManager | None = None
        self._steps: dict[tuple[str, str, str], _Tally] = {}
        self._counts: Counter[tuple[StepCount, str]] = Counter()
        self._times: dict[str, Histogram] = {}
        self._convergence: dict[str, Histogram] = {}
        self._drift: dict[str, Histogram] = {}
        self._listings: Counter[tuple[str, str]] = Counter()
        self._listed_looks: Counter[str] = Counter()
        # Not the global one: two managers in one process are independent.
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def watch(self, manager: MonitoredManager) -> None:
        """From now on the page shows this manager's controllers and resources as well."""
        self._watched = manager

    # --- Counting -----------------------------------------------------------------------------------------------------

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See StepMetrics. `outcome` is settled, gone, or the retry that the error of a stopped step asks for."""
        key = (kind, outcome, decision)
        tally = self._steps.get(key)
        if tally is None:
            tally = self._steps[key] = _Tally(self._times.setdefault(kind, Histogram(RECONCILE_BUCKETS)))
        tally.number += 1
        tally.times.add(seconds)

    def count(self, count: StepCount, kind: str) -> None:
        """See StepMetrics."""
        self._counts[count, kind] += 1

    def converged(self, kind: str, seconds: float) -> None:
        """See ControllerMetrics."""
        self._convergence.setdefault(kind, Histogram(CONVERGENCE_BUCKETS)).add(seconds)

    def drifted(self, kind: str, seconds: float) -> None:
        """See ControllerMetrics."""
        self._drift.setdefault(kind, Histogram(DRIFT_AGE_BUCKETS)).add(seconds)

    def listed(self, kind: str, ending: str, looks: int) -> None:
        """See ControllerMetrics."""
        self._listings[kind, ending] += 1
        self._listed_looks[kind] += looks

    # --- The page -----------------------------------------------------------------------------------------------------

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the best format that `accept` names, and its content type."""
        sorted_figures = await samples_by_metric(all_samples(self._picture()))
        return await encode_page(chain(metric_families(sorted_figures), self._process.collect()), accept)

    def _picture(self) -> MetricsSnapshot:
        manager = self._watched
        declared = {} if manager is None else manager.engine.resource_types
        replica = None if manager is None else manager.replica
        controllers = () if manager is None else manager.controllers.values()
        seen = {kind for kind, _, _ in self._steps}
        listable = {kind.name for kind in declared.values() if isinstance(kind, SupportsList)} | set(self._listed_looks)
        handled = {} if manager is None else manager.engine.kinds
        stateless = {kind.name for kind in handled.values() if kind.reconciliation is Reconciliation.STATELESS}
        kinds = {name for _, name in declared} | seen
        return MetricsSnapshot(
            kinds=tuple(sorted(kinds)),
            with_cookies=frozenset(kinds - stateless),
            steps={key: tally.number for key, tally in self._steps.items()},
            counts={(count, kind): self._counts[count, kind] for count in STEP_COUNTS for kind in sorted(kinds)},
            times=_histogram_snapshots(self._times, kinds, RECONCILE_BUCKETS),
            convergence=_histogram_snapshots(self._convergence, kinds, CONVERGENCE_BUCKETS),
            drift=_histogram_snapshots(self._drift, kinds, DRIFT_AGE_BUCKETS),
            listings={
                (kind, ending): self._listings[kind, ending] for kind in sorted(listable) for ending in ListingResult
            },
            listed_looks={kind: self._listed_looks[kind] for kind in sorted(listable)},
            controllers=tuple(map(controller_snapshot, controllers)),
            resources={} if manager is None else dict(manager.index.counts),
            replica=None if replica is None else replica_snapshot(replica),
            apis=tuple(budgets.snapshot() for budgets in self._budgets),
            requests=dict(sum(map(Counter, self._requests), Counter())),
        )


def _histogram_snapshots(
    found: Mapping[str, Histogram], kinds: set[str], bounds: tuple[float, ...]
) -> Mapping[str, HistogramSnapshot]:
    """One for each kind, also before the first observation: then Prometheus sees the first increase."""
    return {kind: found.get(kind, Histogram(bounds)).read() for kind in sorted(kinds | found.keys())}


def all_samples(picture: MetricsSnapshot) -> Iterator[Sample]:
    """Every sample of setpoint's own metrics."""
    yield from _reconcile_samples(picture)
    yield from _decision_samples(picture)
    yield from _listing_samples(picture)
    yield from _histogram_samples("controller_runtime_reconcile_time_seconds", "controller", picture.times)
    yield from _histogram_samples("setpoint_convergence_seconds", "kind", picture.convergence)
    yield from _histogram_samples("setpoint_drift_age_seconds", "kind", picture.drift)
    for controller in picture.controllers:
        yield from controller_samples(controller)
    yield from resource_samples(picture.resources)
    if picture.replica is not None:
        yield from replica_samples(picture.replica)
    for snapshot in picture.apis:
        yield from api_samples(snapshot)
    for (method, host, code), number in picture.requests.items():
        yield counter("rest_client_requests_total", number, code=code, method=method, host=host)


def _reconcile_samples(picture: MetricsSnapshot) -> Iterator[Sample]:
    results: Counter[tuple[str, str]] = Counter()
    for (kind, outcome, _), number in picture.steps.items():
        results[kind, _RESULTS.get(outcome, _ERROR)] += number
    for kind in picture.kinds:
        for result in _EVERY_RESULT:
            yield counter("controller_runtime_reconcile_total", results[kind, result], controller=kind, result=result)
        yield counter("controller_runtime_reconcile_errors_total", results[kind, _ERROR], controller=kind)
    for (count, kind), number in picture.counts.items():
        yield counter(count.name, number, **{count.label: kind})


def _decision_samples(picture: MetricsSnapshot) -> Iterator[Sample]:
    decisions: Counter[tuple[str, str]] = Counter()
    for (kind, _, decision), number in picture.steps.items():
        decisions[kind, decision] += number
    for kind, number in picture.listed_looks.items():
        decisions[kind, Decision.IN_SYNC] += number
    for kind in picture.kinds:
        for decision in Decision:
            yield counter("setpoint_decisions_total", decisions[kind, decision], kind=kind, decision=decision.value)
        if kind in picture.with_cookies:
            hits = decisions[kind, Decision.IN_SYNC]
            misses = sum(decisions[kind, decision] for decision in Decision) - hits
            yield counter("setpoint_cookie_checks_total", hits, kind=kind, result="hit")
            yield counter("setpoint_cookie_checks_total", misses, kind=kind, result="miss")


def _listing_samples(picture: MetricsSnapshot) -> Iterator[Sample]:
    for (kind, ending), number in picture.listings.items():
        yield counter("setpoint_listings_total", number, kind=kind, ending=ending)
    for kind, number in picture.listed_looks.items():
        yield counter("setpoint_listed_looks_total", number, kind=kind)


def _histogram_samples(name: str, label: str, found: Mapping[str, HistogramSnapshot]) -> Iterator[Sample]:
    for kind, distribution in found.items():
        yield Sample(name, MetricType.HISTOGRAM, {label: kind}, distribution)
