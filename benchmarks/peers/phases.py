"""The phases of the work, and what each costs a controller."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from benchmarks.comparison import WrongResult
from benchmarks.peers.controllers import Controller, running
from benchmarks.peers.process_usage import Memory, ProcessTree, Reading, wait_until_rest
from benchmarks.peers.work_server import Work, WorkServer

# How long after its start a process resyncs all resources.
RESYNC_SECONDS: Final = 60.0
# Shares of that. A resync follows the start of the caches by 0.9 to 1.1 (controller-runtime), or the first step of the
# resource by 1.0 (kopf, setpoint); the next one of controller-runtime follows at 1.35 or later.
_LONGEST_START: Final = 0.15
_RESYNC_END: Final = 1.2


class Phase(StrEnum):
    """What is measured of one controller."""

    CREATE = "creates"
    EDIT = "edits"
    EDIT_AGAIN = "edits again"
    CREATE_FLEET = "creates of the fleet"
    RESTART = "restart"
    DRIFT = "drift"
    RESYNC = "resync"


@dataclass(frozen=True, slots=True)
class Cost:
    """The CPU seconds and seconds of a phase, the memory at its end, and the requests to the API server."""

    number: int
    cpu: float
    wall: float
    memory: Memory
    requests: Counter[str]

    def __str__(self) -> str:
        return f"{self.cpu:.2f} s CPU, {self.wall:.1f} s by the clock, {self.memory.now / 1e6:.0f} MB"

    def best(self, other: "Cost") -> "Cost":
        """The one with the lower CPU time."""
        return min(self, other, key=lambda cost: cost.cpu)


@dataclass(frozen=True, slots=True)
class PhaseMeter:
    """Measures phases of one process after the other."""

    server: WorkServer
    tree: ProcessTree

    def measure(self, number: int, act: Callable[[], None]) -> Cost:
        """The cost of `act`, CPU time until the process is at rest again; `act` returns when its outcome is there."""
        self.server.audit_log.counts()
        before = self.tree.read()
        act()
        wall = time.monotonic() - before.wall
        rest = wait_until_rest(self.tree)
        return self._cost(number, Reading(rest.cpu - before.cpu, wall))

    def measure_start(self, number: int, begun: float) -> Cost:
        """The cost of a start at the time `begun`, until the process is at rest."""
        rest = wait_until_rest(self.tree)
        return self._cost(number, Reading(rest.cpu, rest.wall - begun))

    def measure_until(self, number: int, end: float) -> Cost:
        """The cost until the time `end`."""
        self.server.audit_log.counts()
        before = self.tree.read()
        time.sleep(max(0.0, end - time.monotonic()))
        return self._cost(number, self.tree.read().since(before))

    def _cost(self, number: int, used: Reading) -> Cost:
        return Cost(number, used.cpu, used.wall, self.tree.memory(), self.server.audit_log.counts())


def measure_edits(server: WorkServer, controller: Controller, number: int) -> dict[Phase, Cost]:
    """Creates `number` resources, and edits each twice."""
    work = server.new_work(number)
    with running(controller, work) as tree:
        meter = PhaseMeter(server, tree)
        wait_until_rest(tree)
        costs = {
            Phase.CREATE: meter.measure(number, work.create),
            Phase.EDIT: meter.measure(number, work.edit),
            Phase.EDIT_AGAIN: meter.measure(number, work.edit),
        }
    require_right(controller, work)
    return costs


def measure_fleet(
    server: WorkServer, controller: Controller, number: int, resync_seconds: float | None = RESYNC_SECONDS
) -> Iterator[tuple[Phase, Cost]]:
    """Creates `number` resources; restarts the controller, lets 1 % drift; and lets all be resynced, unless None.

    TimeoutError for a phase that takes too long: those before it were measured.
    """
    work, drifted = server.new_work(number), max(1, number // 100)
    with running(controller, work) as tree:
        wait_until_rest(tree)
        yield Phase.CREATE_FLEET, PhaseMeter(server, tree).measure(number, work.create)
    server.audit_log.counts()
    begun = time.monotonic()
    with running(controller, work) as tree:
        meter = PhaseMeter(server, tree)
        yield Phase.RESTART, meter.measure_start(number, begun)
        yield Phase.DRIFT, meter.measure(drifted, lambda: work.drift(drifted))
    if resync_seconds is not None:
        yield Phase.RESYNC, _measure_resync(server, controller, work, resync_seconds)
    require_right(controller, work)


def _measure_resync(server: WorkServer, controller: Controller, work: Work, seconds: float) -> Cost:
    """The cost of one resync of all, after a start that is not measured."""
    with running(controller, work, resync=seconds) as tree:
        begun = time.monotonic()
        rest = wait_until_rest(tree)
        if rest.wall - begun < _LONGEST_START * seconds:
            return PhaseMeter(server, tree).measure_until(len(work.names), begun + _RESYNC_END * seconds)
    # The start took too long to be told apart from the resync. kopf writes to each object when it gets its first timer.
    return _measure_resync(server, controller, work, 2 * seconds)


def require_right(controller: Controller, work: Work) -> None:
    """WrongResult unless every ConfigMap is as specified."""
    wrong = work.wrong_config_maps()
    if wrong:
        raise WrongResult(f"{controller.name} left {len(wrong)} ConfigMaps that are not as specified: {wrong[:3]}")
