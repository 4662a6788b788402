"""Ports that stay reserved while no process listens on them."""

import random
import socket
from typing import Final

# Below those that systems hand out by themselves: a connection of another test cannot take the port of a server that is
# being restarted.
_RANGE: Final = range(20_000, 32_000)
_ATTEMPTS: Final = 100


def free_port() -> int:
    """A port on the loopback device without a listener."""
    for port in random.SystemRandom().sample(_RANGE, _ATTEMPTS):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"none of {_ATTEMPTS} ports between {_RANGE.start} and {_RANGE.stop} is free")
