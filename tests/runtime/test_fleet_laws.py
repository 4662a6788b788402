"""Many processes over one store: what holds whatever happens to them, in any order."""

import asyncio
from enum import Enum
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.fleet import A_LITTLE, LEASE, Fleet, Process, play
from tests.runtime.wire import Trouble

pytestmark = [pytest.mark.laws, pytest.mark.slow]

NAMES = tuple("abcdef")
MOST = 4
# So long a request may still be carried out though no answer comes; after that nobody asks any more.
UNHEARD = 14.0


class What(Enum):
    START = "one more process, if there are not too many"
    STOP = "SIGTERM"
    KILL = "kill -9"
    PAUSE = "SIGSTOP"
    RESUME = "SIGCONT"
    CUT_OFF = "the store cannot be reached"
    MEND = "it can"
    EDIT = "an author wants something else"


class Event(NamedTuple):
    """Something happens to one of them, the first, the second and so on, as far as there are any."""

    what: What
    who: int
    # What becomes of requests, for those that are cut off.
    how: Trouble


_events = st.builds(Event, st.sampled_from(What), st.integers(0, MOST - 1), st.sampled_from(Trouble))
# Often at the same moment, often right when something runs out.
_pauses = st.sampled_from((0.0, 0.02, 0.1, 1.0, 4.9, 5.0, 9.9, 10.0, 14.0, 15.0, 16.0, 20.0, 60.0)) | st.floats(0, 20)
# As often long as short: left alone, hypothesis makes lists of five.
schedules = st.integers(0, 14).flatmap(lambda size: st.lists(st.tuples(_events, _pauses), min_size=size, max_size=size))


class Course:
    """A schedule as it goes. `calm` is when every shard has to have its holder, if nothing else happens before."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.calm = LEASE + A_LITTLE
        self._number = 0
        self._deeds = {
            What.STOP: fleet.begin_to_stop,
            What.KILL: fleet.kill,
            What.PAUSE: fleet.pause,
            What.RESUME: fleet.resume,
            What.MEND: fleet.mend,
        }

    async def perform(self, event: Event) -> None:
        match event.what:
            case What.EDIT:
                await self.fleet.edit(NAMES[event.who])
            case What.START:
                self.start()
            case What.CUT_OFF:
                for process in self._there[event.who : event.who + 1]:
                    self._stir(UNHEARD if event.how in (Trouble.UNANSWERED, Trouble.SLOW) else 0.0)
                    self.fleet.cut_off(process.name, event.how)
            case what:
                for process in self._there[event.who : event.who + 1]:
                    self._stir()
                    self._deeds[what](process.name)

    def start(self) -> None:
        self._stir()
        if len(self._there) < MOST:
            self._number += 1
            self.fleet.start(f"process-{self._number}")

    def heal(self) -> None:
        """Whoever is there can go on, and there is one at least."""
        self._stir()
        for process in self._there:
            self.fleet.resume(process.name)
            self.fleet.mend(process.name)
        if not self.fleet.live:
            self.start()

    async def watch(self) -> None:
        while True:
            now = self.fleet.clock.monotonic()
            if now >= self.calm and self.fleet.live and not self.fleet.is_shared_out:
                holders = [self.fleet.holders(shard) for shard in range(self.fleet.shards)]
                self.fleet.violations.append(f"{now:.3f}: calm since {self.calm:.3f}, and held by {holders}")
                return
            await self.fleet.clock.sleep(0.25)

    def _stir(self, more: float = 0.0) -> None:
        self.calm = max(self.calm, self.fleet.clock.monotonic() + LEASE + A_LITTLE + more)

    @property
    def _there(self) -> list[Process]:
        return [one for one in self.fleet.processes.values() if not (one.is_killed or one.is_leaving)]


@settings(max_examples=60)
@given(schedules, st.integers(1, 5), st.integers(0, 1000))
def test_nobody_writes_what_is_another_s_every_shard_has_its_holder_and_every_edit_is_carried_out_once(
    schedule: list[tuple[Event, float]], shards: int, seed: int
) -> None:
    async def scenario(fleet: Fleet) -> None:
        course = Course(fleet)
        watching = asyncio.create_task(course.watch())
        for name in NAMES:
            await fleet.edit(name)
        course.start()
        for event, pause in schedule:
            await course.perform(event)
            await fleet.clock.sleep(pause)
        course.heal()
        await fleet.clock.sleep(LEASE + A_LITTLE + UNHEARD)
        assert fleet.is_shared_out
        await fleet.settled(*NAMES)
        watching.cancel()

        assert fleet.is_done_once

    play(scenario, shards=shards, seed=seed)
