"""From snapshots of a running process to the page that Prometheus scrapes.

Snapshots are taken on the event loop, at next to no cost. Names, labels and text are made afterwards, in slices, so
that a page of thousands of lines does not block the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.clients.ratelimit.limiter import BudgetStats, LimiterStats
from setpoint.clients.ratelimit.limiter import LimiterSnapshot as BudgetsSnapshot
from setpoint.runtime.controller import Controller
from setpoint.runtime.metrics.catalogue import (
    CATALOGUE,
    HistogramSnapshot,
    MetricDefinition,
    MetricType,
    QueueSnapshot,
    Sample,
    queue_samples,
)
from setpoint.runtime.sharding.leases import LEASE_PURPOSES
from setpoint.runtime.sharding.replica import ControllerReplica

T = TypeVar("T")

# Each about a millisecond's worth.
ITEMS_PER_SLICE: Final = 1000
LINES_PER_SLICE: Final = 100
# The last line of a page of OpenMetrics.
_EOF: Final = b"# EOF\n"


async def yielding_often(things: Iterable[T]) -> AsyncIterator[T]:
    """The same items; yields to other tasks after each slice."""
    for number, thing in enumerate(things, start=1):
        yield thing
        if number % ITEMS_PER_SLICE == 0:
            await asyncio.sleep(0)


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
    for start in range(0, max(len(family.samples), 1), LINES_PER_SLICE):
        piece = Family(family.name, family.documentation, family.type)
        piece.samples = family.samples[start : start + LINES_PER_SLICE]
        yield _SingleFamily(piece)


def _without_heading(text: bytes) -> bytes:
    """Without HELP and TYPE, which stand once."""
    return text.split(b"\n", 2)[2]


# By API group, kind and readiness.
ResourceCounts: TypeAlias = Mapping[tuple[str, str, bool], int]


@dataclass(frozen=True, slots=True)
class ControllerSnapshot:
    """One controller at one moment."""

    name: str
    active: int
    most: int
    queue: QueueSnapshot


def controller_snapshot(controller: Controller) -> ControllerSnapshot:
    """The controller now."""
    return ControllerSnapshot(controller.name, controller.processing, controller.workers, controller.queue.snapshot())


@dataclass(frozen=True, slots=True)
class ReplicaSnapshot:
    """A replica at one moment."""

    shards: int
    held: int
    # By shard.
    changes: Mapping[int, int]
    # By the purpose of the lease.
    failures: Mapping[str, int]


def replica_snapshot(replica: ControllerReplica) -> ReplicaSnapshot:
    """The replica now."""
    changes = {shard: replica.holder_changes[shard] for shard in range(replica.shard_count)}
    failures = {sort: replica.leases.failures[sort] for sort in LEASE_PURPOSES}
    return ReplicaSnapshot(replica.shard_count, len(replica.held_shards), changes, failures)


# --- Samples ----------------------------------------------------------------------------------------------------------


def counter(name: str, value: float, **labels: str) -> Sample:
    """A sample of a counter."""
    return Sample(name, MetricType.COUNTER, labels, value)


def gauge(name: str, value: float, **labels: str) -> Sample:
    """A sample of a gauge."""
    return Sample(name, MetricType.GAUGE, labels, value)


def controller_samples(one: ControllerSnapshot) -> Iterator[Sample]:
    """The samples of a controller and its queue."""
    yield gauge("controller_runtime_active_workers", one.active, controller=one.name)
    yield gauge("controller_runtime_max_concurrent_reconciles", one.most, controller=one.name)
    yield from queue_samples(one.name, one.queue)


def resource_samples(counted: ResourceCounts) -> Iterator[Sample]:
    """The samples of all resources."""
    for (_, kind, ready), number in counted.items():
        yield gauge("setpoint_resources", number, kind=kind, ready="true" if ready else "false")


def replica_samples(one: ReplicaSnapshot) -> Iterator[Sample]:
    """The samples of shards and leases."""
    yield gauge("setpoint_shards", one.shards)
    yield gauge("setpoint_shards_held", one.held)
    for shard, number in one.changes.items():
        yield counter("setpoint_shard_holder_changes_total", number, shard=str(shard))
    for sort, number in one.failures.items():
        yield counter("setpoint_lease_renewal_failures_total", number, lease=sort)


def api_samples(snapshot: BudgetsSnapshot) -> Iterator[Sample]:
    """The samples of the rate limiters and circuit breakers of services."""
    for budget in snapshot.budgets:
        yield from _budget_samples(budget)
    for limiter in snapshot.limiters:
        yield from _gate_samples(limiter)


def _budget_samples(budget: BudgetStats) -> Iterator[Sample]:
    labels = budget.key._asdict()
    yield gauge("setpoint_api_rate_limit", budget.rate, **labels)
    yield counter("setpoint_api_calls_total", budget.calls, **labels)
    yield counter("setpoint_api_throttles_total", budget.throttles, **labels)
    yield counter("setpoint_api_wait_seconds_total", budget.seconds_waited, **labels)
    yield gauge("setpoint_api_waiting", budget.waiting, **labels)


def _gate_samples(limiter: LimiterStats) -> Iterator[Sample]:
    service = limiter.service
    yield gauge("setpoint_api_in_flight", limiter.in_flight, service=service)
    yield counter("setpoint_api_turned_away_total", limiter.rejected, service=service)
    yield gauge("setpoint_breaker_open", float(limiter.breaker is not BreakerState.CLOSED), service=service)
    yield counter("setpoint_breaker_openings_total", limiter.openings, service=service)


# --- Families ---------------------------------------------------------------------------------------------------------


async def samples_by_metric(all_figures: Iterable[Sample]) -> Mapping[str, list[Sample]]:
    """The samples of every metric in the catalogue, also of those without any."""
    found: dict[str, list[Sample]] = {metric.name: [] for metric in CATALOGUE}
    async for figure in yielding_often(all_figures):
        found[figure.name].append(figure)
    return found


def metric_families(found: Mapping[str, list[Sample]]) -> Iterator[Family]:
    """Every metric of the catalogue, in its order, also those without samples."""
    for metric in CATALOGUE:
        yield _family(metric, found[metric.name])


def _family(metric: MetricDefinition, found: Iterable[Sample]) -> Family:
    match metric.sort:
        case MetricType.COUNTER:
            return _filled(CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels), metric, found)
        case MetricType.GAUGE:
            return _filled(GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels), metric, found)
        case MetricType.HISTOGRAM:
            return _histogram_family(metric, found)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, metric: MetricDefinition, found: Iterable[Sample]
) -> CounterMetricFamily | GaugeMetricFamily:
    for figure in found:
        assert not isinstance(figure.value, HistogramSnapshot)
        family.add_metric([figure.labels[label] for label in metric.labels], figure.value)
    return family


def _histogram_family(metric: MetricDefinition, found: Iterable[Sample]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    at_most = [repr(bound) for bound in metric.bounds]
    for figure in found:
        assert isinstance(figure.value, HistogramSnapshot)
        buckets = [*zip(at_most, figure.value.at_most, strict=True), ("+Inf", figure.value.count)]
        family.add_metric([figure.labels[label] for label in metric.labels], buckets, figure.value.seconds)
    return family
