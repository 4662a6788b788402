"""For whom a call is made, so that turns are shared out fairly. Whoever drives the steps says so; nobody has to."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Caller:
    """A resource that calls: any key that stands for it, and whether its last step failed."""

    key: Hashable
    failed: bool = field(default=False, kw_only=True)


caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


@contextmanager
def calling_for(key: Hashable, *, failed: bool) -> Iterator[None]:
    """Every call made inside, in this task and in those it starts, is a call of `key`."""
    token = caller.set(Caller(key, failed=failed))
    try:
        yield
    finally:
        caller.reset(token)
