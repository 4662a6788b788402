"""What goes on while nothing else can be told: drawn on a terminal, on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text


@contextmanager
def drawn(what: str) -> Iterator[None]:
    """Seen by whoever sits there until it is over; a pipe gets nothing."""
    if sys.stderr.isatty():
        with Console(stderr=True, highlight=False).status(Text(what)):
            yield
    else:
        yield
