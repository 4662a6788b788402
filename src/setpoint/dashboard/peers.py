"""The other processes of a cluster that serve the page: what they alone know is asked with the token of the user.

Each decides by itself what that user may see, as of any request: a process needs no right, and no secret, for another.
The addresses are those of a name that the cluster gives to its pods, never of what a resource or a lease says.
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from dataclasses import field
from ipaddress import ip_network
from typing import Final, TypeVar

import msgspec

from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.http_transport import HttpLimits
from setpoint.clients.sockets import AddressPolicy
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api.routes import API
from setpoint.errors import SetpointError
from setpoint.runtime.limited_server import ListenAddress

_log: Final = logging.getLogger(__name__)
T = TypeVar("T")
# More pods are not asked: what they know is missing then.
MAX_PEERS: Final = 32
_SECONDS: Final = 2.0
_MAX_BODY: Final = 4 * 2**20
# Never by way of a proxy, which would see the tokens.
_DIRECT: Final = AddressPolicy(allowed=(ip_network("0.0.0.0/0"), ip_network("::/0")))
# A request with it is answered by the process that gets it alone.
ALONE: Final = "alone"


@dataclass(slots=True)
class Peers:
    """The processes behind these names; this one is among them."""

    names: tuple[ListenAddress, ...]
    _client: HttpClient = field(init=False)
    # Without an answer of the DNS a lookup holds a thread for longer than a request waits: there is one for each name.
    _lookups: dict[ListenAddress, asyncio.Task[Sequence[ListenAddress]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._client = HttpClient(addresses=_DIRECT, limits=HttpLimits(body=_MAX_BODY))

    async def ask(self, path: str, token: str, type_: type[T]) -> Sequence[T]:
        """The successful answers of all processes to a GET of the API; what cannot be asked, or refuses, has none."""
        places = await self._addresses()
        found = await asyncio.gather(*(self._ask(one, path, token, type_) for one in places))
        return [one for one in found if one is not None]

    async def close(self) -> None:
        """Closes the connections."""
        for lookup in self._lookups.values():
            lookup.cancel()
        await self._client.close()

    async def _addresses(self) -> Sequence[ListenAddress]:
        found = await asyncio.gather(*map(self._resolved, self.names))
        return sorted({address for addresses in found for address in addresses})[:MAX_PEERS]

    async def _resolved(self, name: ListenAddress) -> Sequence[ListenAddress]:
        """The addresses behind a name, asked for anew; none for one that does not resolve now."""
        lookup = self._lookups.get(name)
        if lookup is None or lookup.done():
            lookup = self._lookups[name] = asyncio.create_task(_look_up(name))
        try:
            async with asyncio.timeout(_SECONDS):
                return await asyncio.shield(lookup)
        except TimeoutError:
            return ()

    async def _ask(self, place: ListenAddress, path: str, token: str, type_: type[T]) -> T | None:
        mark = "&" if "?" in path else "?"
        url, headers = f"http://{place}{API}{path}{mark}{ALONE}=1", {"authorization": f"Bearer {token}"}
        try:
            response = await self._client.send(HttpRequest("GET", url, headers, seconds=_SECONDS))
            return msgspec.json.decode(response.body, type=type_) if response.status == 200 else None
        except (SetpointError, msgspec.MsgspecError) as error:
            # It may just have ended; the page shows what the others say.
            _log.debug("process not asked", extra={"address": str(place), "why": type(error).__name__})
            return None


async def _look_up(name: ListenAddress) -> Sequence[ListenAddress]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*name, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [ListenAddress(str(address[0]), name.port) for *_, address in found]
