"""The group `cluster`: a process that keeps 10,000 custom resources of a real API server, beside others that could.

Each of them is a process that does nothing else, and has the cluster to itself meanwhile.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
import msgspec

from benchmarks.errands import Errand, Found, Order, Sort, carry_out
from benchmarks.fleet import FLEET, new_fleet
from benchmarks.fleet_server import FleetServer, programs, serving
from benchmarks.measuring import Disagreement, Pace
from benchmarks.opponents import Opponents
from benchmarks.surveys import Reading, Survey, Trial, Unit, Unmeasured, compared
from tests.cluster.assets import Assets, Missing

START_CPU: Final = "10,000 custom resources: start, until all are heard of: CPU time"
START_WALL: Final = "10,000 custom resources: start, until all are heard of: by the clock"
MEMORY_EACH: Final = "10,000 custom resources: memory at rest, each, beyond that of a process without any"
MEMORY_ALL: Final = "10,000 custom resources: memory at rest, all of the process"
LOOK: Final = "10,000 custom resources: a look at one in which nothing moved: CPU time"
REQUESTS: Final = "10,000 custom resources: requests to the cluster, besides watches"
EVENT: Final = "10,000 custom resources: a fifth is edited at once, each until that is kept: CPU time"
OURS: Final = "ours: setpoint run"
BEYOND: Final = "ours, without the bare lists"
BARE: Final = "our client: the bare lists, nothing is kept"
TREES: Final = "our client: everything is kept as trees"
STREAM: Final = "our client: the bare events, nothing is kept"
OURS_START: Final = "ours: the start"
FIRST_LOOK: Final = "ours: the first look at each"
LATER_LOOK: Final = "ours: a later look at each"

RESOURCES: Final = 10_000
# An API server that has not seen many changes of late remembers about 3,000 of those that come at once.
EDITS: Final = 2_000
# More than there are models.
_FEWEST: Final = 60
_STARTS: Final = 3
_NOWHERE: Final = "nowhere"
_OURS: Final = "benchmarks.cluster_ours"
_CLIENT: Final = "benchmarks.cluster_client"


def trials(opponents: Opponents, pace: Pace) -> Generator[Trial, None, None]:
    """On one API server, whose programs may have to be built first."""
    assets = programs(lambda line: click.echo(line, err=True))
    if isinstance(assets, Missing):
        yield Unmeasured("10,000 custom resources", assets.reason)
        return
    with fleet_in_cluster(assets, pace) as fleet:
        contest = ClusterContest(fleet, opponents)
        yield Survey(lambda: contest.at_rest(min(_STARTS, pace.rounds)))
        yield Survey(lambda: contest.edited(pace.number(EDITS)))


@dataclass(frozen=True, slots=True)
class FleetInCluster:
    """An API server with a fleet, and the folder in which the other processes find both."""

    server: FleetServer
    folder: Path


@contextmanager
def fleet_in_cluster(assets: Assets, pace: Pace) -> Iterator[FleetInCluster]:
    """A new API server with a new fleet, which ends with the block."""
    fleet = new_fleet(max(_FEWEST, pace.number(RESOURCES)))
    with TemporaryDirectory(prefix="setpoint-bench-") as name, serving(assets, Path(name), fleet) as server:
        fleet.write(Path(name, FLEET))
        yield FleetInCluster(server, Path(name))


class ClusterContest:
    """What it takes to follow the fleet: ours, our bare client, and the opponents."""

    def __init__(self, fleet: FleetInCluster, opponents: Opponents) -> None:
        self._server = fleet.server
        self._folder = fleet.folder
        keepers = {TREES: _CLIENT, **{one.name: one.module for one in opponents.keepers}}
        self.starts = {name: f"{module}:start" for name, module in keepers.items()}
        self.storms = {name: f"{module}:storm" for name, module in keepers.items()}

    def at_rest(self, times: int) -> tuple[Reading, ...]:
        """What it takes to list everything, the best of so many starts; and to reconcile it again."""
        ways = {OURS: f"{_OURS}:start", BARE: f"{_CLIENT}:lists", **self.starts}
        started = {name: self.resources(way) for name, way in ways.items()}
        for _ in range(1, times):
            started = {name: _best(found, self.resources(ways[name])) for name, found in started.items()}
        first, later = self.resources(f"{_OURS}:first_look"), self.resources(f"{_OURS}:later_look")
        return (
            *_start_readings(started),
            *self._memory_readings({OURS: later, **{name: started[name] for name in self.starts}}),
            *_look_readings(started[OURS], first, later),
        )

    def edited(self, edits: int) -> tuple[Reading, ...]:
        """What it takes to receive many edits. All processes are ready before the first."""
        found = self.events({OURS: f"{_OURS}:storm", STREAM: f"{_CLIENT}:events", **self.storms}, edits)
        return compared(EVENT, {name: one.cpu / edits for name, one in found.items()}, Unit.SECONDS)

    def events(self, ways: Mapping[str, str], edits: int) -> Mapping[str, Found]:
        """What each of these processes found of so many edits; Disagreement for one that missed an event."""
        orders = {name: self._order(way, events=edits) for name, way in ways.items()}
        with ExitStack() as stack:
            errands = {name: stack.enter_context(Errand(order)) for name, order in orders.items()}
            for errand in errands.values():
                errand.wait_until_ready()
            self._server.edit(edits)
            found = {name: errand.finish() for name, errand in errands.items()}
        for name, one in found.items():
            if one.number != edits or one.requests:
                raise Disagreement(f"{name} heard of {one.number} edits, not of {edits}, in {one.requests} requests")
        return found

    def _memory_readings(self, full: Mapping[str, Found]) -> tuple[Reading, ...]:
        ways = {OURS: f"{_OURS}:later_look", **self.starts}
        empty = {name: self.resources(way, _NOWHERE) for name, way in ways.items()}
        each = {name: (found.memory - empty[name].memory) / found.number for name, found in full.items()}
        return (
            *compared(MEMORY_EACH, each, Unit.BYTES),
            *compared(MEMORY_ALL, {name: found.memory for name, found in full.items()}, Unit.BYTES),
        )

    def resources(self, way: str, namespace: str | None = None) -> Found:
        """What a process found that lists the fleet; Disagreement when it missed a resource."""
        order = self._order(way, namespace)
        found = carry_out(order)
        if found.number != order.expected:
            raise Disagreement(f"{way} knows of {found.number} resources, not of {order.expected}")
        return found

    def _order(self, way: str, namespace: str | None = None, events: int = 0) -> Order:
        fleet = self._server.fleet
        resource_types = tuple(Sort(kind.group, kind.version, kind.kind, kind.plural) for kind in fleet.served)
        expected = fleet.count if namespace is None else 0
        since = self._server.position() if events else ""
        return Order(way, str(self._folder), resource_types, expected, namespace, since, events)


def _best(one: Found, other: Found) -> Found:
    """What either took at least."""
    cpu, wall, memory = min(one.cpu, other.cpu), min(one.wall, other.wall), min(one.memory, other.memory)
    return msgspec.structs.replace(one, cpu=cpu, wall=wall, memory=memory)


def _start_readings(started: Mapping[str, Found]) -> tuple[Reading, ...]:
    ours, *others = compared(START_CPU, {name: found.cpu for name, found in started.items()}, Unit.SECONDS)
    return (
        ours,
        Reading(START_CPU, BEYOND, started[OURS].cpu - started[BARE].cpu, Unit.SECONDS),
        *others,
        *compared(START_WALL, {name: found.wall for name, found in started.items()}, Unit.SECONDS),
    )


def _look_readings(start: Found, first: Found, later: Found) -> tuple[Reading, ...]:
    looks = {FIRST_LOOK: first, LATER_LOOK: later}
    for name, look in looks.items():
        if look.requests:
            raise Disagreement(f"{name} took {look.requests} requests to the cluster, and none is needed")
    return (
        *compared(LOOK, {name: look.cpu / look.number for name, look in looks.items()}, Unit.SECONDS),
        *(Reading(REQUESTS, name, found.requests, Unit.NUMBER) for name, found in {OURS_START: start, **looks}.items()),
    )
