"""Measures the controllers in turns, on one API server; and before that the plan of Google resources, without one."""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from benchmarks.comparison import BenchmarkSettings
from benchmarks.fleet_server import find_assets
from benchmarks.mixed_fleet import GROUP_SIZE
from benchmarks.peer_packages import Peers
from benchmarks.peers import google_plan
from benchmarks.peers.controllers import KOPF_TUNED, Controller, ControllerRuntime, Kopf, Setpoint, is_supported
from benchmarks.peers.go_controller import CONTROLLER
from benchmarks.peers.phases import RESYNC_SECONDS, Cost, Phase, measure_edits, measure_fleet
from benchmarks.peers.work_server import WorkServer, running_server
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured, compared
from tests.cluster.assets import Assets, Missing
from tests.go_programs import NotBuilt

EDITED: Final = 300
FLEET: Final = 5_000
SUBJECTS: Final = {
    Phase.CREATE: "300 custom resources of 4 KB are created",
    Phase.EDIT: "300 are edited",
    Phase.EDIT_AGAIN: "300 are edited again",
    Phase.CREATE_FLEET: "5,000 are created",
    Phase.RESTART: "the controller is restarted, 5,000 are settled",
    Phase.DRIFT: "1 % of 5,000 drift",
    Phase.RESYNC: "5,000 are resynced, none has changed",
}
CPU: Final = "CPU time"
WALL: Final = "by the clock"
MEMORY: Final = "memory at the end"
PEAK: Final = "memory, the peak until then"
REQUESTS: Final = "requests to the API server, each"
# Controllers take so many turns with the few resources; with the fleet, one.
_TURNS: Final = 2


def subject(phase: Phase, quantity: str) -> str:
    """The heading of the measurements of one quantity."""
    return f"{SUBJECTS[phase]}: {quantity}"


def benchmarks(peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """A plan without an API server, then all on one. What has to be built is built first."""
    _log(f"Terraform with hashicorp's Google provider is not measured: {google_plan.NO_PROVIDER}")
    yield Scenario(lambda: google_plan.planned_resources(max(GROUP_SIZE, settings.scaled(google_plan.RESOURCES))))
    assets = find_assets(_log)
    if isinstance(assets, Missing) or not is_supported():
        reason = (
            assets.reason if isinstance(assets, Missing) else "CPU time and memory are read from the /proc of Linux"
        )
        yield Unmeasured("peers", reason)
        return
    controllers: list[Controller] = [Setpoint()]
    if peers.operator_frameworks:
        try:
            controllers.append(ControllerRuntime(CONTROLLER.built(os.environ, _log)))
        except NotBuilt as why:
            yield Unmeasured("controller-runtime", f"{why}: install Go 1.26")
        controllers += [Kopf(), Kopf(KOPF_TUNED, is_tuned=True)]
    yield Scenario(lambda: measured_in_turns(assets, controllers, settings))


def _log(line: str) -> None:
    click.echo(line, err=True)


def measured_in_turns(
    assets: Assets, controllers: Sequence[Controller], settings: BenchmarkSettings
) -> tuple[Measurement, ...]:
    """The measurements of all phases."""
    with TemporaryDirectory(prefix="setpoint-bench-") as name, running_server(assets, Path(name)) as server:
        costs = _edits(server, controllers, settings.scaled(EDITED), min(_TURNS, settings.rounds))
        seconds = max(30.0, RESYNC_SECONDS * settings.scale)
        fleet: dict[Phase, dict[str, Cost]] = {}
        for controller in controllers:
            _log(f"{controller.name}: {settings.scaled(FLEET):,} resources")
            if not controller.has_fleet:
                _log(f"  not measured: {controller.name} has not come to rest with so many")
                continue
            for phase, cost in _fleet_phases(server, controller, settings.scaled(FLEET), seconds):
                _log(f"  {phase}: {cost}")
                fleet.setdefault(phase, {})[controller.name] = cost
    return tuple(one for phase, found in {**costs, **fleet}.items() for one in measurements(phase, found))


def _fleet_phases(
    server: WorkServer, controller: Controller, number: int, seconds: float
) -> Iterator[tuple[Phase, Cost]]:
    """The phases that a controller has time for: what takes much too long ends its turn, and not the benchmark."""
    try:
        yield from measure_fleet(server, controller, number, seconds)
    except TimeoutError as error:
        _log(f"  {controller.name} was stopped: {error}; this phase and those after it are not measured")


def _edits(
    server: WorkServer, controllers: Sequence[Controller], number: int, turns: int
) -> dict[Phase, dict[str, Cost]]:
    """The best of some turns, by phase and controller."""
    best: dict[Phase, dict[str, Cost]] = {}
    for turn in range(turns):
        for controller in controllers:
            _log(f"{controller.name}: {number} resources, turn {turn + 1} of {turns}")
            for phase, cost in measure_edits(server, controller, number).items():
                _log(f"  {phase}: {cost}")
                found = best.setdefault(phase, {})
                found[controller.name] = cost.best(found.get(controller.name, cost))
    return best


def measurements(phase: Phase, costs: Mapping[str, Cost]) -> tuple[Measurement, ...]:
    """What a phase costs each controller; ratios are relative to the first."""
    requests = [
        Measurement(subject(phase, REQUESTS), f"{name}: {request}", count / cost.number, Unit.PER_OBJECT)
        for name, cost in costs.items()
        for request, count in sorted(cost.requests.items())
    ]
    return (
        *compared(subject(phase, CPU), {name: cost.cpu for name, cost in costs.items()}, Unit.SECONDS),
        *compared(subject(phase, WALL), {name: cost.wall for name, cost in costs.items()}, Unit.SECONDS),
        *compared(subject(phase, MEMORY), {name: cost.memory.now for name, cost in costs.items()}, Unit.BYTES),
        *compared(subject(phase, PEAK), {name: cost.memory.peak for name, cost in costs.items()}, Unit.BYTES),
        *requests,
    )
