"""The process that owns a store, for everybody else: over its socket it does what only it may do."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import aiohttp
import msgspec

from setpoint.clients.daemon_messages import (
    ALIVE,
    APPLY,
    DELETE,
    HELLO,
    LOOK,
    TROUBLES,
    Failure,
    Hello,
    Manifests,
    Name,
    Names,
    Troubles,
    raised,
)
from setpoint.clients.daemon_socket import address_of
from setpoint.core.canonical import canonical
from setpoint.core.values import Json
from setpoint.errors import RemoteUnavailable, SetpointError

T = TypeVar("T")

# It answers at once, or is busy writing down thousands: never with services.
_SECONDS: Final = 300.0
_HELLO_SECONDS: Final = 5.0


async def reach(store: Path) -> "Daemon | None":
    """The process that owns the store in the file `store`; None when none takes orders there. `close` it when done."""
    address = address_of(store)
    if address is None:
        return None
    daemon = Daemon(address)
    try:
        await daemon.hello()
    except RemoteUnavailable:
        await daemon.close()
        return None
    return daemon


class Daemon:
    """A running process. What it refuses is raised as it raised it; RemoteUnavailable when it is not there any more."""

    def __init__(self, address: Path) -> None:
        # The host is a matter of form: the socket decides who is asked.
        self._session = aiohttp.ClientSession("http://setpoint", connector=aiohttp.UnixConnector(str(address)))

    async def hello(self) -> Hello:
        """Who answers."""
        return await self._ask("GET", HELLO, None, Hello)

    async def apply(self, manifests: Iterable[Json]) -> None:
        """All of them are on record, or none is."""
        encoded = tuple(msgspec.Raw(canonical(manifest)) for manifest in manifests)
        await self._ask("POST", APPLY, Manifests(encoded), Names)

    async def delete(self, names: Iterable[Name]) -> None:
        """They are gone, or marked for deletion."""
        await self._ask("POST", DELETE, Names(tuple(names)), Names)

    async def look(self, names: Iterable[Name]) -> None:
        """A look at each is asked for; the status of each echoes it."""
        await self._ask("POST", LOOK, Names(tuple(names)), Names)

    async def troubles(self, names: Iterable[Name]) -> Mapping[Name, SetpointError]:
        """Why the last steps of those among them stopped that are to be retried, where no status says so."""
        found = await self._ask("POST", TROUBLES, Names(tuple(names)), Troubles)
        return {one.name: raised(one.why) for one in found.troubles}

    async def until_it_ends(self) -> None:
        """Returns when the process has ended, in whatever way."""
        try:
            async with self._session.get(ALIVE, timeout=aiohttp.ClientTimeout(total=None)) as response:
                while await response.content.readany():
                    pass
        except (aiohttp.ClientError, OSError):
            pass

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._session.close()

    async def _ask(self, method: str, path: str, body: msgspec.Struct | None, answer: type[T]) -> T:
        data = None if body is None else msgspec.json.encode(body)
        timeout = aiohttp.ClientTimeout(total=_HELLO_SECONDS if path == HELLO else _SECONDS)
        try:
            async with self._session.request(method, path, data=data, timeout=timeout) as response:
                status, received = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RemoteUnavailable(
                "the process that owns the store ended, or does not answer: run the command again"
            ) from error
        return _decoded(status, received, answer)


def _decoded(status: int, body: bytes, answer: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(body, type=answer)
        failure = msgspec.json.decode(body, type=Failure)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(
            f"the process that owns the store answers {status} in words of another version: "
            "stop it, and start it again with this one"
        ) from error
    raise raised(failure)
