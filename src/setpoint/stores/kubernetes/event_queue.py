"""Event records behind the work: correlated per resource, queued, and sent in batches while steps go on.

No step waits for an event, and none fails because of one: an event that cannot be written is lost, and counted. The
rules of correlation are those of client-go: equal records are counted; many that differ in their message alone are
combined into one; and a resource with too many of them is throttled. Routine records, of edits that were carried out,
are gathered for a minute, and are one Event for each resource.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import Context
from dataclasses import field
from http import HTTPStatus
from typing import Final, Generic, TypeVar

from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.core.backoff import exponential_delay
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.engine.ports import Clock, EventRecord
from setpoint.errors import RemoteRefused, RemoteUnavailable, SetpointError

# Names of objects may have 253 characters: room for a dot and sixteen hex digits.
_LONGEST_NAME: Final = 236
# As client-go: more messages than this of one reason within the interval are combined.
_MAX_SIMILAR: Final = 10
_SIMILAR_SECONDS: Final = 600.0
_COMBINED: Final = "(combined from similar events): "
# As client-go: so many records of one resource at once, and then one in so many seconds.
_BURST: Final = 25
_REFILL_SECONDS: Final = 300.0
# What is remembered: of so many resources and reasons, and of so many Events.
MAX_REMEMBERED: Final = 4096
# So many Events may wait. Where there are more, the API server cannot keep up, and the newest are lost.
_MAX_QUEUED: Final = 4096
# How long a batch is gathered: what is recorded meanwhile is merged with it.
_GATHER_SECONDS: Final = 0.5
# How long routine records are gathered, and of so many resources at most: with more, they are sent earlier.
ROUTINE_SECONDS: Final = 60.0
_MAX_ROUTINE: Final = 1024
# In the place of its message, in the name of an Event that is updated with each further record.
_ROUTINE: Final = "(routine)"
_MAX_CONCURRENT: Final = 4
# How often an Event is sent while the API server does not answer, and the pauses in between.
_ATTEMPTS: Final = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
# How long no Event is sent to a namespace that takes none: mostly it is being deleted, with all of its resources.
_FORBIDDEN_SECONDS: Final = 10.0
# How long a shutdown waits for what is queued.
FLUSH_SECONDS: Final = 5.0
_WARNING_SECONDS: Final = 60.0

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event record to be sent: the name of its Event, when it was first recorded, and how often it was sent."""

    name: str
    record: EventRecord
    first_at: str
    attempts: int = 0

    @staticmethod
    def of(record: EventRecord, text: str) -> "QueuedEvent":
        """With a name that records of the same resource, reason and `text` share."""
        name = f"{record.ref.name[:_LONGEST_NAME]}.{digest([record.uid, record.reason, text])[:16]}"
        return QueuedEvent(name, record, record.at)

    @property
    def key(self) -> tuple[str, str]:
        """The namespace and the name of the Event."""
        return self.record.ref.namespace, self.name

    def merged(self, newer: "QueuedEvent") -> "QueuedEvent":
        """One record for both: of the newer, with the count of both."""
        record = replace(newer.record, count=self.record.count + newer.record.count)
        return replace(newer, record=record, first_at=self.first_at)


K = TypeVar("K")
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """A mapping of at most `MAX_REMEMBERED` entries: the one that was not used for the longest time goes first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of `key`, which is used now; None when it is not there."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: K, value: V) -> None:
        """Sets the value of `key`, which is used now."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MAX_REMEMBERED:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Removes `key`."""
        self._entries.pop(key, None)


@dataclass(slots=True)
class _SimilarEvents:
    """The records of one resource and reason that follow each other closely, by their messages."""

    last: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Allowance:
    """How many records of one resource may be sent now."""

    tokens: float
    at: float


