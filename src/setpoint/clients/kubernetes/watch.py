"""Watches: events from a resource version on, with bookmarks, resumed with backoff when the stream breaks."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw, Struct

from setpoint.clients.http import ResponseStream
from setpoint.clients.kubernetes.client import KubernetesClient, decode_response
from setpoint.clients.kubernetes.errors import ApiStatus, error_for_status, status_decoder
from setpoint.clients.kubernetes.requests import ALL_OBJECTS, Endpoint, ObjectSelector, with_query
from setpoint.errors import RemoteError, RemoteUnavailable

_log: Final = logging.getLogger(__name__)

# The API server is asked to end a watch after that long, another time for each: so that they do not all come back at
# once, and move on to other servers of the cluster.
SHORTEST, LONGEST = 300.0, 600.0
# Where anything changes at all, a bookmark comes every minute: a stream that says nothing for longer is cut. One that
# had nothing to say is taken up again where it was, for the price of one request.
IDLE_TIMEOUT: Final = 90.0
# For so long a watch that cannot be taken up again is tried, later each time.
RETRY_SECONDS: Final = 60.0
FIRST_DELAY, LONGEST_DELAY = 0.25, 15.0


class WatchEventType(StrEnum):
    """What an event is about. A bookmark says up to where all has been told: its object has but a resource version."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(Struct, frozen=True, gc=False):
    """A change, and the object after it, or before it was deleted: `bytes(event.object)`. Keep a copy, if any."""

    change: WatchEventType = msgspec.field(name="type")
    object: Raw = Raw(b"{}")


class _Metadata(Struct, rename="camel"):
    resource_version: str


class _Object(Struct):
    metadata: _Metadata


_event_decoder: Final = msgspec.json.Decoder(WatchEvent)
_object_decoder: Final = msgspec.json.Decoder(_Object)


class WatchEventReader:
    """Events from bytes that come in any pieces: each ends with its line."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        # The pieces of a line whose end has not come yet. Put together once: an event may be of many pieces.
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> list[WatchEvent]:
        """The events that are complete with `piece`; a line that is none becomes an error, and the last of them."""
        end = piece.rfind(b"\n") + 1
        if not end:
            self._begun.append(piece)
            return []
        lines = piece if end == len(piece) else piece[:end]
        if self._begun:
            lines = b"".join((*self._begun, lines))
        self._begun = [] if end == len(piece) else [piece[end:]]
        try:
            return _event_decoder.decode_lines(lines)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _until_broken(lines)


def _until_broken(lines: bytes) -> list[WatchEvent]:
    """One by one: those that came before the broken one did happen."""
    events: list[WatchEvent] = []
    try:
        for line in lines.splitlines():
            events += _event_decoder.decode_lines(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        broken = ApiStatus(500, message=f"this is no event of a watch: {error}")
        events.append(WatchEvent(WatchEventType.ERROR, Raw(msgspec.json.encode(broken))))
    return events


@dataclass(frozen=True, slots=True)
class WatchTimeouts:
    """How long a watch is tried to be taken up again, and when a stream is taken for dead: both in seconds."""

    trouble: float = RETRY_SECONDS
    idle_timeout: float = IDLE_TIMEOUT
    jitter: Callable[[], float] = random.random


DEFAULT_TIMEOUTS: Final = WatchTimeouts()


async def watch(
    client: KubernetesClient,
    endpoint: Endpoint,
    since: str,
    selection: ObjectSelector = ALL_OBJECTS,
    patience: WatchTimeouts = DEFAULT_TIMEOUTS,
) -> AsyncGenerator[WatchEvent, None]:
    """Every change after the resource version `since`, bookmarks among them, without an end.

    A watch that breaks off is taken up where it was. RemoteExpired when that is too long ago: list again, and watch
    from there. RemoteUnavailable when it could not be taken up for a minute; any other error is a refusal. Whoever may
    leave in the middle uses `contextlib.aclosing`.
    """
    place, attempts = _WatchPosition(client, endpoint, since, selection), _Backoff(patience)
    while True:
        try:
            with closing(await place.open(patience)) as stream:
                attempts.opened()
                reader = WatchEventReader()
                while piece := await stream.read():
                    for event in reader.feed(piece):
                        if event.change is WatchEventType.ERROR:
                            raise place.error(event)
                        place.last = event
                        yield event
                    attempts.succeeded()
            attempts.ended()
        except RemoteUnavailable as error:
            attempts.failed(place.path, error)
        await asyncio.sleep(attempts.delay)


class _WatchPosition:
    """What is watched, and up to where it was told."""

    def __init__(self, client: KubernetesClient, endpoint: Endpoint, since: str, selection: ObjectSelector) -> None:
        self.path = endpoint.path
        self.last: WatchEvent | None = None
        self._client = client
        self._since = since
        self._selection = selection

    async def open(self, patience: WatchTimeouts) -> ResponseStream:
        if self.last is not None:
            # Only now: to look into each event would cost as much as to read it.
            self._since = decode_response(
                _object_decoder, self.last.object, f"watch {self.path}"
            ).metadata.resource_version
            self.last = None
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._since,
            "timeoutSeconds": str(round(SHORTEST + (LONGEST - SHORTEST) * patience.jitter())),
        }
        target = with_query(self.path, self._selection.query() | query)
        return await self._client.open(target, self._selection.form, patience.idle_timeout)

    def error(self, event: WatchEvent) -> RemoteError:
        status = decode_response(status_decoder, event.object, f"watch {self.path}")
        return error_for_status(f"watch {self.path}", status.code or 500, status)


class _Backoff:
    """How it went so far, and how long to wait before the next time."""

    def __init__(self, patience: WatchTimeouts) -> None:
        self.delay = 0.0
        self._patience = patience
        self._failures = 0
        self._opened_at: float | None = None
        self._trouble_since: float | None = None

    def opened(self) -> None:
        self._opened_at = _now()
        self._trouble_since = None

    def succeeded(self) -> None:
        self._failures = 0

    def ended(self) -> None:
        """The API server ended it in good order: as it was asked to, or as soon as it had begun."""
        self.delay = 0.0 if self._has_lasted() else self._next_delay()

    def failed(self, path: str, error: RemoteUnavailable) -> None:
        """Raises `error` when that has gone on for too long."""
        now = _now()
        self._trouble_since = now if self._trouble_since is None else self._trouble_since
        if now - self._trouble_since >= self._patience.trouble:
            raise error
        if self._has_lasted():
            self._failures = 0
        self.delay = max(self._next_delay(), error.after or 0.0)
        told = {"path": path, "why": str(error), "seconds": round(self.delay, 3)}
        _log.info("watch broke off", extra=told)

    def _has_lasted(self) -> bool:
        """Whether the last one lasted for a while, if there was one."""
        opened_at, self._opened_at = self._opened_at, None
        return opened_at is not None and _now() - opened_at >= LONGEST_DELAY

    def _next_delay(self) -> float:
        delay = min(FIRST_DELAY * 2.0 ** min(self._failures, 20), LONGEST_DELAY)
        self._failures += 1
        return delay * (0.5 + self._patience.jitter() / 2)


def _now() -> float:
    return asyncio.get_running_loop().time()
