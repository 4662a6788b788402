"""Every metric of setpoint: name, type, labels, help text and buckets; and the samples and histograms they are made of.

docs/metrics.md says more. Hot paths only count; names and labels are added when the page is read.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Final

from setpoint.engine.metrics import STEP_COUNTS
from setpoint.runtime.workqueue.scheduling import Priority

# Those of controller-runtime's work queues, so that its dashboards fit: ten nanoseconds to 1,000 seconds.
QUEUE_BUCKETS: Final = tuple(10.0**power for power in range(-8, 4))


@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    """Cumulative counts for each bucket (`at_most`), the count and the sum of all observations."""

    at_most: tuple[int, ...]
    count: int
    seconds: float


class Histogram:
    """Counts durations in fixed buckets, at next to no cost; read by the scrape."""

    __slots__ = ("_bounds", "_counts", "_seconds")

    def __init__(self, bounds: tuple[float, ...] = QUEUE_BUCKETS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """Observes one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._seconds += seconds

    def read(self) -> HistogramSnapshot:
        """The counts so far."""
        *at_most, count = accumulate(self._counts)
        return HistogramSnapshot(tuple(at_most), count, self._seconds)


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A work queue at one moment. `delayed` adds are not part of the depth.

    `adds` leaves out those of a key that was queued already; `retries` are delayed adds after a failure.
    """

    depth: Mapping[Priority, int]
    delayed: int
    processing: int
    unfinished_seconds: float
    longest_running_seconds: float
    adds: int
    retries: int
    queue_durations: HistogramSnapshot
    work_durations: HistogramSnapshot


class MetricType(Enum):
    """The type of a metric, as Prometheus knows it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric, with its labels."""

    name: str
    sort: MetricType
    labels: Mapping[str, str]
    value: float | HistogramSnapshot


def queue_samples(queue: str, snapshot: QueueSnapshot) -> Iterator[Sample]:
    """The samples of a work queue. `delayed` and `processing` have no name in controller-runtime, and get our own."""
    labels = {"name": queue, "controller": queue}
    for priority, depth in snapshot.depth.items():
        yield Sample("workqueue_depth", MetricType.GAUGE, labels | {"priority": priority.name.lower()}, depth)
    longest = snapshot.longest_running_seconds
    yield Sample("workqueue_adds_total", MetricType.COUNTER, labels, snapshot.adds)
    yield Sample("workqueue_retries_total", MetricType.COUNTER, labels, snapshot.retries)
    yield Sample("workqueue_queue_duration_seconds", MetricType.HISTOGRAM, labels, snapshot.queue_durations)
    yield Sample("workqueue_work_duration_seconds", MetricType.HISTOGRAM, labels, snapshot.work_durations)
    yield Sample("workqueue_unfinished_work_seconds", MetricType.GAUGE, labels, snapshot.unfinished_seconds)
    yield Sample("workqueue_longest_running_processor_seconds", MetricType.GAUGE, labels, longest)
    yield Sample("setpoint_workqueue_delayed", MetricType.GAUGE, labels, snapshot.delayed)
    yield Sample("setpoint_workqueue_in_work", MetricType.GAUGE, labels, snapshot.processing)


# Those of controller-runtime, so that its dashboards fit.
RECONCILE_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
# From a label, which is set at once, to a database, which takes half an hour to create.
CONVERGENCE_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
# Resyncs are 300 to 900 seconds apart by default; an author may ask for one a second, or one a day.
DRIFT_AGE_BUCKETS: Final = (
    *(1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 450.0, 600.0, 750.0, 900.0, 1800.0, 3600.0, 21_600.0, 86_400.0),
)


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric. Only a histogram has buckets."""

    name: str
    sort: MetricType
    labels: tuple[str, ...]
    meaning: str
    bounds: tuple[float, ...] = ()


_CONTROLLER: Final = ("controller",)
_QUEUE: Final = ("name", "controller")
_BUDGET: Final = ("service", "project", "quota")
_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

