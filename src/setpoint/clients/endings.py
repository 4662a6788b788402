"""How a call ended, as far as budgets are concerned."""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Answered:
    """The service is there, and had time for us: every answer is that, also a clear no."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The service is there, and wants fewer calls: none of them before `after` seconds, if it says so."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No answer, or one that says that the service cannot: `after` as above."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody waited for the answer: it says nothing about the service."""


Ending: TypeAlias = Answered | Throttled | Unavailable | Abandoned

ANSWERED: Final = Answered()
UNAVAILABLE: Final = Unavailable()
ABANDONED: Final = Abandoned()
