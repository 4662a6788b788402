"""One look at a resource of each declared kind, by an engine that cannot write: what services answer, and how late."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from setpoint.app import OTHER_CLIENTS, AppSettings, ClientWiring, StoreAccess, open_app, read_only
from setpoint.clients.http import HttpRequest, HttpResponse, intercepted_by
from setpoint.clients.write_guard import BlockedWrites, process_guarded_by
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.reconcile import preview
from setpoint.errors import RemoteError, SetpointError

# So many kinds are looked at, and so many at once.
_MOST_KINDS: Final = 100
_AT_ONCE: Final = 8


@dataclass(slots=True)
class Answers:
    """Sees every response: by origin, how far its clock is from ours, and what went wrong. An HttpInterceptor."""

    # Seconds that the server is ahead; None where its answer has no date.
    skews: dict[str, float | None] = field(default_factory=dict)
    failures: dict[str, RemoteError] = field(default_factory=dict)

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        """See HttpInterceptor."""
        return None

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """See HttpInterceptor."""
        skew: float | None = None
        with suppress(KeyError, TypeError, ValueError):
            # A date is cut off to whole seconds: half a second is the mean.
            skew = parsedate_to_datetime(response.headers["Date"]).timestamp() + 0.5 - time.time()
        self.skews[origin_of(request.url)] = skew
        return response

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """See HttpInterceptor."""
        self.failures[origin_of(request.url)] = error


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What was read: every resource, and for one of each kind the error that stopped its step, if any."""

    resources: Sequence[Resource]
    looked_at: Sequence[tuple[ResourceRef, SetpointError | None]]
    answers: Answers
    # Why nothing could be read.
    unread: SetpointError | None = None


def origin_of(url: str) -> str:
    """Scheme, host and port: the rest may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def probe_services(settings: AppSettings, seconds: float) -> ProbeResult:
    """Previews one resource of each kind. Nothing is written: the guard blocks it."""
    answers, blocked = Answers(), BlockedWrites()
    wiring = ClientWiring(lambda client: read_only(client, blocked, answers))
    guard = process_guarded_by(blocked, covers_threads=False)
    try:
        with guard, intercepted_by(read_only(OTHER_CLIENTS, blocked, answers)):
            async with open_app(settings, StoreAccess.READ, wiring) as opened:
                resources = (await opened.engine.store.list()).resources
                looked_at = await _look_at_each_kind(resources, opened.engine, seconds)
    except SetpointError as error:
        return ProbeResult((), (), answers, error)
    return ProbeResult(resources, looked_at, answers)


async def _look_at_each_kind(
    resources: Sequence[Resource], engine: EngineContext, seconds: float
) -> Sequence[tuple[ResourceRef, SetpointError | None]]:
    turns, refs = asyncio.Semaphore(_AT_ONCE), dict[tuple[str, str], ResourceRef]()
    for one in resources:
        if one.ref.group_kind in engine.resource_types and not one.is_deleting:
            refs.setdefault(one.ref.group_kind, one.ref)

    async def look(ref: ResourceRef) -> tuple[ResourceRef, SetpointError | None]:
        async with turns:
            try:
                async with asyncio.timeout(seconds):
                    await preview(ref, engine, trust_cookie=False)
            except TimeoutError:
                return ref, RemoteError(f"no answer within {seconds:g} s")
            except SetpointError as error:
                return ref, error
        return ref, None

    return await asyncio.gather(*map(look, list(refs.values())[:_MOST_KINDS]))
