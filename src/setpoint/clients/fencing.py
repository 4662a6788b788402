"""Fencing of writes: each write asks the fences of its task whether it may be sent, and how long it may take.

The worker that runs a step sets the fences; without any, every write is allowed.
"""

from contextvars import ContextVar
from math import inf
from typing import Final, Protocol

from setpoint.clients.scoped_value import ScopedValue
from setpoint.core.values.deferred_dataclass import dataclass


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


def fenced_by(*fences: Fence) -> ScopedValue[tuple[Fence, ...]]:
    """Every write inside, in this task and in those it starts, has to pass these fences and the outer ones."""
    return ScopedValue(_fences, (*_fences.get(), *fences))


def unfenced() -> ScopedValue[tuple[Fence, ...]]:
    """Writes inside pass no fence: renewals of a lease, requests for a token."""
    return ScopedValue(_fences, ())


def seconds_allowed(write: FencedWrite) -> float:
    """The least time that any fence allows, the outermost asked first; a fence that refuses the write raises."""
    seconds = inf
    for fence in _fences.get():
        seconds = min(seconds, fence.check(write))
    return seconds
