"""Keys that are pressed while somebody draws: read one by one, without waiting for the end of a line."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def keys(press: Callable[[str], None]) -> Iterator[None]:
    """Calls `press` with each key of the terminal; afterwards the terminal is as it was. Ctrl-C stays a signal."""
    terminal, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(terminal)

    def read() -> None:
        data = os.read(terminal, 64)
        if not data:
            # The terminal is gone.
            loop.remove_reader(terminal)
        for key in data.decode(errors="replace"):
            press(key)

    tty.setcbreak(terminal)
    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
