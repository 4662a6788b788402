"""The stream: changed rows and summaries as server-sent events, in batches, to any number of readers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import field
from itertools import chain
from typing import Final, Protocol, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.viewer import Scope, SeesScope, Viewer
from setpoint.dashboard.api.encoding import encode
from setpoint.dashboard.api.models import NextStepTimes, PlanProgress, StoreTrouble, Summary
from setpoint.dashboard.views.fleet import FleetChanges, FleetRows, joined_rows, json_ids
from setpoint.dashboard.views.next_steps import NextSteps
from setpoint.dashboard.views.rows import id_of
from setpoint.dashboard.views.summary import Summaries, is_news
from setpoint.dashboard.views.visibility import EVERYTHING_VISIBLE, Visibility, visibility_of
from setpoint.engine.ports import Clock

# A connection that broke is noticed by writing to it.
_HEARTBEAT: Final = b": still here\n\n"
_RESET: Final = b"event: reset\ndata: {}\n\n"
# Asking other processes takes at most one part in so many of the time.
_MOST_SHARE: Final = 300

# Sends bytes to the reader; ConnectionError or TimeoutError when it is gone.
Write: TypeAlias = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How many streams there are at once, and how often each sends: seconds between batches of each type."""

    streams: int = 256
    rows_seconds: float = 0.25
    summary_seconds: float = 1.0
    heartbeat_seconds: float = 15.0
    # A reader that takes nothing for so long is gone.
    write_seconds: float = 30.0
    # While there are streams: how often what the process does is looked at, its next steps, and those of others.
    process_seconds: float = 5.0
    steps_seconds: float = 1.0
    others_seconds: float = 15.0


class PlanSource(Protocol):
    """The plan that is being made."""

    def progress(self, sees: SeesScope) -> PlanProgress | None:
        """How far it is, of the scopes that may be shown; None when none is being made."""
        ...


@dataclass(slots=True)
class StreamHub:
    """Everything that streams read, and how many there are. `wakeups` counts how often a stream had something to do."""

    rows: FleetRows
    summaries: Summaries
    steps: NextSteps
    plan: PlanSource
    # Why what streams send may be old; empty while it is not.
    trouble: Callable[[], str]
    clock: Clock
    limits: StreamLimits
    closed: asyncio.Event
    open: int = 0
    wakeups: int = 0
    # Grows when the process did something.
    ticks: int = 0
    # The tokens of the users of the streams, by which other processes are asked.
    tokens: dict[int, str | None] = field(default_factory=dict)

    async def watch_process(self) -> None:
        """Wakes the streams when the process did something, without an end; only while there are streams."""
        before = self.summaries.process.activity
        while True:
            await self.clock.sleep(self.limits.process_seconds)
            after = self.summaries.process.activity if self.open else before
            if after != before:
                self.ticks += 1
                self.rows.notify()
            before = after

    async def watch_steps(self) -> None:
        """Wakes the streams when next steps of this process were set, without an end; only while there are streams."""
        while True:
            await self.clock.sleep(self.limits.steps_seconds)
            if self.open:
                before = self.steps.number
                self.steps.refresh()
                self._notify_after(before)

    async def watch_others(self) -> None:
        """The same with the next steps of other processes. They are asked for all: the longer it takes, the rarer."""
        wait = 0.0
        while True:
            await self.clock.sleep(max(wait, self.limits.steps_seconds))
            if self.open:
                before, began = self.steps.number, self.clock.monotonic()
                await self.steps.ask_others({one for one in self.tokens.values() if one is not None})
                wait = max(self.limits.others_seconds, _MOST_SHARE * (self.clock.monotonic() - began))
                self._notify_after(before)

    def _notify_after(self, before: int) -> None:
        if self.steps.number != before:
            self.rows.notify()


