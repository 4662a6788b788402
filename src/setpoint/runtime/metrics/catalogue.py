"""Every metric of setpoint, in the order of the page: name, type, labels, help text and buckets.

docs/metrics.md says more, and a test compares both.
"""

from enum import Enum
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.metrics import STEP_COUNTS
from setpoint.runtime.workqueue.statistics import QUEUE_BUCKETS

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


class MetricType(Enum):
    """The type of a metric, as Prometheus knows it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric. Only a histogram has buckets."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _counter(name: str, labels: tuple[str, ...], help_text: str) -> MetricDefinition:
    return MetricDefinition(name, MetricType.COUNTER, labels, help_text)


def _gauge(name: str, labels: tuple[str, ...], help_text: str) -> MetricDefinition:
    return MetricDefinition(name, MetricType.GAUGE, labels, help_text)


def _histogram(name: str, labels: tuple[str, ...], help_text: str, buckets: tuple[float, ...]) -> MetricDefinition:
    return MetricDefinition(name, MetricType.HISTOGRAM, labels, help_text, buckets)


_CONTROLLER: Final = ("controller",)
_KIND: Final = ("kind",)
_QUEUE: Final = ("name", "controller")
_BUDGET: Final = ("service", "project", "quota")
_SERVICE: Final = ("service",)
_SET: Final = ("set",)

CATALOGUE: Final = (
    _gauge("setpoint_build_info", ("version", "python", "revision"), "1, with what runs: version, Python, revision."),
    _counter("controller_runtime_reconcile_total", ("controller", "result"), "Steps, by how they ended."),
    _counter("controller_runtime_reconcile_errors_total", _CONTROLLER, "Steps that failed."),
    *(_counter(count.name, (count.label,), count.help) for count in STEP_COUNTS),
    _histogram("controller_runtime_reconcile_time_seconds", _CONTROLLER, "How long steps took.", RECONCILE_BUCKETS),
    _gauge("controller_runtime_active_workers", _CONTROLLER, "Steps that are being taken."),
    _gauge("controller_runtime_max_concurrent_reconciles", _CONTROLLER, "Steps that may be taken at once."),
    _gauge("workqueue_depth", (*_QUEUE, "priority"), "Resources that wait for a step."),
    _counter("workqueue_adds_total", _QUEUE, "Resources that were put into the queue."),
    _counter("workqueue_retries_total", _QUEUE, "Steps that were delayed because of a failure."),
    _histogram("workqueue_queue_duration_seconds", _QUEUE, "How long resources waited for a step.", QUEUE_BUCKETS),
    _histogram("workqueue_work_duration_seconds", _QUEUE, "How long resources were in work.", QUEUE_BUCKETS),
    _gauge("workqueue_unfinished_work_seconds", _QUEUE, "Seconds that what is in work has taken, in all."),
    _gauge("workqueue_longest_running_processor_seconds", _QUEUE, "Seconds of what has been in work longest."),
    _gauge("setpoint_workqueue_delayed", _QUEUE, "Steps that are scheduled for later."),
    _gauge("setpoint_workqueue_in_work", _QUEUE, "Resources that are in work."),
    _counter(
        "setpoint_cookie_checks_total",
        ("kind", "result"),
        "Steps that a cookie settled (hit), and those that had to compare fields (miss).",
    ),
    _counter("setpoint_listings_total", ("kind", "ending"), "Lists that were read instead of many objects."),
    _counter("setpoint_listed_looks_total", _KIND, "Observations that a list made needless."),
    _counter("setpoint_decisions_total", ("kind", "decision"), "Decisions of steps, from both digests."),
    _histogram("setpoint_convergence_seconds", _KIND, "From the author's edit to Ready.", CONVERGENCE_BUCKETS),
    _histogram(
        "setpoint_drift_age_seconds",
        _KIND,
        "From the last step that found no drift to the one that corrected it.",
        DRIFT_AGE_BUCKETS,
    ),
    _gauge("setpoint_resources", ("kind", "ready"), "Resources, by whether they are ready."),
    _gauge("setpoint_source_last_good_timestamp_seconds", _SET, "When the source of a set was last declared as it is."),
    _gauge("setpoint_source_last_failed_timestamp_seconds", _SET, "When the source of a set was last refused."),
    _counter("setpoint_source_failures_total", _SET, "How often the source of a set could not be declared."),
    _gauge("setpoint_source_resources", _SET, "Resources that the source of a set declares."),
    _counter(
        "setpoint_notifications_total", ("receiver", "result"), "Attempts to send a notification, by their result."
    ),
    _gauge("setpoint_notifications_pending", ("receiver",), "Resources that a receiver may have to be told of."),
    _gauge("setpoint_shards", (), "Shards that there are."),
    _gauge("setpoint_shards_held", (), "Shards that this process holds."),
    _counter("setpoint_shard_holder_changes_total", ("shard",), "How often a shard changed hands."),
    _counter("setpoint_lease_renewal_failures_total", ("lease",), "Renewals of leases that came to nothing."),
    _gauge("setpoint_api_rate_limit", _BUDGET, "Calls a second that we allow ourselves now."),
    _counter(
        "rest_client_requests_total",
        ("code", "method", "host"),
        "Requests, by what came of them: a status, or <error> without an answer.",
    ),
    _counter("setpoint_api_calls_total", _BUDGET, "Calls made."),
    _counter("setpoint_api_throttles_total", _BUDGET, "Calls after which the service asked for fewer."),
    _counter("setpoint_api_wait_seconds_total", _BUDGET, "Seconds that calls waited for their turn."),
    _gauge("setpoint_api_waiting", _BUDGET, "Calls that wait for their turn."),
    _gauge("setpoint_api_in_flight", _SERVICE, "Calls under way."),
    _counter("setpoint_api_turned_away_total", _SERVICE, "Calls that were not made, to be tried later."),
    _gauge("setpoint_breaker_open", _SERVICE, "1 while the service is taken to be down."),
    _counter("setpoint_breaker_openings_total", _SERVICE, "How often the service was taken to be down."),
)
DEFINITIONS: Final = {definition.name: definition for definition in CATALOGUE}
