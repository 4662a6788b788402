"""What a running process shows of itself, as figures, and figures as prometheus_client wants them.

Sources are read on the event loop, for next to nothing. Names, labels and text are made of what was read afterwards, by
anybody who has the time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client import Metric as Family
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from setpoint.clients.breaker import State
from setpoint.clients.budgets import BudgetFigures, GateFigures
from setpoint.clients.budgets import Snapshot as BudgetsSnapshot
from setpoint.runtime.catalogue import CATALOGUE, Metric
from setpoint.runtime.controller import Controller
from setpoint.runtime.durations import Distribution
from setpoint.runtime.exposition import in_slices
from setpoint.runtime.leases import SORTS
from setpoint.runtime.replica import Replica
from setpoint.runtime.workqueue_metrics import Figure, Snapshot, Sort, figures

KindKey: TypeAlias = tuple[str, str]
# By kind and whether they are ready.
Census: TypeAlias = Mapping[tuple[str, str, bool], int]


@dataclass(frozen=True, slots=True)
class ControllerFigures:
    """One controller at one moment."""

    name: str
    active: int
    most: int
    queue: Snapshot


def read_controller(controller: Controller) -> ControllerFigures:
    """The controller now."""
    return ControllerFigures(controller.name, controller.in_work, controller.workers, controller.queue.snapshot())


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """A process among others at one moment."""

    shards: int
    held: int
    # By shard.
    changes: Mapping[int, int]
    # By what the lease is for.
    failures: Mapping[str, int]


def read_replica(replica: Replica) -> ReplicaFigures:
    """The replica now."""
    changes = {shard: replica.changes[shard] for shard in range(replica.number)}
    failures = {sort: replica.leases.failures[sort] for sort in SORTS}
    return ReplicaFigures(replica.number, len(replica.held), changes, failures)


# --- Figures ----------------------------------------------------------------------------------------------------------


def counter(name: str, value: float, **labels: str) -> Figure:
    """A figure that only grows."""
    return Figure(name, Sort.COUNTER, labels, value)


def gauge(name: str, value: float, **labels: str) -> Figure:
    """A figure that goes up and down."""
    return Figure(name, Sort.GAUGE, labels, value)


def controller_figures(one: ControllerFigures) -> Iterator[Figure]:
    """What is shown of a controller and its queue."""
    yield gauge("controller_runtime_active_workers", one.active, controller=one.name)
    yield gauge("controller_runtime_max_concurrent_reconciles", one.most, controller=one.name)
    yield from figures(one.name, one.queue)


def resource_figures(counted: Census) -> Iterator[Figure]:
    """What is shown of all resources."""
    for (_, kind, ready), number in counted.items():
        yield gauge("setpoint_resources", number, kind=kind, ready="true" if ready else "false")


def replica_figures(one: ReplicaFigures) -> Iterator[Figure]:
    """What is shown of shards and leases."""
    yield gauge("setpoint_shards", one.shards)
    yield gauge("setpoint_shards_held", one.held)
    for shard, number in one.changes.items():
        yield counter("setpoint_shard_holder_changes_total", number, shard=str(shard))
    for sort, number in one.failures.items():
        yield counter("setpoint_lease_renewal_failures_total", number, lease=sort)


def api_figures(snapshot: BudgetsSnapshot) -> Iterator[Figure]:
    """What is shown of the services that are called."""
    for budget in snapshot.budgets:
        yield from _budget_figures(budget)
    for gate in snapshot.gates:
        yield from _gate_figures(gate)


def _budget_figures(budget: BudgetFigures) -> Iterator[Figure]:
    labels = budget.charge._asdict()
    yield gauge("setpoint_api_rate_limit", budget.rate, **labels)
    yield counter("setpoint_api_calls_total", budget.calls, **labels)
    yield counter("setpoint_api_throttles_total", budget.throttles, **labels)
    yield counter("setpoint_api_wait_seconds_total", budget.seconds_waited, **labels)
    yield gauge("setpoint_api_waiting", budget.waiting, **labels)


def _gate_figures(gate: GateFigures) -> Iterator[Figure]:
    service = gate.service
    yield gauge("setpoint_api_in_flight", gate.in_flight, service=service)
    yield counter("setpoint_api_turned_away_total", gate.turned_away, service=service)
    yield gauge("setpoint_breaker_open", float(gate.breaker is not State.CLOSED), service=service)
    yield counter("setpoint_breaker_openings_total", gate.openings, service=service)


# --- Families ---------------------------------------------------------------------------------------------------------


async def by_metric(all_figures: Iterable[Figure]) -> Mapping[str, list[Figure]]:
    """The figures of every metric in the catalogue, those that have none included."""
    found: dict[str, list[Figure]] = {metric.name: [] for metric in CATALOGUE}
    async for figure in in_slices(all_figures):
        found[figure.name].append(figure)
    return found


def families(found: Mapping[str, list[Figure]]) -> Iterator[Family]:
    """Every metric of the catalogue, in its order; one without figures is still named."""
    for metric in CATALOGUE:
        yield _family(metric, found[metric.name])


def _family(metric: Metric, found: Iterable[Figure]) -> Family:
    match metric.sort:
        case Sort.COUNTER:
            return _filled(CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels), metric, found)
        case Sort.GAUGE:
            return _filled(GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels), metric, found)
        case Sort.HISTOGRAM:
            return _histogram(metric, found)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, metric: Metric, found: Iterable[Figure]
) -> CounterMetricFamily | GaugeMetricFamily:
    for figure in found:
        assert not isinstance(figure.value, Distribution)
        family.add_metric([figure.labels[label] for label in metric.labels], figure.value)
    return family


def _histogram(metric: Metric, found: Iterable[Figure]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    at_most = [repr(bound) for bound in metric.bounds]
    for figure in found:
        assert isinstance(figure.value, Distribution)
        buckets = [*zip(at_most, figure.value.at_most, strict=True), ("+Inf", figure.value.count)]
        family.add_metric([figure.labels[label] for label in metric.labels], buckets, figure.value.seconds)
    return family
