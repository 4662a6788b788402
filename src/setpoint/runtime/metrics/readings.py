"""Metrics that are read when the page is scraped: queues, workers, resources, shards, rate limits, requests."""

import asyncio
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from setpoint import __version__
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.clients.ratelimit.limiter import LimiterSnapshot
from setpoint.runtime.controller import Controller
from setpoint.runtime.metrics.build import revision
from setpoint.runtime.metrics.catalogue import DEFINITIONS, MetricDefinition, MetricType
from setpoint.runtime.sharding.leases import LEASE_PURPOSES
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.statistics import HistogramSnapshot

# About a millisecond's worth.
READINGS_PER_SLICE: Final = 1000

# By API group, kind and readiness.
ResourceCounts: TypeAlias = Mapping[tuple[str, str, bool], int]
# Requests by method, host and code.
RequestCounts: TypeAlias = Mapping[tuple[str, str, str], int]
ReadFamily: TypeAlias = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class Reading(NamedTuple):
    """One value of a metric; the values of its labels in the order of its definition."""

    name: str
    labels: tuple[str, ...]
    value: float | HistogramSnapshot


def new_family(definition: MetricDefinition) -> ReadFamily:
    """The family of a metric, without values."""
    match definition.type:
        case MetricType.COUNTER:
            return CounterMetricFamily(definition.name, definition.help, labels=definition.labels)
        case MetricType.GAUGE:
            return GaugeMetricFamily(definition.name, definition.help, labels=definition.labels)
        case MetricType.HISTOGRAM:
            return HistogramMetricFamily(definition.name, definition.help, labels=definition.labels)


async def fill(families: Mapping[str, ReadFamily], readings: Iterable[Reading]) -> None:
    """Adds the readings to the families of these names; yields to other tasks after each slice."""
    for number, (name, labels, value) in enumerate(readings, start=1):
        family = families[name]
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, HistogramSnapshot)
            counts = zip(map(repr, DEFINITIONS[name].buckets), value.at_most, strict=True)
            family.add_metric(labels, [*counts, ("+Inf", value.count)], value.seconds)
        else:
            assert not isinstance(value, HistogramSnapshot)
            family.add_metric(labels, value)
        if number % READINGS_PER_SLICE == 0:
            await asyncio.sleep(0)


def read_build() -> Iterator[Reading]:
    """What runs here."""
    yield Reading("setpoint_build_info", (__version__, platform.python_version(), revision()), 1.0)


def read_controller(controller: Controller) -> Iterator[Reading]:
    """The workers and the queue. `delayed` and `processing` have no name in controller-runtime, and get our own."""
    name, queue = controller.name, controller.queue.snapshot()
    labels = (name, name)
    yield Reading("controller_runtime_active_workers", (name,), controller.processing)
    yield Reading("controller_runtime_max_concurrent_reconciles", (name,), controller.workers)
    for priority, depth in queue.depth.items():
        yield Reading("workqueue_depth", (*labels, priority.name.lower()), depth)
    yield Reading("workqueue_adds_total", labels, queue.adds)
    yield Reading("workqueue_retries_total", labels, queue.retries)
    yield Reading("workqueue_queue_duration_seconds", labels, queue.queue_durations)
    yield Reading("workqueue_work_duration_seconds", labels, queue.work_durations)
    yield Reading("workqueue_unfinished_work_seconds", labels, queue.unfinished_seconds)
    yield Reading("workqueue_longest_running_processor_seconds", labels, queue.longest_running_seconds)
    yield Reading("setpoint_workqueue_delayed", labels, queue.delayed)
    yield Reading("setpoint_workqueue_in_work", labels, queue.processing)


def read_resources(counts: ResourceCounts) -> Iterator[Reading]:
    """How many resources are ready, and how many are not."""
    for (_, kind, ready), number in tuple(counts.items()):
        yield Reading("setpoint_resources", (kind, "true" if ready else "false"), number)


class SourceReadings(Protocol):
    """What is read of the source of a set; times in seconds since 1970, 0 for never."""

    @property
    def last_good(self) -> float:
        """When it was last declared as it is."""
        ...

    @property
    def last_failed(self) -> float:
        """When it last could not be read, or was refused."""
        ...

    @property
    def failures(self) -> int:
        """How often that was."""
        ...

    @property
    def resources(self) -> int:
        """How many resources it declares."""
        ...


def read_sources(sources: Mapping[str, SourceReadings]) -> Iterator[Reading]:
    """The sources of sets, by the name of the set."""
    for name, source in sources.items():
        yield Reading("setpoint_source_last_good_timestamp_seconds", (name,), source.last_good)
        yield Reading("setpoint_source_last_failed_timestamp_seconds", (name,), source.last_failed)
        yield Reading("setpoint_source_failures_total", (name,), source.failures)
        yield Reading("setpoint_source_resources", (name,), source.resources)


class NotificationReadings(Protocol):
    """What the metrics page reads of the delivery of notifications."""

    def attempts(self) -> Iterable[tuple[str, str, int]]:
        """How many attempts there were, by receiver and result."""
        ...

    def pending(self) -> Iterable[tuple[str, int]]:
        """How many resources wait, by receiver."""
        ...


def read_notifications(notifications: NotificationReadings | None) -> Iterator[Reading]:
    """The delivery of notifications, where there are receivers."""
    if notifications is None:
        return
    for receiver, result, count in notifications.attempts():
        yield Reading("setpoint_notifications_total", (receiver, result), count)
    for receiver, waiting in notifications.pending():
        yield Reading("setpoint_notifications_pending", (receiver,), waiting)


def read_replica(replica: ControllerReplica) -> Iterator[Reading]:
    """Shards and leases."""
    yield Reading("setpoint_shards", (), replica.shard_count)
    yield Reading("setpoint_shards_held", (), len(replica.held_shards))
    for shard in range(replica.shard_count):
        yield Reading("setpoint_shard_holder_changes_total", (str(shard),), replica.holder_changes[shard])
    for purpose in LEASE_PURPOSES:
        yield Reading("setpoint_lease_renewal_failures_total", (purpose,), replica.leases.failures[purpose])


def read_limiters(snapshot: LimiterSnapshot) -> Iterator[Reading]:
    """The rate limiters and circuit breakers of services."""
    for budget in snapshot.budgets:
        yield Reading("setpoint_api_rate_limit", budget.key, budget.rate)
        yield Reading("setpoint_api_calls_total", budget.key, budget.calls)
        yield Reading("setpoint_api_throttles_total", budget.key, budget.throttles)
        yield Reading("setpoint_api_wait_seconds_total", budget.key, budget.seconds_waited)
        yield Reading("setpoint_api_waiting", budget.key, budget.waiting)
    for limiter in snapshot.limiters:
        service = (limiter.service,)
        yield Reading("setpoint_api_in_flight", service, limiter.in_flight)
        yield Reading("setpoint_api_turned_away_total", service, limiter.rejected)
        yield Reading("setpoint_breaker_open", service, float(limiter.breaker is not BreakerState.CLOSED))
        yield Reading("setpoint_breaker_openings_total", service, limiter.openings)


def read_requests(counts: Iterable[RequestCounts]) -> Iterator[Reading]:
    """The requests of all clients together."""
    total: Counter[tuple[str, str, str]] = sum(map(Counter, counts), Counter())
    for (method, host, code), number in total.items():
        yield Reading("rest_client_requests_total", (code, method, host), number)
