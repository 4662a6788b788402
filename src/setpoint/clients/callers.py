"""For whom a call is made, so that turns are shared out fairly. Whoever drives the steps says so; nobody has to."""

from collections.abc import Hashable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Caller:
    """A resource that calls: any key that stands for it, and whether its last step failed."""

    key: Hashable
    failed: bool = field(default=False, kw_only=True)


caller: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


class calling_for:  # noqa: N801 - a context manager is called like a function
    """Every call made inside, in this task and in those it starts, is a call of `key`."""

    __slots__ = ("_caller", "_token")

    def __init__(self, key: Hashable, *, failed: bool) -> None:
        self._caller = Caller(key, failed=failed)
        self._token: Token[Caller | None] | None = None

    def __enter__(self) -> None:
        self._token = caller.set(self._caller)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        caller.reset(self._token)
