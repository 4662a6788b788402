"""The metrics of a process: counts steps and listings, reads the rest from the manager, and renders the page."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder

from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.core.decide import Decision
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsList
from setpoint.engine.kind import ResourceType
from setpoint.engine.metrics import STEP_COUNTS, StepCount, is_stateless
from setpoint.errors import Retry
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.list_resync.lister import ListingResult
from setpoint.runtime.metrics.catalogue import CATALOGUE, DEFINITIONS
from setpoint.runtime.metrics.readings import (
    NotificationReadings,
    ReadFamily,
    Reading,
    RequestCounts,
    SourceReadings,
    fill,
    new_family,
    read_build,
    read_controller,
    read_limiters,
    read_notifications,
    read_replica,
    read_requests,
    read_resources,
    read_sources,
)
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.statistics import DurationHistogram

_DURATIONS: Final = "controller_runtime_reconcile_time_seconds"
# About a millisecond's worth.
LINES_PER_SLICE: Final = 100
# The last line of a page of OpenMetrics.
_EOF: Final = b"# EOF\n"


async def encode_page(families: Iterable[Family], accept: str) -> tuple[bytes, str]:
    """The page in the best format that `accept` names, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        # An invalid version in the header.
        encode, content_type = choose_encoder("")
    parts: list[bytes] = []
    for family in families:
        for number, piece in enumerate(_pieces(family)):
            text = encode(piece).removesuffix(_EOF)
            parts.append(text if number == 0 else _without_heading(text))
            await asyncio.sleep(0)
    if content_type.startswith("application/openmetrics-text"):
        parts.append(_EOF)
    return b"".join(parts), content_type


@dataclass(frozen=True, slots=True)
class _SingleFamily:
    """One family as a collector."""

    family: Family

    def collect(self) -> Iterator[Family]:
        yield self.family


def _pieces(family: Family) -> Iterator[_SingleFamily]:
    # prometheus-client adds the creation time of each counter, as a metric of its own.
    samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    for start in range(0, max(len(samples), 1), LINES_PER_SLICE):
        piece = Family(family.name, family.documentation, family.type)
        piece.samples = samples[start : start + LINES_PER_SLICE]
        yield _SingleFamily(piece)


def _without_heading(text: bytes) -> bytes:
    """Without HELP and TYPE, which stand once."""
    return text.split(b"\n", 2)[2]


# controller-runtime's names for the results of a step. Any other is an error.
_RESULTS: Final = {
    "settled": "success",
    "gone": "success",
    Retry.ON_CHANGE.name.lower(): "requeue_after",
    Retry.STEP_AGAIN.name.lower(): "requeue",
}
_ERROR: Final = "error"
_EVERY_RESULT: Final = ("success", _ERROR, "requeue", "requeue_after")


class MonitoredManager(Protocol):
    """What the metrics page reads of a manager."""

    @property
    def replica(self) -> ControllerReplica | None:
        """Its replica, if there are several."""
        ...

    @property
    def index(self) -> ResourceIndex:
        """All resources."""
        ...

    @property
    def controllers(self) -> Mapping[GroupKind, Controller]:
        """One for each kind with resources, by API group and name."""
        ...


