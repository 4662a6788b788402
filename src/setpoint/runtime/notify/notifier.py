"""Delivery of notifications, behind the work: a queue for each receiver, retries, and what is on record as sent.

By levels, not by events: what a receiver knows is compared with what is so now. A queue holds resources, each once, and
one that waits long is told of as it is then.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from setpoint.clients.google.errors import retry_after
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import Clock
from setpoint.engine.requeue import error_backoff
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import RemoteError, SetpointError, StoreError
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.notify.ledger import Ledger
from setpoint.runtime.notify.messages import (
    SIGNATURE_HEADER,
    Incident,
    MessageType,
    Notification,
    encode,
    signature,
)
from setpoint.runtime.notify.problems import PROBLEMS, Problem, problem_of
from setpoint.runtime.notify.receivers import Receiver
from setpoint.runtime.sharding.replica import ControllerReplica

_log: Final = logging.getLogger(__name__)
# A receiver that accepts a connection and says nothing is given up after this.
SEND_SECONDS: Final = 10.0
MAX_PENDING: Final = 10_000
_LONGEST_DELAY: Final = 300.0
# How often a replica looks whether it holds other shards, and a full queue is filled again.
_LOOK_SECONDS: Final = 10.0
_RETRIED: Final = frozenset({408, 425, 429})


class DeliveryResult(StrEnum):
    """What became of an attempt to send a message."""

    SENT = "sent"
    # To be tried again.
    FAILED = "failed"
    # The receiver wants no such message: it is not tried again before the problem changes.
    REFUSED = "refused"


class ProblemIndex(Protocol):
    """What resources there are, and the problem of each, as a running process knows it."""

    def problem(self, ref: ResourceRef) -> Problem | None:
        """The problem of a resource; None for one that is gone."""
        ...

    def with_problems(self) -> Iterable[ResourceRef]:
        """The resources with a problem to tell of."""
        ...

    def holds(self, ref: ResourceRef) -> bool:
        """Whether this process tells of the resource: it may be another replica's."""
        ...


@dataclass(slots=True)
class Delivery:
    """The messages of one receiver."""

    receiver: Receiver
    world: ProblemIndex
    read: Callable[[ResourceRef], Awaitable[Resource | None]]
    http: HttpClient
    clock: Clock
    ledger: Ledger
    secret: bytes | None = None
    counts: Counter[DeliveryResult] = field(default_factory=Counter)
    # Some did not fit, and are looked for again.
    is_overfull: bool = False
    # Nothing is under way.
    is_idle: bool = True
    _pending: dict[ResourceRef, None] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pending(self) -> int:
        """How many resources wait to be told of."""
        return len(self._pending)

    def add(self, ref: ResourceRef) -> None:
        """Queues a resource whose problem may have changed."""
        if len(self._pending) >= MAX_PENDING and ref not in self._pending:
            self.is_overfull = True
            return
        self._pending[ref] = None
        self._wake.set()

    async def run(self, jitter: Callable[[], float] = random.random) -> None:
        """Sends until it is cancelled. No error of a receiver ends it, and none reaches a step."""
        backoff = error_backoff(jitter, longest=_LONGEST_DELAY)
        while True:
            if not self._pending:
                self.is_idle = True
                self._wake.clear()
                await self._wake.wait()
            self.is_idle = False
            ref = next(iter(self._pending))
            del self._pending[ref]
            try:
                delay = await self._tell(ref)
            except SetpointError as error:
                # Of the store, or of the record: nothing is lost, as it is tried again.
                _log.warning(
                    "notification failed", extra={"receiver": self.receiver.name, "ref": str(ref), "why": str(error)}
                )
                delay = 0.0
            if delay is None:
                backoff.reset()
                continue
            # It is told of next, as it is then.
            self._pending = {ref: None, **self._pending}
            await self.clock.sleep(max(delay, backoff.next()))

    async def _tell(self, ref: ResourceRef) -> float | None:
        """The seconds for which the receiver asked before the next attempt, at least; None when this was done."""
        message = await self._due(ref)
        if message is None:
            return None
        response = await self._send(message)
        result = _result_of(response)
        self.counts[result] += 1
        if result is DeliveryResult.FAILED:
            self._log_failure(message, response)
            return 0.0 if response is None else retry_after(response, datetime.fromisoformat(self.clock.now())) or 0.0
        if result is DeliveryResult.REFUSED:
            self._log_failure(message, response)
        # What was refused is on record as well: a message that it is over would be refused, too.
        record = self.ledger.raised if message.type is MessageType.RAISED else self.ledger.resolved
        await record(self.receiver.id, message.incident)
        # One problem may have taken the place of another.
        self.add(ref)
        return None

    def is_due(self, ref: ResourceRef) -> bool:
        """Whether what the receiver knows of a resource is not what is so, as far as this process tells of it."""
        if not (self.world.holds(ref) and self.ledger.is_held(ref)):
            return False
        told, problem = self.ledger.told(self.receiver.id, ref), self.world.problem(ref)
        return problem is not Problem.UNDECIDED and self._wanted(ref) is not (None if told is None else told.problem)

    def _wanted(self, ref: ResourceRef) -> Problem | None:
        problem = self.world.problem(ref)
        return problem if problem in self.receiver.problems else None

    async def _due(self, ref: ResourceRef) -> Notification | None:
        """The message that the receiver lacks, if any."""
        if not self.is_due(ref):
            return None
        told, wanted = self.ledger.told(self.receiver.id, ref), self._wanted(ref)
        resource = await self.read(ref)
        if told is not None:
            # Of its own kind: another problem begins after it.
            return Notification.of(MessageType.RESOLVED, told, resource, self.clock.now())
        assert wanted is not None
        if resource is None or problem_of(resource) is not wanted:
            # The watch is behind: its event comes.
            return None
        return Notification.of(MessageType.RAISED, Incident.of(resource, wanted), resource, self.clock.now())

    async def _send(self, message: Notification) -> HttpResponse | None:
        """The response; None without one."""
        encoded = encode(message, self.receiver.format, self.receiver.source)
        headers = dict(encoded.headers)
        if self.secret is not None:
            at = int(datetime.fromisoformat(self.clock.now()).timestamp())
            headers[SIGNATURE_HEADER] = signature(encoded.body, self.secret, at)
        request = HttpRequest("POST", self.receiver.url, headers, encoded.body, seconds=SEND_SECONDS)
        with suppress(RemoteError):
            return await self.http.send(request)
        return None

    def _log_failure(self, message: Notification, response: HttpResponse | None) -> None:
        why = "no answer" if response is None else f"status {response.status}"
        about = {"receiver": self.receiver.name, "ref": str(message.incident.ref), "why": why}
        _log.warning("notification not accepted", extra=about)