class EventCorrelator:
    """Decides what becomes of a record: an Event of its own, one with similar records, or none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._similar: RecentlyUsed[tuple[str, ...], _SimilarEvents] = RecentlyUsed()
        self._allowances: RecentlyUsed[tuple[str, ...], _Allowance] = RecentlyUsed()

    def correlate(self, record: EventRecord) -> QueuedEvent | None:
        """The Event to send for `record`; None while its resource has too many."""
        now = self._clock.monotonic()
        if not self._is_allowed(record, now):
            return None
        if record.is_routine:
            return QueuedEvent.of(record, _ROUTINE)
        key = (*record.ref, record.uid, record.severity, record.reason)
        similar = self._similar.get(key)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = _SimilarEvents(now)
            self._similar.put(key, similar)
        similar.last = now
        similar.messages.add(digest(record.message)[:16])
        if len(similar.messages) <= _MAX_SIMILAR:
            return QueuedEvent.of(record, record.message)
        similar.messages.pop()
        return QueuedEvent.of(replace(record, message=_COMBINED + record.message), _COMBINED)

    def _is_allowed(self, record: EventRecord, now: float) -> bool:
        key = (*record.ref, record.uid)
        found = self._allowances.get(key)
        if found is None:
            found = _Allowance(_BURST, now)
            self._allowances.put(key, found)
        found.tokens = min(_BURST, found.tokens + (now - found.at) / _REFILL_SECONDS)
        found.at = now
        if found.tokens < 1:
            return False
        found.tokens -= 1
        return True


class LostEvents:
    """Counts events that were not written, and warns of them: at once, then at most once a minute."""

    def __init__(self) -> None:
        self._count = 0
        self._newest: tuple[EventRecord, str] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, record: EventRecord, why: str) -> None:
        """One more is lost."""
        self._count += record.count
        self._newest = record, why
        if self._timer is None:
            self.report()
            self._timer = asyncio.get_running_loop().call_later(_WARNING_SECONDS, self._on_timer)

    def report(self) -> None:
        """Warns of those that were lost since the last warning."""
        if self._newest is None:
            return
        (record, why), count = self._newest, self._count
        self._newest, self._count = None, 0
        extra = {"lost": count, "ref": str(record.ref), "reason": record.reason, "why": why}
        _log.warning("events not written", extra=extra)

    def close(self) -> None:
        """The last warning."""
        if self._timer is not None:
            self._timer.cancel()
        self.report()

    def _on_timer(self) -> None:
        self._timer = None
        if self._newest is not None:
            self.report()
            self._timer = asyncio.get_running_loop().call_later(_WARNING_SECONDS, self._on_timer)


class EventQueue:
    """A bounded queue of Events. `put` never waits; a task of its own sends them, in batches, after the steps."""

    def __init__(self, send: Callable[[QueuedEvent], Awaitable[None]], clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._correlator = EventCorrelator(clock)
        # The namespaces in which an Event was forbidden, each with the time until which none is sent.
        self._forbidden: RecentlyUsed[str, float] = RecentlyUsed()
        self._queued: dict[tuple[str, str], QueuedEvent] = {}
        # Routine events, and the timer that queues them.
        self._routine: dict[tuple[str, str], QueuedEvent] = {}
        self._routine_timer: asyncio.TimerHandle | None = None
        self._lost = LostEvents()
        self._task: asyncio.Task[None] | None = None
        # Set while a caller waits until all is sent: then nothing is gathered.
        self._hurry = asyncio.Event()

    def put(self, record: EventRecord) -> None:
        """Queues a record; an equal one that still waits is counted."""
        event = self._correlator.correlate(record)
        if event is None:
            self._lost.add(record, "there are too many events of this resource")
            return
        if record.is_routine:
            self._gather(event)
        else:
            self._enqueue(event)

    def _gather(self, event: QueuedEvent) -> None:
        """Queues a routine event when its time has come."""
        known = self._routine.get(event.key)
        self._routine[event.key] = event if known is None else known.merged(event)
        if len(self._routine) >= _MAX_ROUTINE:
            self._end_gathering()
        elif self._routine_timer is None:
            # In a context of its own: it outlives the step that recorded the event, and the fences of that.
            loop = asyncio.get_running_loop()
            self._routine_timer = loop.call_later(ROUTINE_SECONDS, self._end_gathering, context=Context())

    def _end_gathering(self) -> None:
        """Queues all routine events."""
        if self._routine_timer is not None:
            self._routine_timer.cancel()
            self._routine_timer = None
        events, self._routine = self._routine, {}
        for event in events.values():
            self._enqueue(event)

    def _enqueue(self, event: QueuedEvent) -> None:
        known = self._queued.pop(event.key, None)
        if known is None and len(self._queued) >= _MAX_QUEUED:
            self._lost.add(event.record, "too many events wait for the API server")
            return
        self._queued[event.key] = event if known is None else known.merged(event)
        if self._task is None or self._task.done():
            # In a context of its own, as above.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Returns when everything that was queued is sent or lost, or after so many seconds."""
        self._end_gathering()
        if self._task is None or self._task.done():
            return
        self._hurry.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(self._task)
        finally:
            self._hurry.clear()

    async def close(self) -> None:
        """Sends what is queued, as far as there is time; warns of the rest."""
        await self.flush()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for event in self._queued.values():
            self._lost.add(event.record, "the process ended")
        self._queued.clear()
        self._lost.close()

    async def _run(self) -> None:
        # Where calls have to wait, those of steps go first, as with callers that failed.
        with on_behalf_of("events", failed=True):
            await self._pause(_GATHER_SECONDS)
            failures = 0
            while self._queued:
                batch = list(self._queued.values())
                self._queued.clear()
                is_unanswered = await self._send_all(batch)
                failures = failures + 1 if is_unanswered else 0
                if self._queued:
                    pause = exponential_delay(failures - 1, _FIRST_PAUSE, _LONGEST_PAUSE) if failures else 0
                    await self._pause(max(pause, _GATHER_SECONDS))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _send_all(self, batch: list[QueuedEvent]) -> bool:
        """Sends a batch, a few at a time; whether some were not answered, and are queued again."""
        waiting = iter(batch)
        senders = [self._send_each(waiting) for _ in range(min(_MAX_CONCURRENT, len(batch)))]
        return any(await asyncio.gather(*senders))

    async def _send_each(self, waiting: Iterator[QueuedEvent]) -> bool:
        is_unanswered = False
        for event in waiting:
            namespace = event.record.ref.namespace
            if self._clock.monotonic() < (self._forbidden.get(namespace) or 0.0):
                self._lost.add(event.record, f"events in the namespace {namespace} were forbidden a moment ago")
                continue
            try:
                await self._send(event)
            except RemoteUnavailable as error:
                is_unanswered = True
                self._again(event, error)
            except SetpointError as error:
                # The status says the same.
                self._lost.add(event.record, str(error))
                if isinstance(error, RemoteRefused) and error.status == HTTPStatus.FORBIDDEN:
                    self._forbidden.put(namespace, self._clock.monotonic() + _FORBIDDEN_SECONDS)
        return is_unanswered

    def _again(self, event: QueuedEvent, error: SetpointError) -> None:
        if event.attempts + 1 >= _ATTEMPTS:
            self._lost.add(event.record, str(error))
            return
        event = replace(event, attempts=event.attempts + 1)
        newer = self._queued.pop(event.key, None)
        self._queued[event.key] = event if newer is None else event.merged(newer)
