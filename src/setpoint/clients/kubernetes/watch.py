"""Watches: events from a resource version on, with bookmarks, resumed with backoff when the stream breaks."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw, Struct

from setpoint.clients.http import DEFAULT_LIMITS
from setpoint.clients.http_transport import HeldBytes, ResponseStream, too_large
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.errors import STATUS, ApiStatus, error_for_status, status_of_event
from setpoint.clients.kubernetes.requests import ALL_OBJECTS, Endpoint, ObjectSelector, with_query
from setpoint.clients.response_bodies import UNDECODABLE
from setpoint.core.backoff import Backoff
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import decode_cut
from setpoint.errors import RemoteError, RemoteExpired, RemoteUnavailable

_log: Final = logging.getLogger(__name__)

# The API server is asked to end a watch after a random time in between: so that not all are reopened at once, and that
# they spread over the API servers of the cluster.
SHORTEST, LONGEST = 300.0, 600.0
# A bookmark comes about every minute where anything changes: a stream without data for longer is closed. If there was
# nothing to send it is resumed where it was, for the price of one request.
IDLE_TIMEOUT: Final = 90.0
# For so long a watch that cannot be resumed is retried, with backoff.
RETRY_SECONDS: Final = 60.0
FIRST_DELAY, LONGEST_DELAY = 0.25, 15.0


class WatchEventType(StrEnum):
    """The type of an event. The object of a bookmark has only a resource version: all events up to it were sent."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(Struct, frozen=True, gc=False):
    """An event, with the object after the change or before its deletion: a view of the stream, to be copied if kept."""

    type: WatchEventType
    object: Raw = Raw(b"{}")


class _Metadata(Struct, rename="camel"):
    resource_version: str


class _Object(Struct):
    metadata: _Metadata


_event_decoder: Final = msgspec.json.Decoder(WatchEvent)
_object_decoder: Final = msgspec.json.Decoder(_Object)


class WatchEventReader:
    """Decodes events, one per line, from chunks of any size. `close` it: an incomplete line counts as `held`.

    `what` names the watch in messages.
    """

    __slots__ = ("_held", "_incomplete", "_limit", "_what")

    def __init__(self, what: str = "watch", limit: int = DEFAULT_LIMITS.body, held: HeldBytes | None = None) -> None:
        self._what = what
        self._limit = limit
        self._held = held or HeldBytes()
        # An event may span many chunks.
        self._incomplete = bytearray()

    def feed(self, chunk: bytes) -> list[WatchEvent]:
        """The events that `chunk` completes; a line that is not an event becomes an error event, and the last one.

        ResponseTooLarge for a line beyond the limit.
        """
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return []
        lines = chunk if end == len(chunk) else chunk[:end]
        if self._incomplete:
            lines = b"".join((self._incomplete, lines))
            self.close()
        if end < len(chunk):
            self._keep(chunk[end:])
        try:
            return _event_decoder.decode_lines(lines)
        except UNDECODABLE:
            return _until_broken(lines)

    def close(self) -> None:
        """Drops an incomplete line."""
        self._held.drop(len(self._incomplete))
        self._incomplete.clear()

    def _keep(self, chunk: bytes) -> None:
        if len(self._incomplete) + len(chunk) > self._limit:
            raise too_large(self._what, self._limit)
        self._held.add(len(chunk), self._what)
        self._incomplete += chunk


def _until_broken(lines: bytes) -> list[WatchEvent]:
    """One by one: events before the broken line did happen. An object that is nested too deeply is cut."""
    events: list[WatchEvent] = []
    try:
        for line in lines.splitlines():
            events += decode_cut(_event_decoder.decode_lines, line)
    except UNDECODABLE:
        # What is wrong with it is not said: it would quote what another server sent.
        broken = ApiStatus(500, message="this is no event of a watch", kind=STATUS)
        events.append(WatchEvent(WatchEventType.ERROR, Raw(msgspec.json.encode(broken))))
    return events


@dataclass(frozen=True, slots=True)
class WatchTimeouts:
    """How long a broken watch is retried, and when an idle stream is taken for dead, in seconds."""

    retry: float = RETRY_SECONDS
    idle_timeout: float = IDLE_TIMEOUT
    jitter: Callable[[], float] = random.random


