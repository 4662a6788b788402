"""Every metric of ours: its name, how it is read, its labels and its meaning. docs/metrics.md says more."""

from dataclasses import dataclass
from typing import Final

from setpoint.runtime.durations import BOUNDS
from setpoint.runtime.workqueue_metrics import Sort

# Those of controller-runtime, so that a dashboard made for it fits.
STEP_BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
# From a label that is set at once to a database that takes half an hour to make.
CONVERGENCE_BOUNDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
# Regular looks are 300 to 900 seconds apart; an author may ask for one a second, or one a day.
DRIFT_BOUNDS: Final = (
    *(1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 450.0, 600.0, 750.0, 900.0, 1800.0, 3600.0, 21_600.0, 86_400.0),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Only a histogram has bounds."""

    name: str
    sort: Sort
    labels: tuple[str, ...]
    meaning: str
    bounds: tuple[float, ...] = ()


_CONTROLLER: Final = ("controller",)
_QUEUE: Final = ("name", "controller")
_BUDGET: Final = ("service", "project", "quota")
_COUNTER, _GAUGE, _HISTOGRAM = Sort.COUNTER, Sort.GAUGE, Sort.HISTOGRAM

CATALOGUE: Final = (
    Metric("controller_runtime_reconcile_total", _COUNTER, (*_CONTROLLER, "result"), "Steps, by how they ended."),
    Metric("controller_runtime_reconcile_errors_total", _COUNTER, _CONTROLLER, "Steps that failed."),
    Metric(
        "controller_runtime_terminal_reconcile_errors_total",
        _COUNTER,
        _CONTROLLER,
        "Steps that failed in a way that only the author can mend.",
    ),
    Metric("controller_runtime_reconcile_panics_total", _COUNTER, _CONTROLLER, "Steps that met a bug of ours."),
    Metric("controller_runtime_reconcile_time_seconds", _HISTOGRAM, _CONTROLLER, "How long steps took.", STEP_BOUNDS),
    Metric("controller_runtime_active_workers", _GAUGE, _CONTROLLER, "Steps that are being taken."),
    Metric("controller_runtime_max_concurrent_reconciles", _GAUGE, _CONTROLLER, "Steps that may be taken at once."),
    Metric("workqueue_depth", _GAUGE, (*_QUEUE, "priority"), "Resources that wait for a step."),
    Metric("workqueue_adds_total", _COUNTER, _QUEUE, "Resources that were put into the queue."),
    Metric("workqueue_retries_total", _COUNTER, _QUEUE, "Looks that were put off because of a failure."),
    Metric("workqueue_queue_duration_seconds", _HISTOGRAM, _QUEUE, "How long resources waited for a step.", BOUNDS),
    Metric("workqueue_work_duration_seconds", _HISTOGRAM, _QUEUE, "How long resources were in work.", BOUNDS),
    Metric("workqueue_unfinished_work_seconds", _GAUGE, _QUEUE, "Seconds that what is in work has taken, in all."),
    Metric("workqueue_longest_running_processor_seconds", _GAUGE, _QUEUE, "Seconds of what has been in work longest."),
    Metric("setpoint_workqueue_delayed", _GAUGE, _QUEUE, "Looks that are planned for later."),
    Metric("setpoint_workqueue_in_work", _GAUGE, _QUEUE, "Resources that are in work."),
    Metric(
        "setpoint_cookie_checks_total",
        _COUNTER,
        ("kind", "result"),
        "Looks that a cookie settled (hit), and those that had to compare fields (miss).",
    ),
    Metric("setpoint_listings_total", _COUNTER, ("kind", "ending"), "Lists that were read instead of many objects."),
    Metric("setpoint_listed_looks_total", _COUNTER, ("kind",), "Looks that a list made needless."),
    Metric("setpoint_decisions_total", _COUNTER, ("kind", "decision"), "What looks at both digests said."),
    Metric(
        "setpoint_convergence_seconds",
        _HISTOGRAM,
        ("kind",),
        "From the author's edit to Ready.",
        CONVERGENCE_BOUNDS,
    ),
    Metric(
        "setpoint_drift_age_seconds",
        _HISTOGRAM,
        ("kind",),
        "From the last look that found everything in order to the one that put drift right.",
        DRIFT_BOUNDS,
    ),
    Metric("setpoint_resources", _GAUGE, ("kind", "ready"), "Resources, by whether they are ready."),
    Metric("setpoint_shards", _GAUGE, (), "Shards that there are."),
    Metric("setpoint_shards_held", _GAUGE, (), "Shards whose resources this process looks after."),
    Metric("setpoint_shard_holder_changes_total", _COUNTER, ("shard",), "How often a shard changed hands."),
    Metric("setpoint_lease_renewal_failures_total", _COUNTER, ("lease",), "Renewals of leases that came to nothing."),
    Metric("setpoint_api_rate_limit", _GAUGE, _BUDGET, "Calls a second that we allow ourselves now."),
    Metric(
        "rest_client_requests_total",
        _COUNTER,
        ("code", "method", "host"),
        "Requests, by what came of them: a status, or <error> without an answer.",
    ),
    Metric("setpoint_api_calls_total", _COUNTER, _BUDGET, "Calls made."),
    Metric("setpoint_api_throttles_total", _COUNTER, _BUDGET, "Calls after which the service asked for fewer."),
    Metric("setpoint_api_wait_seconds_total", _COUNTER, _BUDGET, "Seconds that calls waited for their turn."),
    Metric("setpoint_api_waiting", _GAUGE, _BUDGET, "Calls that wait for their turn."),
    Metric("setpoint_api_in_flight", _GAUGE, ("service",), "Calls under way."),
    Metric("setpoint_api_turned_away_total", _COUNTER, ("service",), "Calls that were not made, to be tried later."),
    Metric("setpoint_breaker_open", _GAUGE, ("service",), "1 while the service is taken to be down."),
    Metric("setpoint_breaker_openings_total", _COUNTER, ("service",), "How often the service was taken to be down."),
)
