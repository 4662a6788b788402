"""Fairness between callers: round-robin, and at most a share of calls and workers for failed callers."""

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable
from contextvars import ContextVar
from dataclasses import field
from typing import Final, Generic, TypeVar

from setpoint.clients.scoped_value import ScopedValue
from setpoint.core.values.deferred_dataclass import dataclass

T = TypeVar("T")

# So many calls of healthy callers for each call of a failed one, while both wait.
HEALTHY_PER_FAILED: Final = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """The resource that a call is made for, by any key; a failed caller if its last step failed, else a healthy one."""

    key: Hashable
    failed: bool = field(default=False, kw_only=True)


current_caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


def on_behalf_of(key: Hashable, *, failed: bool) -> ScopedValue[Caller | None]:
    """Every call made inside, in this task and in those it starts, is a call of `key`."""
    return ScopedValue(current_caller, Caller(key, failed=failed))


class ConcurrencyLimit:
    """At most `size` at once, of which at most three quarters, and at least one, for failed callers.

    Calls that fail often fail by timeout: without this share they would take all the room for a long time.
    """

    __slots__ = ("failed_in_use", "in_use", "max_failed", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.max_failed = max(1, size * 3 // 4)
        self.in_use = 0
        self.failed_in_use = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room at all."""
        return self.in_use >= self.size

    @property
    def has_room_for_failed(self) -> bool:
        """Whether failed callers use less than their share."""
        return self.failed_in_use < self.max_failed

    def has_room(self, *, failed: bool) -> bool:
        """Whether one more may begin."""
        return self.in_use < self.size and (not failed or self.has_room_for_failed)

    def begin(self, *, failed: bool) -> None:
        """One more has begun."""
        self.in_use += 1
        self.failed_in_use += failed

    def end(self, *, failed: bool) -> None:
        """One that had begun has ended."""
        self.in_use -= 1
        self.failed_in_use -= failed


@dataclass(slots=True)
class _CallerQueue(Generic[T]):
    """The waiting calls of one caller. Between queues the lowest ticket is served first."""

    ticket: int
    waiting: deque[T]


class RoundRobin(Generic[T]):
    """Callers in the order in which they are served, one call each. A caller with more calls goes to the end."""

    __slots__ = ("_callers",)

    def __init__(self) -> None:
        self._callers: OrderedDict[Hashable, _CallerQueue[T]] = OrderedDict()

    def __len__(self) -> int:
        """How many callers wait."""
        return len(self._callers)

    def add(self, key: Hashable, call: T, ticket: int) -> None:
        """Queues a call. `ticket` counts if its caller does not wait here yet."""
        found = self._callers.get(key)
        if found is None:
            self._callers[key] = _CallerQueue(ticket, deque((call,)))
        else:
            found.waiting.append(call)

    @property
    def next_ticket(self) -> int:
        """The ticket of the next caller."""
        return next(iter(self._callers.values())).ticket

    @property
    def next(self) -> T:
        """The next call."""
        return next(iter(self._callers.values())).waiting[0]

    def take(self, ticket: int) -> T:
        """Removes the next call; with this ticket its caller waits for its next one."""
        key, calls = next(iter(self._callers.items()))
        call = calls.waiting.popleft()
        if calls.waiting:
            calls.ticket = ticket
            self._callers.move_to_end(key)
        else:
            del self._callers[key]
        return call

    def remove(self, key: Hashable, call: T) -> None:
        """Removes a call if it still waits. The order of the rest stays."""
        found = self._callers.get(key)
        if found is None or call not in found.waiting:
            return
        found.waiting.remove(call)
        if not found.waiting:
            del self._callers[key]

    def clear(self) -> list[T]:
        """Removes every call, and returns them."""
        calls = [call for found in self._callers.values() for call in found.waiting]
        self._callers.clear()
        return calls


class FailedShare:
    """While healthy callers wait, at most every fourth call goes to a failed one."""

    __slots__ = ("_healthy_in_a_row",)

    def __init__(self) -> None:
        self._healthy_in_a_row = 0

    def is_due(self, *, healthy_wait: bool) -> bool:
        """Whether the next call goes to a failed caller, if one waits: so none of them starves."""
        return self._healthy_in_a_row >= HEALTHY_PER_FAILED or not healthy_wait

    def served(self, *, failed: bool) -> None:
        """Counts a call."""
        self._healthy_in_a_row = 0 if failed else self._healthy_in_a_row + 1


class FairQueue(Generic[T]):
    """The calls that wait for one budget: healthy callers, failed callers, and their shares."""

    __slots__ = ("failed", "healthy", "share")

    def __init__(self) -> None:
        self.healthy: RoundRobin[T] = RoundRobin()
        self.failed: RoundRobin[T] = RoundRobin()
        self.share = FailedShare()

    def __len__(self) -> int:
        """How many callers wait."""
        return len(self.healthy) + len(self.failed)

    def callers(self, *, failed: bool) -> RoundRobin[T]:
        """The callers of one class."""
        return self.failed if failed else self.healthy

    def clear(self) -> list[T]:
        """Removes every call, and returns them."""
        return self.healthy.clear() + self.failed.clear()

    @property
    def is_failed_due(self) -> bool:
        """Whether a failed caller waits, and may be next in this queue."""
        return bool(self.failed) and self.share.is_due(healthy_wait=bool(self.healthy))


def next_queue(
    queues: Collection[FairQueue[T]], share: FailedShare, *, room_for_failed: bool
) -> tuple[FairQueue[T], RoundRobin[T]] | None:
    """The next to be served among queues of one service: the lowest ticket of the class that is due."""
    healthy = [queue for queue in queues if queue.healthy]
    if room_for_failed and share.is_due(healthy_wait=bool(healthy)):
        failed = [queue for queue in queues if queue.is_failed_due]
        if failed:
            queue = min(failed, key=lambda one: one.failed.next_ticket)
            return queue, queue.failed
    if not healthy:
        return None
    queue = min(healthy, key=lambda one: one.healthy.next_ticket)
    return queue, queue.healthy
