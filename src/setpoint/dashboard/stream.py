"""The stream: changed rows and summaries as server-sent events, in batches, to any number of readers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final, Protocol, TypeAlias

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.viewer import Scope, SeesScope, Viewer
from setpoint.dashboard.api.models import PlanProgress, Summary
from setpoint.dashboard.views.fleet import FleetChanges, FleetRows, joined_rows, json_ids
from setpoint.dashboard.views.summary import Summaries, is_news
from setpoint.dashboard.views.visibility import EVERYTHING_VISIBLE, Visibility, visibility_of
from setpoint.engine.ports import Clock

_encode: Final = msgspec.json.Encoder().encode
# A connection that broke is noticed by writing to it.
_HEARTBEAT: Final = b": still here\n\n"
_RESET: Final = b"event: reset\ndata: {}\n\n"

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
    # How often what the process does is looked at while there are streams.
    process_seconds: float = 5.0


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
    plan: PlanSource
    clock: Clock
    limits: StreamLimits
    closed: asyncio.Event
    open: int = 0
    wakeups: int = 0
    # Grows when the process did something.
    ticks: int = 0

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


class EventStream:
    """One stream. It remembers the number of the last change that it has sent, and nothing else of the fleet.

    `viewer` is asked with every batch: a session may have ended. `resumed` is the revision that the reader has.
    """

    def __init__(self, hub: StreamHub, viewer: Callable[[], Awaitable[Viewer | None]], resumed: str | None) -> None:
        self._hub = hub
        self._viewer = viewer
        # None: what the reader has is not known, and it has to load everything.
        self._sent = hub.rows.number if resumed is None else hub.rows.number_of(resumed)
        self._visible = EVERYTHING_VISIBLE
        self._summary: Summary | None = None
        self._summary_at = float("-inf")
        self._summary_of = (-1, -1)
        self._plan: PlanProgress | None = None

    async def run(self, write: Write) -> None:
        """Sends until the reader is gone, its session has ended, or the server closes."""
        hub = self._hub
        hub.open += 1
        try:
            while not hub.closed.is_set():
                # Before anything is read: a change in between is not missed.
                pending = hub.rows.next_change()
                if (viewer := await self._viewer()) is None:
                    return
                await write(b"".join([one async for one in self._events(viewer)]) or _HEARTBEAT)
                await hub.clock.sleep(hub.limits.rows_seconds)
                await self._wait(pending)
                hub.wakeups += 1
        except (ConnectionError, TimeoutError):
            # The reader is gone.
            pass
        finally:
            hub.open -= 1

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
        for one in self._plan_events():
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
            yield f"id: {rows.revision}\n".encode() + _RESET
            return
        self._sent, self._visible = changes.number, visible
        if (body := _changes_body(changes, visible, rows)) is not None:
            yield body

    def _plan_events(self) -> Iterator[bytes]:
        progress = self._hub.plan.progress(self._visible.sees_scope)
        if progress != self._plan:
            self._plan = progress
            yield b"event: plan\ndata: " + _encode(progress) + b"\n\n"

    async def _summary_events(self, viewer: Viewer) -> AsyncGenerator[bytes]:
        now, current = self._hub.clock.monotonic(), self._current
        if current == self._summary_of or now < self._summary_at + self._hub.limits.summary_seconds:
            return
        after = await self._hub.summaries.of(viewer, self._visible.sees)
        self._summary_of, self._summary_at = current, now
        if is_news(self._summary, after):
            self._summary = after
            yield b"event: summary\ndata: " + _encode(after) + b"\n\n"


def _changes_body(changes: FleetChanges, visible: Visibility, rows: FleetRows) -> bytes | None:
    changed = [row for ref, row in changes.changed.items() if visible.sees(ref)]
    deleted = [ref for ref in changes.deleted if visible.sees(ref)]
    if not changed and not deleted:
        return None
    revision = rows.revision_of(changes.number)
    return (
        f'id: {revision}\nevent: resources\ndata: {{"revision":"{revision}","changed":'.encode()
        + joined_rows(changed)
        + b',"deleted":'
        + json_ids(deleted)
        + b"}\n\n"
    )
