"""The sockets of a client, so that whoever closes it can see them all closed.

A connection that is dropped in the middle of a request says goodbye in its own time, and TLS waits for the other side
to do the same. Whatever keeps the connections does not wait for that; an event loop that ends before it leaves the
socket open.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from aiohttp import AddrInfoType

# How often it is seen whether they are closed, and what is between two looks: mostly the first one finds them so.
_LOOKS: Final = 200
_SECONDS: Final = 0.005


class OurSocket(socket.socket):
    """One that every request through it was seen before."""

    __slots__ = ()


class Sockets:
    """Makes them, and ends them."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def __call__(self, address: AddrInfoType) -> socket.socket:
        """A new one."""
        family, kind, protocol, *_ = address
        made = OurSocket(family, kind, protocol)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """No goodbye is waited for any more; over once the loop has let go of every socket."""
        for look in range(_LOOKS):
            left = [one for one in self._made if one.fileno() != -1]
            if not left:
                return
            for one in left:
                # One that is not connected has nothing to end: who connects it lets go of it.
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(_SECONDS if look else 0)
