"""Something goes wrong at one of the calls with which leases are had, kept and given back: at each of them in turn."""

import asyncio
import contextvars
from dataclasses import dataclass
from enum import Enum

import pytest

from setpoint.clients.http import HttpRequest
from tests.runtime.fleet import A_LITTLE, LEASE, SLOWEST, Fleet, play
from tests.runtime.wire import Trouble

pytestmark = pytest.mark.slow

NAMES = tuple("abcd")
ENOUGH = 60
LOST, UNANSWERED = Trouble.LOST, Trouble.UNANSWERED


class Fault(Enum):
    """What goes wrong."""

    REFUSED = "nobody is there"
    LOST = "it does not arrive"
    UNANSWERED = "it arrives, and the answer does not"
    SLOW = "it arrives much later"
    KILLED_BEFORE = "the process is killed before it arrives"
    KILLED_AFTER = "the process is killed after it arrives"
    PAUSED = "the process does not run for a minute, and finds the answer then"


TROUBLES = {
    Fault.REFUSED: Trouble.REFUSED,
    Fault.LOST: LOST,
    Fault.UNANSWERED: UNANSWERED,
    Fault.SLOW: Trouble.SLOW,
    Fault.KILLED_BEFORE: LOST,
    Fault.KILLED_AFTER: UNANSWERED,
    Fault.PAUSED: None,
}


@dataclass
class Sabotage:
    """`fault`, at one of the calls of a process. `has_happened` says whether there were that many."""

    fleet: Fleet
    process: str
    fault: Fault
    left: int
    is_over: bool = False

    @property
    def has_happened(self) -> bool:
        return self.left <= 0

    def trouble(self, request: HttpRequest) -> Trouble | None:
        verb = request.url.rpartition("/")[2]
        if self.is_over or verb not in ("acquire", "release"):
            return None
        self.left -= 1
        if self.left != 0:
            return None
        if self.fault in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER):
            self._in(SLOWEST, self._kill)
        if self.fault is Fault.PAUSED:
            self._in(0.0, self._pause)
        return TROUBLES[self.fault]

    def _kill(self) -> None:
        self.fleet.kill(self.process)

    def _pause(self) -> None:
        self.fleet.pause(self.process)
        self._in(60.0, self._resume)

    def _resume(self) -> None:
        self.fleet.resume(self.process)

    def _in(self, seconds: float, happening: object) -> None:
        assert callable(happening)
        asyncio.get_running_loop().call_later(seconds, happening, context=contextvars.Context())


@pytest.mark.parametrize("process", ["elder", "younger"])
@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_at_any_call_does_no_harm_and_is_over_in_time(fault: Fault, process: str) -> None:
    for number in range(1, ENOUGH):
        has_happened = _happens(fault, process, number)
        if not has_happened:
            assert number > 6
            return
    raise AssertionError("there are more calls than that")


def _happens(fault: Fault, process: str, number: int) -> bool:
    """Whether there are so many calls, when one process begins, another joins it, and the first leaves."""
    found: list[Sabotage] = []

    async def scenario(fleet: Fleet) -> None:
        for name in NAMES:
            await fleet.edit(name)
        sabotage = Sabotage(fleet, process, fault, number)
        found.append(sabotage)
        for name, seconds in (("elder", 1.0), ("younger", 7.0)):
            wire = fleet.start(name).wire
            if name == process:
                wire.trouble = sabotage.trouble
            await fleet.clock.sleep(seconds)
        for name in NAMES:
            await fleet.edit(name)
        fleet.begin_to_stop("elder")
        await fleet.clock.sleep(1)
        sabotage.is_over = True
        if fleet.processes["younger"].is_killed:
            fleet.start("third")
        # A minute for whoever may not have run for that long.
        await fleet.clock.sleep(60 + LEASE + A_LITTLE if fault is Fault.PAUSED else LEASE + A_LITTLE + 5)

        assert fleet.is_shared_out
        assert [await fleet.is_settled(name) for name in NAMES] == [True] * len(NAMES)
        assert fleet.is_done_once

    play(scenario, shards=2, seed=number)
    return found[0].has_happened