class Telemetry:
    """The StepMetrics of an engine and the ControllerMetrics of its controllers, for one event loop.

    Every series of a kind is there from the start, at zero: then Prometheus sees the first increase.
    """

    def __init__(self, budgets: Sequence[QuotaBudgets] = (), requests: Sequence[RequestCounts] = ()) -> None:
        self._budgets = tuple(budgets)
        self._requests = tuple(requests)
        self._manager: MonitoredManager | None = None
        self._sources: Mapping[str, SourceReadings] = {}
        self._notifications: NotificationReadings | None = None
        self._counted: dict[str, Counter | Histogram] = {}
        self._results = self._counter("controller_runtime_reconcile_total")
        self._errors = self._counter("controller_runtime_reconcile_errors_total")
        self._step_counts = {count: self._counter(count.name) for count in STEP_COUNTS}
        self._cookie_checks = self._counter("setpoint_cookie_checks_total")
        self._listings = self._counter("setpoint_listings_total")
        self._saved_resyncs = self._counter("setpoint_listed_looks_total")
        self._decisions = self._counter("setpoint_decisions_total")
        self._convergence = self._histogram("setpoint_convergence_seconds")
        self._drift_age = self._histogram("setpoint_drift_age_seconds")
        # The kinds without cookies, of those that are reconciled.
        self.stateless = set[str]()
        # How long steps took, by kind; and steps by kind, outcome and decision, since the last page.
        self._durations: dict[str, DurationHistogram] = {}
        self._uncounted: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        # Not the global one: two managers in one process are independent.
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def _counter(self, name: str) -> Counter:
        definition = DEFINITIONS[name]
        counter = Counter(name, definition.help, definition.labels, registry=None)
        self._counted[name] = counter
        return counter

    def _histogram(self, name: str) -> Histogram:
        definition = DEFINITIONS[name]
        histogram = Histogram(name, definition.help, definition.labels, buckets=definition.buckets, registry=None)
        self._counted[name] = histogram
        return histogram

    def watch(self, manager: MonitoredManager) -> None:
        """From now on the page shows this manager's controllers and resources as well."""
        self._manager = manager

    def add_kind(self, kind: ResourceType) -> None:
        """See ControllerMetrics: its series begin at zero."""
        if is_stateless(kind):
            self.stateless.add(kind.name)
        name = kind.name
        self._add_series(name)
        if isinstance(kind, SupportsList):
            self._add_listing_series(name)

    def watch_sources(self, sources: Mapping[str, SourceReadings]) -> None:
        """From now on the page shows the sources of these sets as well."""
        self._sources = sources

    def watch_notifications(self, notifications: NotificationReadings) -> None:
        """From now on the page shows the delivery of notifications as well."""
        self._notifications = notifications

    def _add_series(self, kind: str) -> None:
        for result in _EVERY_RESULT:
            self._results.labels(kind, result)
        for counter in (self._errors, *self._step_counts.values()):
            counter.labels(kind)
        for histogram in (self._convergence, self._drift_age):
            histogram.labels(kind)
        self._durations.setdefault(kind, DurationHistogram(DEFINITIONS[_DURATIONS].buckets))
        for decision in Decision:
            self._decisions.labels(kind, decision.value)
        if kind not in self.stateless:
            for result in ("hit", "miss"):
                self._cookie_checks.labels(kind, result)

    def _add_listing_series(self, kind: str) -> None:
        self._saved_resyncs.labels(kind)
        for ending in ListingResult:
            self._listings.labels(kind, ending.value)

    # --- Counting -----------------------------------------------------------------------------------------------------

    def count(self, count: StepCount, kind: str) -> None:
        """See StepMetrics."""
        self._step_counts[count].labels(kind).inc()

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See StepMetrics. `outcome` is settled, gone, or the retry that the error of a stopped step asks for.

        Its counters are increased by the next page: a step costs one addition, and `inc` more than that.
        """
        self._uncounted[kind, outcome, decision] += 1
        if kind not in self._durations:
            self._add_series(kind)
        self._durations[kind].observe(seconds)

    def _count_steps(self) -> None:
        uncounted, self._uncounted = self._uncounted, defaultdict(int)
        for key, steps in uncounted.items():
            for counter in self._step_counters(*key):
                counter.inc(steps)

    def _step_counters(self, kind: str, outcome: str, decision: str) -> Iterator[Counter]:
        result = _RESULTS.get(outcome, _ERROR)
        yield self._results.labels(kind, result)
        if result == _ERROR:
            yield self._errors.labels(kind)
        if decision:
            yield from self._decision_counters(kind, decision)

    def _decision_counters(self, kind: str, decision: str) -> Iterator[Counter]:
        yield self._decisions.labels(kind, decision)
        if kind not in self.stateless:
            yield self._cookie_checks.labels(kind, "hit" if decision == Decision.IN_SYNC.value else "miss")

    def converged(self, kind: str, seconds: float) -> None:
        """See ControllerMetrics."""
        self._convergence.labels(kind).observe(seconds)

    def drifted(self, kind: str, seconds: float) -> None:
        """See ControllerMetrics."""
        self._drift_age.labels(kind).observe(seconds)

    def listed(self, kind: str, ending: str, resyncs: int) -> None:
        """See ControllerMetrics. A resync that was saved counts as an observation in sync."""
        self._add_listing_series(kind)
        self._listings.labels(kind, ending).inc()
        for counter in (self._saved_resyncs.labels(kind), *self._decision_counters(kind, Decision.IN_SYNC.value)):
            counter.inc(resyncs)

    # --- The page -----------------------------------------------------------------------------------------------------

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the best format that `accept` names, and its content type."""
        self._count_steps()
        read = {one.name: new_family(one) for one in CATALOGUE if one.name not in self._counted}
        await fill(read, self._readings())
        return await encode_page(chain(self._families(read), self._process.collect()), accept)

    def _readings(self) -> Iterator[Reading]:
        yield from read_build()
        for kind, durations in tuple(self._durations.items()):
            yield Reading(_DURATIONS, (kind,), durations.snapshot())
        if self._manager is not None:
            for controller in tuple(self._manager.controllers.values()):
                yield from read_controller(controller)
            yield from read_resources(self._manager.index.counts)
            if self._manager.replica is not None:
                yield from read_replica(self._manager.replica)
        yield from read_sources(self._sources)
        yield from read_notifications(self._notifications)
        for budgets in self._budgets:
            yield from read_limiters(budgets.snapshot())
        yield from read_requests(self._requests)

    def _families(self, read: Mapping[str, ReadFamily]) -> Iterator[Family]:
        """Every metric of the catalogue, in its order, also those without a series."""
        for definition in CATALOGUE:
            counted = self._counted.get(definition.name)
            if counted is None:
                yield read[definition.name]
            else:
                yield from counted.collect()
