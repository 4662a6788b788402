"""Virtual time in which the computing of the process takes time as well: as much as it takes of the CPU.

So a phase lasts as long as on a machine with a core for each process, however busy this machine is.
"""

import time
from collections.abc import Callable
from selectors import SelectorKey

from simulation.virtual_time import VirtualLoop


class ComputingLoop(VirtualLoop):
    """A virtual loop whose time passes with the CPU time of the process, besides its jumps from timer to timer.

    `longest_block` is the longest time in which the loop did not get to its timers, in seconds.
    """

    def __init__(self) -> None:
        self.longest_block = 0.0
        self._jumped_at = self._polled_at = time.process_time()
        super().__init__()

    def time(self) -> float:
        """Since the start, in seconds."""
        return self._now + time.process_time() - self._jumped_at

    def jump_to(self, when: float) -> None:
        """The time is `when` now."""
        super().jump_to(when)
        self._jumped_at = time.process_time()

    def next_events(
        self, timeout: float | None, wait: Callable[[float], list[tuple[SelectorKey, int]]]
    ) -> list[tuple[SelectorKey, int]]:
        """See VirtualLoop."""
        self.longest_block = max(self.longest_block, time.process_time() - self._polled_at)
        found = super().next_events(timeout, wait)
        self._polled_at = time.process_time()
        return found
