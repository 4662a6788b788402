"""Google access tokens: fetched in a thread, once for all callers, and refreshed before they expire."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from math import inf
from typing import Final, Protocol

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.write_guard import exempt_from_guard
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import SetpointError

# A token is refreshed when it has less left. The metadata server returns the same one until four minutes before.
REFRESH_BEFORE_EXPIRY: Final = 225.0
# After a failure all callers get its error for so long, without another request to the token server.
FAILURE_PAUSE: Final = 1.0


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The headers that carry a token, and the seconds that it is valid for."""

    headers: Mapping[str, str] = field(repr=False)
    seconds: float = inf


class TokenSource(Protocol):
    """Fetches tokens. May block: it is called in a thread, one call at a time."""

    def fetch(self) -> AccessToken:
        """A new token, or one of our errors."""
        ...


@dataclass(frozen=True, slots=True)
class _HeldToken:
    token: AccessToken
    since: float

    def seconds_left(self, now: float) -> float:
        return self.since + self.token.seconds - now


@dataclass(frozen=True, slots=True)
class _FailedFetch:
    error: SetpointError
    since: float


def application_default() -> TokenSource:
    """Application Default Credentials, as google-auth finds them."""
    # Imported in the thread, off the event loop: google-auth brings a cryptographic library with it.
    from setpoint.clients.google.application_default import ApplicationDefaultSource

    return ApplicationDefaultSource()


def impersonated(account: str, endpoint: str) -> Callable[[], TokenSource]:
    """Tokens of a service account, given to Application Default Credentials by the service at `endpoint`."""

    def open_source() -> TokenSource:
        from setpoint.clients.google.application_default import ImpersonatedSource

        return ImpersonatedSource(account, endpoint)

    return open_source


class TokenCredentials:
    """Shares one token between all callers. A fetch is shared, too, and goes on when a caller is cancelled."""

    def __init__(
        self, open_source: Callable[[], TokenSource] = application_default, clock: MonotonicClock | None = None
    ) -> None:
        self._open_source = open_source
        self._clock = clock or EventLoopClock()
        self._source: TokenSource | None = None
        self._held: _HeldToken | None = None
        self._failed: _FailedFetch | None = None
        self._fetching: asyncio.Task[_HeldToken | _FailedFetch] | None = None

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers with a token that has not expired, and is not the one in `refused`."""
        held, now = self._held, self._clock.monotonic()
        left = -inf if held is None else held.seconds_left(now)
        if held is None or held.token.headers == refused or left <= 0.0:
            held = await self._renewed(now)
        elif left < REFRESH_BEFORE_EXPIRY and not self._has_just_failed(now):
            # In the background: the old token is valid until the new one is there.
            self._fetch()
        return held.token.headers

    async def _renewed(self, now: float) -> _HeldToken:
        found = self._failed if self._has_just_failed(now) else await asyncio.shield(self._fetch())
        if isinstance(found, _HeldToken):
            return found
        assert found is not None
        # Without the traceback of the callers that it was raised to before.
        raise found.error.with_traceback(None)

    def _has_just_failed(self, now: float) -> bool:
        return self._failed is not None and now < self._failed.since + FAILURE_PAUSE

    def _fetch(self) -> "asyncio.Task[_HeldToken | _FailedFetch]":
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetched())
        return self._fetching

    async def _fetched(self) -> _HeldToken | _FailedFetch:
        began = self._clock.monotonic()
        try:
            self._held = _HeldToken(await asyncio.to_thread(self._from_source), began)
        except SetpointError as error:
            self._failed = _FailedFetch(error, self._clock.monotonic())
            return self._failed
        self._failed = None
        return self._held

    def _from_source(self) -> AccessToken:
        with exempt_from_guard():
            if self._source is None:
                self._source = self._open_source()
            return self._source.fetch()