def _result_of(response: HttpResponse | None) -> DeliveryResult:
    if response is None or response.status >= 500 or response.status in _RETRIED:
        return DeliveryResult.FAILED
    return DeliveryResult.SENT if response.status < 300 else DeliveryResult.REFUSED


class Notifier:
    """Tells receivers of problems that begin and end. It only reads, and no step waits for it."""

    def __init__(self, deliveries: Sequence[Delivery], world: ProblemIndex, ledger: Ledger, clock: Clock) -> None:
        self.deliveries = tuple(deliveries)
        self._world, self._ledger, self._clock = world, ledger, clock

    def handle_event(self, event: ResourceEvent) -> None:
        """A resource changed: it is queued if its problem did, or if it is gone."""
        before = Problem.NONE if event.before is None else event.before.problem
        after = Problem.NONE if event.after is None else event.after.problem
        if before is not after and not event.is_initial:
            self._add(event.ref)

    async def run(self, synced: Awaitable[None], held: Callable[[], frozenset[int]]) -> None:
        """Runs until it is cancelled. `held` are the parts of the ledger that are this replica's now."""
        await synced
        async with asyncio.TaskGroup() as group:
            for one in self.deliveries:
                group.create_task(one.run(), name=f"notify {one.receiver.name}")
            before = frozenset[int]()
            while True:
                before = await self._look(before, held())
                await self._clock.sleep(_LOOK_SECONDS)

    async def _look(self, before: frozenset[int], now: frozenset[int]) -> frozenset[int]:
        """Compares all resources with what receivers know, if other parts are held, or a queue was full."""
        try:
            await self._ledger.hold(now)
        except StoreError as error:
            _log.warning("notifications wait", extra={"why": str(error)})
            return before
        if now != before or any(one.is_overfull and not one.pending for one in self.deliveries):
            self._compare_all()
        return now

    def _compare_all(self) -> None:
        for one in self.deliveries:
            one.is_overfull = False
            # What is told already would fill a queue that is bounded.
            for ref in filter(one.is_due, (*self._world.with_problems(), *self._ledger.open_of(one.receiver.id))):
                one.add(ref)

    def _add(self, ref: ResourceRef) -> None:
        for one in self.deliveries:
            one.add(ref)

    def attempts(self) -> Iterator[tuple[str, str, int]]:
        """How many attempts there were, by receiver and result."""
        for one in self.deliveries:
            yield from ((one.receiver.name, result.value, one.counts[result]) for result in DeliveryResult)

    def pending(self) -> Iterator[tuple[str, int]]:
        """How many resources wait, by receiver."""
        return ((one.receiver.name, one.pending) for one in self.deliveries)


@dataclass(frozen=True, slots=True)
class IndexedProblems:
    """The problems of a running process: those of its index, of what it holds."""

    index: ResourceIndex
    replica: ControllerReplica | None

    def problem(self, ref: ResourceRef) -> Problem | None:
        """See ProblemIndex."""
        entry = self.index.get(ref)
        return None if entry is None else entry.problem

    def with_problems(self) -> Iterable[ResourceRef]:
        """See ProblemIndex."""
        return [ref for ref in self.index if self.problem(ref) in PROBLEMS]

    def holds(self, ref: ResourceRef) -> bool:
        """See ProblemIndex."""
        return self.replica is None or self.replica.holds(ref)

    def part_of(self, ref: ResourceRef) -> int:
        """The part of the ledger that a resource belongs to."""
        return 0 if self.replica is None else self.replica.shard_of(ref)

    def held_parts(self) -> frozenset[int]:
        """The parts of the ledger that this process holds."""
        return frozenset({0}) if self.replica is None else self.replica.held_shards
