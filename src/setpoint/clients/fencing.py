"""Fencing of writes: each write asks the fences of its task whether it may be sent, and how long it may take.

The worker that runs a step sets the fences; without any, every write is allowed.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class FencedWrite:
    """A write that is about to be sent: its verb and its target. Neither holds a secret."""

    verb: str
    target: str

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class Fence(Protocol):
    """Allows or refuses writes, such as by a lease that has to be held."""

    def check(self, write: FencedWrite) -> float:
        """How many seconds the write may take from now on, more than 0; raises one of our errors to refuse it."""
        ...


_fences: Final[ContextVar[tuple[Fence, ...]]] = ContextVar("fences", default=())


class fenced_by:  # noqa: N801 - a context manager is called like a function
    """Every write inside, in this task and in those it starts, has to pass these fences and the outer ones."""

    __slots__ = ("_added", "_token")

    def __init__(self, *fences: Fence) -> None:
        self._added = fences
        self._token: Token[tuple[Fence, ...]] | None = None

    def __enter__(self) -> None:
        self._token = _fences.set((*_fences.get(), *self._added))

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _fences.reset(self._token)


class unfenced:  # noqa: N801 - the same
    """Writes inside pass no fence: renewals of a lease, requests for a token."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[tuple[Fence, ...]] | None = None

    def __enter__(self) -> None:
        self._token = _fences.set(())

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _fences.reset(self._token)


def seconds_allowed(write: FencedWrite) -> float:
    """The least time that any fence allows, the outermost asked first; a fence that refuses the write raises."""
    seconds = inf
    for fence in _fences.get():
        seconds = min(seconds, fence.check(write))
    return seconds
