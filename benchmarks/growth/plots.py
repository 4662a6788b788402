"""The plots of a run: CPU time, memory and durations by size, and the queue over time."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import log
from pathlib import Path
from typing import Final

from benchmarks.growth.fleet_usage import MEMORY, OPEN_PHASES, FleetUsage
from benchmarks.growth.phases import Phase
from benchmarks.growth.svg_chart import Axis, Line, line_chart

_RESOURCES: Final = Axis("resources", is_log=True)


def write_plots(folder: Path, fleets: Sequence[FleetUsage]) -> None:
    """Writes each plot to a file of its own."""
    for name, text in plots(fleets).items():
        (folder / f"growth-{name}.svg").write_text(text, encoding="utf-8")


def plots(fleets: Sequence[FleetUsage]) -> Mapping[str, str]:
    """The plots by name."""
    return {
        "cpu": line_chart("CPU time for each resource", _RESOURCES, Axis("seconds"), list(_cpu(fleets))),
        "memory": line_chart(
            "Memory at the peak, all processes", _RESOURCES, Axis("bytes", is_log=True), list(_memory(fleets))
        ),
        "time": line_chart(
            "Time until everything is in sync again", _RESOURCES, Axis("seconds", is_log=True), list(_times(fleets))
        ),
        "queue": line_chart(
            "An outage of ten minutes: resources that failed, and the queue",
            Axis("minutes since the outage began"),
            Axis("percent of all"),
            list(_queues(fleets)),
        ),
    }


def _cpu(fleets: Sequence[FleetUsage]) -> Iterator[Line]:
    for colour, phase in enumerate(Phase):
        for alike in _by_replicas(fleets):
            points = [(one.count, one.cpu(phase) / one.count) for one in alike if phase in one.measured_phases]
            yield Line(f"{phase}, {alike[0].processes}", points, colour, is_dashed=alike[0].number > 1)


def _memory(fleets: Sequence[FleetUsage]) -> Iterator[Line]:
    for colour, alike in enumerate(_by_replicas(fleets)):
        points = [(one.count, one.quantities[MEMORY].value) for one in alike]
        yield Line(alike[0].processes, points, colour)
        yield _n_log_n(points, colour)


def _times(fleets: Sequence[FleetUsage]) -> Iterator[Line]:
    for colour, phase in enumerate(OPEN_PHASES):
        for alike in _by_replicas(fleets):
            measured = [one for one in alike if phase in one.measured_phases]
            points = [(one.count, max(used.seconds for used in one.phases(phase))) for one in measured]
            yield Line(f"{phase}, {alike[0].processes}", points, colour, is_dashed=alike[0].number > 1)


def _queues(fleets: Sequence[FleetUsage]) -> Iterator[Line]:
    for colour, fleet in enumerate(one for one in fleets if Phase.OUTAGE in one.measured_phases):
        first = fleet.replicas[0]
        began = first.phases[Phase.OUTAGE].began
        samples = [sample for sample in first.samples if sample.at >= began]
        minutes, percent = [(sample.at - began) / 60 for sample in samples], 100 / max(1, first.own)
        failed = [(at, percent * sample.failing) for at, sample in zip(minutes, samples, strict=True)]
        queued = [(at, percent * sample.queued) for at, sample in zip(minutes, samples, strict=True)]
        yield Line(f"{fleet.count:,}, {fleet.processes}", failed, colour)
        yield Line("its queue", queued, colour, is_dashed=True)


def _n_log_n(points: Sequence[tuple[float, float]], colour: int) -> Line:
    """What the first value would become if it grew as n log n."""
    size, value = points[0]
    return Line(
        "n log n", [(one, value * one * log(one) / (size * log(size))) for one, _ in points], colour, is_dashed=True
    )


def _by_replicas(fleets: Sequence[FleetUsage]) -> Iterator[list[FleetUsage]]:
    for _, alike in groupby(fleets, key=lambda fleet: fleet.number):
        yield list(alike)