CATALOGUE: Final = (
    MetricDefinition(
        "controller_runtime_reconcile_total", _COUNTER, (*_CONTROLLER, "result"), "Steps, by how they ended."
    ),
    MetricDefinition("controller_runtime_reconcile_errors_total", _COUNTER, _CONTROLLER, "Steps that failed."),
    *(MetricDefinition(count.name, _COUNTER, (count.label,), count.help) for count in STEP_COUNTS),
    MetricDefinition(
        "controller_runtime_reconcile_time_seconds", _HISTOGRAM, _CONTROLLER, "How long steps took.", RECONCILE_BUCKETS
    ),
    MetricDefinition("controller_runtime_active_workers", _GAUGE, _CONTROLLER, "Steps that are being taken."),
    MetricDefinition(
        "controller_runtime_max_concurrent_reconciles", _GAUGE, _CONTROLLER, "Steps that may be taken at once."
    ),
    MetricDefinition("workqueue_depth", _GAUGE, (*_QUEUE, "priority"), "Resources that wait for a step."),
    MetricDefinition("workqueue_adds_total", _COUNTER, _QUEUE, "Resources that were put into the queue."),
    MetricDefinition("workqueue_retries_total", _COUNTER, _QUEUE, "Looks that were put off because of a failure."),
    MetricDefinition(
        "workqueue_queue_duration_seconds", _HISTOGRAM, _QUEUE, "How long resources waited for a step.", QUEUE_BUCKETS
    ),
    MetricDefinition(
        "workqueue_work_duration_seconds", _HISTOGRAM, _QUEUE, "How long resources were in work.", QUEUE_BUCKETS
    ),
    MetricDefinition(
        "workqueue_unfinished_work_seconds", _GAUGE, _QUEUE, "Seconds that what is in work has taken, in all."
    ),
    MetricDefinition(
        "workqueue_longest_running_processor_seconds", _GAUGE, _QUEUE, "Seconds of what has been in work longest."
    ),
    MetricDefinition("setpoint_workqueue_delayed", _GAUGE, _QUEUE, "Looks that are planned for later."),
    MetricDefinition("setpoint_workqueue_in_work", _GAUGE, _QUEUE, "Resources that are in work."),
    MetricDefinition(
        "setpoint_cookie_checks_total",
        _COUNTER,
        ("kind", "result"),
        "Looks that a cookie settled (hit), and those that had to compare fields (miss).",
    ),
    MetricDefinition(
        "setpoint_listings_total", _COUNTER, ("kind", "ending"), "Lists that were read instead of many objects."
    ),
    MetricDefinition("setpoint_listed_looks_total", _COUNTER, ("kind",), "Looks that a list made needless."),
    MetricDefinition("setpoint_decisions_total", _COUNTER, ("kind", "decision"), "What looks at both digests said."),
    MetricDefinition(
        "setpoint_convergence_seconds",
        _HISTOGRAM,
        ("kind",),
        "From the author's edit to Ready.",
        CONVERGENCE_BUCKETS,
    ),
    MetricDefinition(
        "setpoint_drift_age_seconds",
        _HISTOGRAM,
        ("kind",),
        "From the last look that found everything in order to the one that put drift right.",
        DRIFT_AGE_BUCKETS,
    ),
    MetricDefinition("setpoint_resources", _GAUGE, ("kind", "ready"), "Resources, by whether they are ready."),
    MetricDefinition("setpoint_shards", _GAUGE, (), "Shards that there are."),
    MetricDefinition("setpoint_shards_held", _GAUGE, (), "Shards whose resources this process looks after."),
    MetricDefinition("setpoint_shard_holder_changes_total", _COUNTER, ("shard",), "How often a shard changed hands."),
    MetricDefinition(
        "setpoint_lease_renewal_failures_total", _COUNTER, ("lease",), "Renewals of leases that came to nothing."
    ),
    MetricDefinition("setpoint_api_rate_limit", _GAUGE, _BUDGET, "Calls a second that we allow ourselves now."),
    MetricDefinition(
        "rest_client_requests_total",
        _COUNTER,
        ("code", "method", "host"),
        "Requests, by what came of them: a status, or <error> without an answer.",
    ),
    MetricDefinition("setpoint_api_calls_total", _COUNTER, _BUDGET, "Calls made."),
    MetricDefinition(
        "setpoint_api_throttles_total", _COUNTER, _BUDGET, "Calls after which the service asked for fewer."
    ),
    MetricDefinition("setpoint_api_wait_seconds_total", _COUNTER, _BUDGET, "Seconds that calls waited for their turn."),
    MetricDefinition("setpoint_api_waiting", _GAUGE, _BUDGET, "Calls that wait for their turn."),
    MetricDefinition("setpoint_api_in_flight", _GAUGE, ("service",), "Calls under way."),
    MetricDefinition(
        "setpoint_api_turned_away_total", _COUNTER, ("service",), "Calls that were not made, to be tried later."
    ),
    MetricDefinition("setpoint_breaker_open", _GAUGE, ("service",), "1 while the service is taken to be down."),
    MetricDefinition(
        "setpoint_breaker_openings_total", _COUNTER, ("service",), "How often the service was taken to be down."
    ),
)
