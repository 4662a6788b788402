"""HTTP, and nothing else: bytes out, bytes in. A failure on the way is RemoteUnavailable; a status is not a failure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from setpoint import __version__
from setpoint.errors import RemoteUnavailable

USER_AGENT = f"setpoint/{__version__}"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `url` is complete and already quoted; `seconds` is all the time that the answer may take."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 60.0

    def __str__(self) -> str:
        """Method and path: the query and the body may hold what nobody should read."""
        return f"{self.method} {urlsplit(self.url).path}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Keeps connections and uses them again. Opened by the first request; `close` lets go of everything."""

    def __init__(self) -> None:
        # How many requests there were, by method, host and what came of them: a status, or "<error>" without an answer.
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._session: aiohttp.ClientSession | None = None
        # Host and proxy by origin: finding out takes a walk through the environment.
        self._ways: dict[str, tuple[str, str | None]] = {}

    async def send(self, request: Request) -> Answer:
        """The whole answer, whatever its status; RemoteUnavailable when there is none, or only a part of it."""
        session = self._session = self._session or _new_session()
        host, proxy = self._way_to(request.url)
        code = "<error>"
        try:
            async with session.request(
                request.method,
                URL(request.url, encoded=True),
                data=request.body,
                headers=request.headers,
                proxy=proxy,
                # Whoever we are sent to may not be meant to see our credentials.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=request.seconds),
            ) as response:
                answer = Answer(response.status, response.headers, await response.read())
                code = str(response.status)
                return answer
        except TimeoutError as error:
            raise RemoteUnavailable(f"{request}: no answer within {request.seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RemoteUnavailable(f"{request}: {_reason(error)}") from error
        finally:
            self.counts[request.method, host, code] += 1

    async def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _way_to(self, url: str) -> tuple[str, str | None]:
        """The host, and the proxy that leads there."""
        # To the slash after "https://host": cheaper than to take the whole address apart.
        origin = url[: url.find("/", 8)]
        found = self._ways.get(origin)
        if found is None:
            parts = urlsplit(url)
            proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
            found = self._ways[origin] = (parts.netloc, proxy)
        return found


def _new_session() -> aiohttp.ClientSession:
    headers = {"User-Agent": USER_AGENT}
    # How many calls are under way is decided where turns are shared out: a second line here would be nobody's turn.
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(headers=headers, connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _reason(error: Exception) -> str:
    """What went wrong, without the address: that has the query in it."""
    match error:
        case aiohttp.InvalidURL():
            return "that is not an address"
        case aiohttp.ClientResponseError():
            return f"that is not HTTP: {error.message}"
        case aiohttp.ClientConnectorError():
            why = f"{error.strerror or error.os_error}: see whether it runs, and whether the address is right"
            return f"cannot connect to {error.host}:{error.port}: {why}"
        case _:
            return str(error) or type(error).__name__