class EventStream:
    """One stream. It remembers the number of the last change that it has sent, and nothing else of the fleet.

    `viewer` is asked with every batch: a session may have ended. `resumed` is the revision that the reader has.
    """

    def __init__(self, hub: StreamHub, viewer: Callable[[], Awaitable[Viewer | None]], resumed: str | None) -> None:
        self._hub = hub
        self._viewer = viewer
        # None: what the reader has is not known, and it has to load everything.
        found = (hub.rows.number, hub.steps.number) if resumed is None else hub.rows.numbers_of(resumed)
        self._sent = None if found is None else found[0]
        self._steps_sent = 0 if found is None else found[1]
        self._visible = EVERYTHING_VISIBLE
        self._summary: Summary | None = None
        self._summary_at = float("-inf")
        self._summary_of = (-1, -1)
        self._plan: PlanProgress | None = None
        self._trouble = ""

    async def run(self, write: Write) -> None:
        """Sends until the reader is gone, its session has ended, or the server closes."""
        hub = self._hub
        hub.open += 1
        hub.steps.refresh()
        try:
            while not hub.closed.is_set():
                # Before anything is read: a change in between is not missed.
                pending = hub.rows.next_change()
                if (viewer := await self._viewer()) is None:
                    return
                hub.tokens[id(self)] = viewer.token
                await write(b"".join([one async for one in self._events(viewer)]) or _HEARTBEAT)
                await hub.clock.sleep(hub.limits.rows_seconds)
                await self._wait(pending)
                hub.wakeups += 1
        except (ConnectionError, TimeoutError):
            # The reader is gone.
            pass
        finally:
            hub.open -= 1
            hub.tokens.pop(id(self), None)

    async def _wait(self, pending: asyncio.Event) -> None:
        """Until something changed; not longer than to the summary that is due, or to the next heartbeat."""
        seconds = self._hub.limits.heartbeat_seconds
        if self._summary_of != self._current:
            seconds = max(0.0, self._summary_at + self._hub.limits.summary_seconds - self._hub.clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await pending.wait()

    @property
    def _current(self) -> tuple[int, int]:
        return self._hub.rows.number, self._hub.ticks

    async def _events(self, viewer: Viewer) -> AsyncGenerator[bytes]:
        async for one in self._row_events(viewer):
            yield one
        for one in self._step_events():
            yield one
        for one in chain(self._plan_events(), self._trouble_events()):
            yield one
        async for one in self._summary_events(viewer):
            yield one

    async def _row_events(self, viewer: Viewer) -> AsyncGenerator[bytes]:
        rows = self._hub.rows
        changes = None if self._sent is None else rows.since(self._sent)
        deleted = () if changes is None else map(Scope.of, changes.deleted)
        visible = await visibility_of(viewer, chain(rows.scopes, deleted))
        if changes is None or visible.contradicts(self._visible):
            self._sent, self._visible = rows.number, visible
            self._steps_sent = self._hub.steps.number
            yield f"id: {self._revision}\n".encode() + _RESET
            return
        self._sent, self._visible = changes.number, visible
        if (body := _changes_body(changes, visible, self._hub.steps, self._revision)) is not None:
            yield body

    @property
    def _revision(self) -> str:
        return self._hub.rows.revision_of(self._sent or 0, self._steps_sent)

    def _step_events(self) -> Iterator[bytes]:
        steps = self._hub.steps
        times = {id_of(ref): time for ref, time in steps.since(self._steps_sent).items() if self._visible.sees(ref)}
        self._steps_sent = steps.number
        if times:
            revision = self._revision
            found = NextStepTimes(revision=revision, times=times)
            yield f"id: {revision}\nevent: nextSteps\ndata: ".encode() + encode(found) + b"\n\n"

    def _plan_events(self) -> Iterator[bytes]:
        progress = self._hub.plan.progress(self._visible.sees_scope)
        if progress != self._plan:
            self._plan = progress
            yield b"event: plan\ndata: " + encode(progress) + b"\n\n"

    def _trouble_events(self) -> Iterator[bytes]:
        trouble = self._hub.trouble()
        if trouble != self._trouble:
            self._trouble = trouble
            yield b"event: trouble\ndata: " + encode(StoreTrouble(message=trouble or None)) + b"\n\n"

    async def _summary_events(self, viewer: Viewer) -> AsyncGenerator[bytes]:
        now, current = self._hub.clock.monotonic(), self._current
        if current == self._summary_of or now < self._summary_at + self._hub.limits.summary_seconds:
            return
        after = await self._hub.summaries.of(viewer, self._visible.sees)
        self._summary_of, self._summary_at = current, now
        if is_news(self._summary, after):
            self._summary = after
            yield b"event: summary\ndata: " + encode(after) + b"\n\n"


def _changes_body(changes: FleetChanges, visible: Visibility, steps: NextSteps, revision: str) -> bytes | None:
    changed = {ref: row for ref, row in changes.changed.items() if visible.sees(ref)}
    deleted = [ref for ref in changes.deleted if visible.sees(ref)]
    if not changed and not deleted:
        return None
    return (
        f'id: {revision}\nevent: resources\ndata: {{"revision":"{revision}","changed":'.encode()
        + joined_rows(changed, steps.get)
        + b',"deleted":'
        + json_ids(deleted)
        + b"}\n\n"
    )
