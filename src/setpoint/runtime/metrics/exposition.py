"""Renders metric families as the page that Prometheus scrapes, in slices: a long page does not block the event loop."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder

# About a millisecond's worth.
LINES_PER_SLICE: Final = 100
# The last line of a page of OpenMetrics.
_EOF: Final = b"# EOF\n"


async def encode_page(families: Iterable[Family], accept: str) -> tuple[bytes, str]:
    """The page in the best format that `accept` names, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        # An invalid version in the header.
        encode, content_type = choose_encoder("")
    parts: list[bytes] = []
    for family in families:
        for number, piece in enumerate(_pieces(family)):
            text = encode(piece).removesuffix(_EOF)
            parts.append(text if number == 0 else _without_heading(text))
            await asyncio.sleep(0)
    if content_type.startswith("application/openmetrics-text"):
        parts.append(_EOF)
    return b"".join(parts), content_type


@dataclass(frozen=True, slots=True)
class _SingleFamily:
    """One family as a collector."""

    family: Family

    def collect(self) -> Iterator[Family]:
        yield self.family


def _pieces(family: Family) -> Iterator[_SingleFamily]:
    # prometheus-client adds the creation time of each counter, as a metric of its own.
    samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    for start in range(0, max(len(samples), 1), LINES_PER_SLICE):
        piece = Family(family.name, family.documentation, family.type)
        piece.samples = samples[start : start + LINES_PER_SLICE]
        yield _SingleFamily(piece)


def _without_heading(text: bytes) -> bytes:
    """Without HELP and TYPE, which stand once."""
    return text.split(b"\n", 2)[2]
