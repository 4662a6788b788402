"""What a cluster answered within the last seconds, in this process: Terraform plans what it has just read, and applies
what it has just planned. Loads no engine."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from setpoint.core.values.deferred_dataclass import dataclass

if TYPE_CHECKING:
    from setpoint.engine.kind import Absent, Present
    from setpoint.kinds.kubernetes_object.remote import DryRunResult
    from setpoint.kinds.kubernetes_object.spec import LiveObject

# How long an answer counts as one of this moment. Terraform has no other work between these calls.
_RECENT_S: Final = 10.0
# A clock that continues while the machine sleeps. Not every system has one.
_SINCE_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True, slots=True)
class RecentForecast:
    """A dry run: the intent that it was made of, by a digest, and its result."""

    intent: str
    result: "DryRunResult"


@dataclass(frozen=True, slots=True)
class RecentAnswer:
    """An object as it was read, decoded or not, and the dry run that started from it, if there was one."""

    # When the request was sent.
    at: float
    observed: "Absent | Present[LiveObject] | bytes"
    forecast: RecentForecast | None = None


class RecentAnswers:
    """The last answer about each object of a cluster, by its location.

    Of an object that this process has begun to write there is none: it is read again whenever it is needed.
    """

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self.now: Final = monotonic or _seconds_since_boot
        self._answers: dict[str, RecentAnswer] = {}
        self._written: set[str] = set()

    def of(self, location: str) -> RecentAnswer | None:
        """The answer about the object at `location`, if it is recent."""
        found = self._answers.get(location)
        return found if found is not None and self._is_recent(found) else None

    def keep(self, location: str, answer: RecentAnswer) -> None:
        """Keeps an answer. Those that are not recent any more are dropped, oldest first."""
        self._answers.pop(location, None)
        if location not in self._written:
            self._answers[location] = answer
        while self._answers and not self._is_recent(next(iter(self._answers.values()))):
            self._answers.pop(next(iter(self._answers)))

    def begin_write(self, location: str) -> None:
        """The object is about to be written: nothing that was answered before is used any more."""
        self._written.add(location)
        self._answers.pop(location, None)

    def _is_recent(self, answer: RecentAnswer) -> bool:
        return self.now() - answer.at < _RECENT_S


def _seconds_since_boot() -> float:
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
