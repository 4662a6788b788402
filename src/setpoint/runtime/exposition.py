"""The page that Prometheus reads, made a little at a time: a process with thousands of lines has other things to do."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder

T = TypeVar("T")

# Each about a millisecond's worth.
SLICE: Final = 1000
LINES: Final = 100
# The last line of a page of OpenMetrics.
_END: Final = b"# EOF\n"


async def in_slices(things: Iterable[T]) -> AsyncIterator[T]:
    """The same, one by one; every now and then others have their turn."""
    for number, thing in enumerate(things, start=1):
        yield thing
        if number % SLICE == 0:
            await asyncio.sleep(0)


async def page_of(families: Iterable[Family], accept: str) -> tuple[bytes, str]:
    """The page in the best form that `accept` names, and what that form is called."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        # A version that is no version.
        encode, content_type = choose_encoder("")
    parts: list[bytes] = []
    for family in families:
        for number, piece in enumerate(_pieces(family)):
            text = encode(piece).removesuffix(_END)
            parts.append(text if number == 0 else _without_heading(text))
            await asyncio.sleep(0)
    if content_type.startswith("application/openmetrics-text"):
        parts.append(_END)
    return b"".join(parts), content_type


@dataclass(frozen=True, slots=True)
class _Alone:
    """One family as a collector."""

    family: Family

    def collect(self) -> Iterator[Family]:
        yield self.family


def _pieces(family: Family) -> Iterator[_Alone]:
    for start in range(0, max(len(family.samples), 1), LINES):
        piece = Family(family.name, family.documentation, family.type)
        piece.samples = family.samples[start : start + LINES]
        yield _Alone(piece)


def _without_heading(text: bytes) -> bytes:
    """Without HELP and TYPE, which are said once."""
    return text.split(b"\n", 2)[2]
