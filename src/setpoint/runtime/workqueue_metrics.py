"""What can be measured of a work queue, under the names that controller-runtime gave it.

The queue only counts. Names and labels are put to the figures when somebody reads them: a call with a dict of labels
for every event would cost more than the event.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from setpoint.runtime.durations import Distribution
from setpoint.runtime.priorities import Priority


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A queue at one moment. `delayed` looks are yet to come, and are not part of the depth.

    `adds` leaves out those of a key that waited already; `retries` are the looks put off because of a failure.
    """

    depth: Mapping[Priority, int]
    delayed: int
    in_work: int
    unfinished_seconds: float
    longest_running_seconds: float
    adds: int
    retries: int
    queue_durations: Distribution
    work_durations: Distribution


class Sort(Enum):
    """How a figure is to be read."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure under its name and labels."""

    name: str
    sort: Sort
    labels: Mapping[str, str]
    value: float | Distribution


def figures(queue: str, snapshot: Snapshot) -> Iterator[Figure]:
    """What a collector shows of the queue of that name. `delayed` and `in_work` have no name there, and get ours."""
    labels = {"name": queue, "controller": queue}
    for priority, depth in snapshot.depth.items():
        yield Figure("workqueue_depth", Sort.GAUGE, labels | {"priority": priority.name.lower()}, depth)
    longest = snapshot.longest_running_seconds
    yield Figure("workqueue_adds_total", Sort.COUNTER, labels, snapshot.adds)
    yield Figure("workqueue_retries_total", Sort.COUNTER, labels, snapshot.retries)
    yield Figure("workqueue_queue_duration_seconds", Sort.HISTOGRAM, labels, snapshot.queue_durations)
    yield Figure("workqueue_work_duration_seconds", Sort.HISTOGRAM, labels, snapshot.work_durations)
    yield Figure("workqueue_unfinished_work_seconds", Sort.GAUGE, labels, snapshot.unfinished_seconds)
    yield Figure("workqueue_longest_running_processor_seconds", Sort.GAUGE, labels, longest)
    yield Figure("setpoint_workqueue_delayed", Sort.GAUGE, labels, snapshot.delayed)
    yield Figure("setpoint_workqueue_in_work", Sort.GAUGE, labels, snapshot.in_work)
