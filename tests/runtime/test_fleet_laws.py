"""Several replicas over one store: what holds for every order of events."""

import asyncio
from enum import Enum
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.fleet import LEASE, MARGIN, Fleet, Process, play
from tests.runtime.simulated_network import NetworkFault

pytestmark = [pytest.mark.laws, pytest.mark.slow]

NAMES = tuple("abcdef")
MOST = 4
# So long a request may still be executed though no answer comes; after that no more are sent.
UNANSWERED_SECONDS = 14.0


class EventType(Enum):
    START = "one more process, if there are not too many"
    STOP = "SIGTERM"
    KILL = "kill -9"
    PAUSE = "SIGSTOP"
    RESUME = "SIGCONT"
    DISCONNECT = "the store cannot be reached"
    RECONNECT = "the store can be reached again"
    EDIT = "an author edits a gadget"


class Event(NamedTuple):
    """An event of one process, the first, the second and so on, as far as there are any."""

    what: EventType
    number: int
    # What happens to requests of a process that is disconnected.
    how: NetworkFault


_events = st.builds(Event, st.sampled_from(EventType), st.integers(0, MOST - 1), st.sampled_from(NetworkFault))
# Often at the same moment, often right when a lease expires.
_pauses = st.sampled_from((0.0, 0.02, 0.1, 1.0, 4.9, 5.0, 9.9, 10.0, 14.0, 15.0, 16.0, 20.0, 60.0)) | st.floats(0, 20)
# As often long as short: left alone, hypothesis makes lists of five.
schedules = st.integers(0, 14).flatmap(lambda size: st.lists(st.tuples(_events, _pauses), min_size=size, max_size=size))


class ScheduleRun:
    """A run of a schedule. Every shard has to have a holder at `settled_by`, unless another event comes before."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.settled_by = LEASE + MARGIN
        self._number = 0
        self._actions = {
            EventType.STOP: fleet.begin_to_stop,
            EventType.KILL: fleet.kill,
            EventType.PAUSE: fleet.pause,
            EventType.RESUME: fleet.resume,
            EventType.RECONNECT: fleet.reconnect,
        }

    async def perform(self, event: Event) -> None:
        match event.what:
            case EventType.EDIT:
                await self.fleet.edit(NAMES[event.number])
            case EventType.START:
                self.start()
            case EventType.DISCONNECT:
                for process in self._running[event.number : event.number + 1]:
                    self._postpone(
                        UNANSWERED_SECONDS if event.how in (NetworkFault.UNANSWERED, NetworkFault.SLOW) else 0.0
                    )
                    self.fleet.disconnect(process.name, event.how)
            case what:
                for process in self._running[event.number : event.number + 1]:
                    self._postpone()
                    self._actions[what](process.name)

    def start(self) -> None:
        self._postpone()
        if len(self._running) < MOST:
            self._number += 1
            self.fleet.start(f"process-{self._number}")

    def repair_all(self) -> None:
        """Resumes and reconnects every process, and starts one if there is none."""
        self._postpone()
        for process in self._running:
            self.fleet.resume(process.name)
            self.fleet.reconnect(process.name)
        if not self.fleet.live:
            self.start()

    async def watch(self) -> None:
        while True:
            now = self.fleet.clock.monotonic()
            if now >= self.settled_by and self.fleet.live and not self.fleet.is_every_shard_held:
                holders = [self.fleet.holders(shard) for shard in range(self.fleet.shards)]
                self.fleet.violations.append(f"{now:.3f}: settled by {self.settled_by:.3f}, and held by {holders}")
                return
            await self.fleet.clock.sleep(0.25)

    def _postpone(self, more: float = 0.0) -> None:
        self.settled_by = max(self.settled_by, self.fleet.clock.monotonic() + LEASE + MARGIN + more)

    @property
    def _running(self) -> list[Process]:
        return [one for one in self.fleet.processes.values() if not (one.is_killed or one.is_leaving)]


@settings(max_examples=60)
@given(schedules, st.integers(1, 5), st.integers(0, 1000))
def test_a_replica_writes_only_shards_it_holds_every_shard_has_a_holder_and_every_edit_is_executed_once(
    schedule: list[tuple[Event, float]], shards: int, seed: int
) -> None:
    async def scenario(fleet: Fleet) -> None:
        schedule_run = ScheduleRun(fleet)
        watching = asyncio.create_task(schedule_run.watch())
        for name in NAMES:
            await fleet.edit(name)
        schedule_run.start()
        for event, pause in schedule:
            await schedule_run.perform(event)
            await fleet.clock.sleep(pause)
        schedule_run.repair_all()
        await fleet.clock.sleep(LEASE + MARGIN + UNANSWERED_SECONDS)
        assert fleet.is_every_shard_held
        await fleet.settled(*NAMES)
        watching.cancel()

        assert fleet.has_executed_every_edit_once

    play(scenario, shards=shards, seed=seed)
