"""Sessions of browsers: a one-time token is exchanged for a cookie, which is kept in memory and expires."""

import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal, Protocol

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.request_checks import RequestRefused
from setpoint.dashboard.access.viewer import Viewer
from setpoint.engine.ports import Clock

SESSION_SECONDS: Final = 12 * 3600.0
_MAX_SESSIONS: Final = 1_000
_TOKEN_BYTES: Final = 32


class SignInRefused(RequestRefused):
    """The token is none that opens a session."""

    def __init__(self, message: str) -> None:
        super().__init__(401, "signInRefused", message)


class SignIn(Protocol):
    """How users sign in."""

    @property
    def way(self) -> Literal["url", "bearer"]:
        """`url` for the token of a printed URL, `bearer` for a token of the cluster."""
        ...

    async def viewer_for(self, token: str) -> Viewer:
        """The user that a token stands for; SignInRefused for any other token."""
        ...


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session: its user, and when it ends, by the monotonic clock."""

    viewer: Viewer
    expires: float


class Sessions:
    """The sessions that are open, by the digest of their cookie; the oldest ends when there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, OpenSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, viewer: Viewer) -> str:
        """The cookie of a new session."""
        cookie = secrets.token_urlsafe(_TOKEN_BYTES)
        self._open[digest_of(cookie)] = OpenSession(viewer, self._clock.monotonic() + SESSION_SECONDS)
        while len(self._open) > _MAX_SESSIONS:
            self._open.pop(next(iter(self._open)))
        return cookie

    def viewer_of(self, cookie: str) -> Viewer | None:
        """The user of a session that has not ended."""
        key = digest_of(cookie)
        found = self._open.get(key)
        if found is not None and found.expires <= self._clock.monotonic():
            del self._open[key]
            return None
        return None if found is None else found.viewer

    def close(self, cookie: str) -> None:
        """Ends a session."""
        self._open.pop(digest_of(cookie), None)


class OneTimeTokens:
    """Tokens of URLs: each opens one session. `printed` gets the next one as soon as one is used."""

    way: Literal["url", "bearer"] = "url"

    def __init__(self, viewer: Viewer, printed: Callable[[str], None]) -> None:
        self._viewer = viewer
        self._printed = printed
        self._digest = ""

    def print_next(self) -> None:
        """Makes a new token; an earlier one that was not used is of no use any more."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._digest = digest_of(token)
        self._printed(token)

    async def viewer_for(self, token: str) -> Viewer:
        """See SignIn."""
        if not self._digest or not secrets.compare_digest(digest_of(token), self._digest):
            raise SignInRefused("this URL was used already, or is of another process: use the newest one printed there")
        self._digest = ""
        self.print_next()
        return self._viewer


def digest_of(text: str) -> str:
    """What is kept of a token or a cookie: it cannot be used in its place."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