DEFAULT_TIMEOUTS: Final = WatchTimeouts()


async def watch(
    client: KubernetesClient,
    endpoint: Endpoint,
    since: str,
    selector: ObjectSelector = ALL_OBJECTS,
    timeouts: WatchTimeouts = DEFAULT_TIMEOUTS,
) -> AsyncGenerator[WatchEvent, None]:
    """Every event after the resource version `since`, with bookmarks, without an end.

    A watch that breaks is resumed where it was. RemoteExpired when its resource version has expired: relist, and watch
    from there. RemoteUnavailable when it could not be resumed for a minute; any other error is a refusal. Use
    `contextlib.aclosing` to leave before the end.
    """
    position, attempts = _WatchPosition(client, endpoint, since, selector), _Attempts(timeouts)
    while True:
        try:
            with closing(await position.open(timeouts)) as stream, closing(position.reader(stream)) as reader:
                attempts.opened()
                while chunk := await stream.read():
                    for event in reader.feed(chunk):
                        if event.type is WatchEventType.ERROR:
                            raise position.error(stream.body.without_credentials(bytes(event.object)))
                        position.last = event
                        yield event
                    attempts.succeeded()
            attempts.ended()
        except RemoteUnavailable as error:
            attempts.failed(position.path, error)
        await asyncio.sleep(attempts.delay)


class _WatchPosition:
    """What is watched, and up to which resource version."""

    def __init__(self, client: KubernetesClient, endpoint: Endpoint, since: str, selector: ObjectSelector) -> None:
        self.path = endpoint.path
        self.last: WatchEvent | None = None
        self._client = client
        self._since = since
        self._selector = selector

    async def open(self, timeouts: WatchTimeouts) -> ResponseStream:
        if self.last is not None:
            # Only now: to decode each event would cost as much as to receive it.
            self._since = self._version_of(self.last)
            self.last = None
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._since,
            "timeoutSeconds": str(round(SHORTEST + (LONGEST - SHORTEST) * timeouts.jitter())),
        }
        target = with_query(self.path, self._selector.query() | query)
        return await self._client.open(target, self._selector.representation, timeouts.idle_timeout)

    def reader(self, stream: ResponseStream) -> WatchEventReader:
        return WatchEventReader(f"watch {self.path}", stream.body.limit, stream.body.held)

    def _version_of(self, event: WatchEvent) -> str:
        try:
            # The object may be one that is nested too deeply for anything else.
            return decode_cut(_object_decoder.decode, event.object).metadata.resource_version
        except UNDECODABLE as error:
            raise RemoteExpired(f"watch {self.path}: its last event has no resource version") from error

    def error(self, body: bytes) -> RemoteError:
        status = status_of_event(body, f"watch {self.path}")
        return error_for_status(f"watch {self.path}", status.code or 500, status)


class _Attempts:
    """The attempts so far, and the delay before the next one."""

    def __init__(self, timeouts: WatchTimeouts) -> None:
        self.delay = 0.0
        self._timeouts = timeouts
        self._backoff = Backoff(FIRST_DELAY, LONGEST_DELAY, timeouts.jitter)
        self._opened_at: float | None = None
        self._failing_since: float | None = None

    def opened(self) -> None:
        self._opened_at = _now()
        self._failing_since = None

    def succeeded(self) -> None:
        self._backoff.reset()

    def ended(self) -> None:
        """The API server closed the stream: after the requested time, or right after it began."""
        self.delay = 0.0 if self._has_lasted() else self._backoff.next()

    def failed(self, path: str, error: RemoteUnavailable) -> None:
        """Raises `error` when attempts have failed for too long."""
        now = _now()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since >= self._timeouts.retry:
            raise error
        if self._has_lasted():
            self._backoff.reset()
        self.delay = self._backoff.next(error.after)
        fields = {"path": path, "why": str(error), "seconds": round(self.delay, 3)}
        _log.info("watch broke off", extra=fields)

    def _has_lasted(self) -> bool:
        """Whether the last stream, if any, was open for a while."""
        opened_at, self._opened_at = self._opened_at, None
        return opened_at is not None and _now() - opened_at >= LONGEST_DELAY


def _now() -> float:
    return asyncio.get_running_loop().time()
