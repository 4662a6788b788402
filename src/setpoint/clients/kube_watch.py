"""Watches: every change from a moment on, for as long as somebody wants to hear of them."""

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

from setpoint.clients.http import Stream
from setpoint.clients.kube_endpoints import EVERYTHING, Endpoint, Selection, with_query
from setpoint.clients.kube_errors import Status, error_for
from setpoint.clients.kube_errors import decoder as status_decoder
from setpoint.clients.kube_pages import decoded
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.errors import RemoteError, RemoteUnavailable

_log: Final = logging.getLogger(__name__)

# The API server is asked to end a watch after that long, another time for each: so that they do not all come back at
# once, and move on to other servers of the cluster.
SHORTEST, LONGEST = 300.0, 600.0
# Where anything changes at all, a bookmark comes every minute: a stream that says nothing for longer is cut. One that
# had nothing to say is taken up again where it was, for the price of one request.
SILENCE: Final = 90.0
# For so long a watch that cannot be taken up again is tried, later each time.
PATIENCE: Final = 60.0
FIRST_DELAY, LONGEST_DELAY = 0.25, 15.0


class Change(StrEnum):
    """What an event is about. A bookmark says up to where all has been told: its object has but a resource version."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(Struct, frozen=True, gc=False):
    """A change, and the object after it, or before it was deleted: `bytes(event.object)`. Keep a copy, if any."""

    change: Change = msgspec.field(name="type")
    object: Raw = Raw(b"{}")


class _Metadata(Struct, rename="camel"):
    resource_version: str


class _Object(Struct):
    metadata: _Metadata


_lines: Final = msgspec.json.Decoder(WatchEvent)
_objects: Final = msgspec.json.Decoder(_Object)


class EventReader:
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
            return _lines.decode_lines(lines)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _until_broken(lines)


def _until_broken(lines: bytes) -> list[WatchEvent]:
    """One by one: those that came before the broken one did happen."""
    events: list[WatchEvent] = []
    try:
        for line in lines.splitlines():
            events += _lines.decode_lines(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        broken = Status(500, message=f"this is no event of a watch: {error}")
        events.append(WatchEvent(Change.ERROR, Raw(msgspec.json.encode(broken))))
    return events


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a watch is tried to be taken up again, and when a stream is taken for dead: both in seconds."""

    trouble: float = PATIENCE
    silence: float = SILENCE
    jitter: Callable[[], float] = random.random


PATIENTLY: Final = Patience()


async def watch(
    client: KubernetesClient,
    endpoint: Endpoint,
    since: str,
    selection: Selection = EVERYTHING,
    patience: Patience = PATIENTLY,
) -> AsyncGenerator[WatchEvent, None]:
    """Every change after the resource version `since`, bookmarks among them, without an end.

    A watch that breaks off is taken up where it was. RemoteExpired when that is too long ago: list again, and watch
    from there. RemoteUnavailable when it could not be taken up for a minute; any other error is a refusal. Whoever may
    leave in the middle uses `contextlib.aclosing`.
    """
    place, attempts = _Place(client, endpoint, since, selection), _Attempts(patience)
    while True:
        try:
            with closing(await place.open(patience)) as stream:
                attempts.opened()
                reader = EventReader()
                while piece := await stream.read():
                    for event in reader.feed(piece):
                        if event.change is Change.ERROR:
                            raise place.error(event)
                        place.last = event
                        yield event
                    attempts.succeeded()
            attempts.ended()
        except RemoteUnavailable as error:
            attempts.failed(place.path, error)
        await asyncio.sleep(attempts.delay)


class _Place:
    """What is watched, and up to where it was told."""

    def __init__(self, client: KubernetesClient, endpoint: Endpoint, since: str, selection: Selection) -> None:
        self.path = endpoint.path
        self.last: WatchEvent | None = None
        self._client = client
        self._since = since
        self._selection = selection

    async def open(self, patience: Patience) -> Stream:
        if self.last is not None:
            # Only now: to look into each event would cost as much as to read it.
            self._since = decoded(_objects, self.last.object, f"watch {self.path}").metadata.resource_version
            self.last = None
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._since,
            "timeoutSeconds": str(round(SHORTEST + (LONGEST - SHORTEST) * patience.jitter())),
        }
        target = with_query(self.path, self._selection.query() | query)
        return await self._client.open(target, self._selection.form, patience.silence)

    def error(self, event: WatchEvent) -> RemoteError:
        status = decoded(status_decoder, event.object, f"watch {self.path}")
        return error_for(f"watch {self.path}", status.code or 500, status)


class _Attempts:
    """How it went so far, and how long to wait before the next time."""

    def __init__(self, patience: Patience) -> None:
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
