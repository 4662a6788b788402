"""Fencing of writes: each write asks the fences of its task whether it may be sent, and how long it may take.

The worker that runs a step sets the fences; without any, every write is allowed.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class FencedWrite:
    """A write that is about to be made: the verb, and what it is done to. Neither holds what nobody should read."""

    verb: str
    target: str

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class Fence(Protocol):
    """What allows writes, or does not."""

    def check(self, attempt: FencedWrite) -> float:
        """How many seconds the write may take from now on, never none; one of our errors when it may not be made."""
        ...


_fences: Final[ContextVar[tuple[Fence, ...]]] = ContextVar("permits", default=())


class fenced_by:  # noqa: N801 - a context manager is called like a function
    """Every write made inside, in this task and in those it starts, needs this permit, and those around it as well."""

    __slots__ = ("_permits", "_token")

    def __init__(self, *permits: Fence) -> None:
        self._permits = permits
        self._token: Token[tuple[Fence, ...]] | None = None

    def __enter__(self) -> None:
        self._token = _fences.set((*_fences.get(), *self._permits))

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _fences.reset(self._token)


class unfenced:  # noqa: N801 - the same
    """What is sent inside changes nothing that a permit could be about: a lease that is renewed, a token."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[tuple[Fence, ...]] | None = None

    def __enter__(self) -> None:
        self._token = _fences.set(())

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _fences.reset(self._token)


def seconds_allowed(attempt: FencedWrite) -> float:
    """How long the write may take by every permit, the outermost asked first; what refuses it is raised."""
    seconds = inf
    for permit in _fences.get():
        seconds = min(seconds, permit.check(attempt))
    return seconds
