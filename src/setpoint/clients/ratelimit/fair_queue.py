"""Fair queue: callers are served round-robin, and callers whose last step failed get at most a quarter of the calls."""

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar


@dataclass(frozen=True, slots=True)
class Caller:
    """A resource that calls: any key that stands for it, and whether its last step failed."""

    key: Hashable
    failed: bool = field(default=False, kw_only=True)


caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


class on_behalf_of:  # noqa: N801 - a context manager is called like a function
    """Every call made inside, in this task and in those it starts, is a call of `key`."""

    __slots__ = ("_caller", "_token")

    def __init__(self, key: Hashable, *, failed: bool) -> None:
        self._caller = Caller(key, failed=failed)
        self._token: Token[Caller | None] | None = None

    def __enter__(self) -> None:
        self._token = caller.set(self._caller)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        caller.reset(self._token)


T = TypeVar("T")

# So many turns of the others for each turn of those whose last step failed: they get a quarter.
HEALTHY_PER_FAILED: Final = 3


@dataclass(slots=True)
class _CallerQueue(Generic[T]):
    """What one caller waits with. The lower its ticket, the sooner its turn."""

    ticket: int
    waiting: deque[T]


class RoundRobin(Generic[T]):
    """Callers in the order of their turns. After its turn a caller with more to say goes to the end."""

    __slots__ = ("_callers",)

    def __init__(self) -> None:
        self._callers: OrderedDict[Hashable, _CallerQueue[T]] = OrderedDict()

    def __len__(self) -> int:
        """How many callers wait."""
        return len(self._callers)

    def add(self, key: Hashable, call: T, ticket: int) -> None:
        """A call waits for its turn. `ticket` counts for a caller that is new here."""
        found = self._callers.get(key)
        if found is None:
            self._callers[key] = _CallerQueue(ticket, deque((call,)))
        else:
            found.waiting.append(call)

    @property
    def next_ticket(self) -> int:
        """The ticket of the caller whose turn it is."""
        return next(iter(self._callers.values())).ticket

    @property
    def next(self) -> T:
        """The call whose turn it is."""
        return next(iter(self._callers.values())).waiting[0]

    def take(self, ticket: int) -> T:
        """The call whose turn it is, which is now over; with this ticket its caller waits for the next one."""
        key, calls = next(iter(self._callers.items()))
        call = calls.waiting.popleft()
        if calls.waiting:
            calls.ticket = ticket
            self._callers.move_to_end(key)
        else:
            del self._callers[key]
        return call

    def remove(self, key: Hashable, call: T) -> None:
        """The call does not wait any more, if it still did. No other turn changes for that."""
        found = self._callers.get(key)
        if found is None or call not in found.waiting:
            return
        found.waiting.remove(call)
        if not found.waiting:
            del self._callers[key]

    def clear(self) -> list[T]:
        """Every call that waited; now none does."""
        calls = [call for found in self._callers.values() for call in found.waiting]
        self._callers.clear()
        return calls


class FailedShare:
    """Sees to it that, while others wait, at most every fourth turn goes to those whose last step failed."""

    __slots__ = ("_others",)

    def __init__(self) -> None:
        self._others = 0

    def is_for_failed(self, *, healthy_wait: bool) -> bool:
        """Whether those whose last step failed may have the next turn. If so they have it: nobody starves."""
        return self._others >= HEALTHY_PER_FAILED or not healthy_wait

    def given(self, *, failed: bool) -> None:
        """A turn was given."""
        self._others = 0 if failed else self._others + 1


class FairQueue(Generic[T]):
    """The calls that wait for one budget: two rotations, and the share between them."""

    __slots__ = ("failed", "others", "share")

    def __init__(self) -> None:
        self.others: RoundRobin[T] = RoundRobin()
        self.failed: RoundRobin[T] = RoundRobin()
        self.share = FailedShare()

    def __len__(self) -> int:
        """How many callers wait."""
        return len(self.others) + len(self.failed)

    def rotation(self, *, failed: bool) -> RoundRobin[T]:
        """Where a caller waits."""
        return self.failed if failed else self.others

    @property
    def is_for_failed(self) -> bool:
        """Whether one whose last step failed waits, and may have this queue's next turn."""
        return bool(self.failed) and self.share.is_for_failed(healthy_wait=bool(self.others))


def next_queue(
    queues: Collection[FairQueue[T]], share: FailedShare, *, room_for_failed: bool
) -> tuple[FairQueue[T], RoundRobin[T]] | None:
    """Whose turn it is among queues that share one service: the oldest ticket of the class whose turn it is."""
    others = [queue for queue in queues if queue.others]
    if room_for_failed and share.is_for_failed(healthy_wait=bool(others)):
        failed = [queue for queue in queues if queue.is_for_failed]
        if failed:
            queue = min(failed, key=lambda one: one.failed.next_ticket)
            return queue, queue.failed
    if not others:
        return None
    queue = min(others, key=lambda one: one.others.next_ticket)
    return queue, queue.others
