"""A fault at one of the requests that acquire, renew and release leases: at each of them in turn."""

import asyncio
import contextvars
from dataclasses import dataclass
from enum import Enum

import pytest

from setpoint.clients.http import HttpRequest
from tests.runtime.fleet import LEASE, MARGIN, SLOWEST, Fleet, play
from tests.runtime.simulated_network import NetworkFault

pytestmark = pytest.mark.slow

NAMES = tuple("abcd")
MOST_REQUESTS = 60
LOST, UNANSWERED = NetworkFault.LOST, NetworkFault.UNANSWERED


class Fault(Enum):
    """The fault of a request, or of the process that sent it."""

    REFUSED = "the connection is refused"
    LOST = "it does not arrive"
    UNANSWERED = "it arrives, and the answer does not"
    SLOW = "it arrives much later"
    KILLED_BEFORE = "the process is killed before it arrives"
    KILLED_AFTER = "the process is killed after it arrives"
    PAUSED = "the process is paused for a minute, and gets the answer then"


NETWORK_FAULTS = {
    Fault.REFUSED: NetworkFault.REFUSED,
    Fault.LOST: LOST,
    Fault.UNANSWERED: UNANSWERED,
    Fault.SLOW: NetworkFault.SLOW,
    Fault.KILLED_BEFORE: LOST,
    Fault.KILLED_AFTER: UNANSWERED,
    Fault.PAUSED: None,
}


@dataclass
class InjectedFault:
    """`fault`, at one of the requests of a process. `has_happened`: whether there were that many."""

    fleet: Fleet
    process: str
    fault: Fault
    left: int
    is_over: bool = False

    @property
    def has_happened(self) -> bool:
        return self.left <= 0

    def network_fault(self, request: HttpRequest) -> NetworkFault | None:
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
        return NETWORK_FAULTS[self.fault]

    def _kill(self) -> None:
        self.fleet.kill(self.process)

    def _pause(self) -> None:
        self.fleet.pause(self.process)
        self._in(60.0, self._resume)

    def _resume(self) -> None:
        self.fleet.resume(self.process)

    def _in(self, seconds: float, action: object) -> None:
        assert callable(action)
        asyncio.get_running_loop().call_later(seconds, action, context=contextvars.Context())


@pytest.mark.parametrize("process", ["elder", "younger"])
@pytest.mark.parametrize("fault", list(Fault))
def test_replicas_recover_from_a_fault_at_any_lease_request(fault: Fault, process: str) -> None:
    for number in range(1, MOST_REQUESTS):
        has_happened = _has_request(fault, process, number)
        if not has_happened:
            assert number > 6
            return
    raise AssertionError("there are more requests than that")


def _has_request(fault: Fault, process: str, number: int) -> bool:
    """Whether there are so many requests when one process starts, another joins it, and the first leaves."""
    found: list[InjectedFault] = []

    async def scenario(fleet: Fleet) -> None:
        for name in NAMES:
            await fleet.edit(name)
        injected = InjectedFault(fleet, process, fault, number)
        found.append(injected)
        for name, seconds in (("elder", 1.0), ("younger", 7.0)):
            link = fleet.start(name).link
            if name == process:
                link.fault = injected.network_fault
            await fleet.clock.sleep(seconds)
        for name in NAMES:
            await fleet.edit(name)
        fleet.begin_to_stop("elder")
        await fleet.clock.sleep(1)
        injected.is_over = True
        # A process that is killed for its last request is killed by then.
        await fleet.clock.sleep(SLOWEST)
        if fleet.processes["younger"].is_killed:
            fleet.start("third")
        # A minute for a process that may have been paused for that long.
        await fleet.clock.sleep(60 + LEASE + MARGIN if fault is Fault.PAUSED else LEASE + MARGIN + 5)

        assert fleet.is_every_shard_held
        assert [await fleet.is_settled(name) for name in NAMES] == [True] * len(NAMES)
        assert fleet.has_executed_every_edit_once

    play(scenario, shards=2, seed=number)
    return found[0].has_happened
